//! The body of an answer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use gristmill_core::{ByteBudget, HeldBytes};
use http::Response;
use hyper::body::{Body, Frame, SizeHint};

use super::hold::{HELD_BYTES_MIN, held};

/// Maximum bytes that a connection gets at once. It takes the next ones when most of these are
/// written, so that the end of a long body is near the time at which its client has it.
const FRAME_BYTES_MAX: usize = 256 << 10;

/// The headers that an answer has, as a rule at most.
const HEADERS: usize = 10;

/// An answer of the data plane.
pub type Answer = Response<ResponseBody>;

/// An answer with this body. It has room for its headers, whose table would be made anew when it
/// grows.
pub fn answer_of(body: ResponseBody) -> Answer {
    let mut answer = Response::new(body);
    answer.headers_mut().reserve(HEADERS);
    answer
}

/// A body in parts. They are sent without being copied together.
#[derive(Debug, Default)]
pub struct ResponseBody {
    first: Bytes,
    rest: VecDeque<Bytes>,
    /// Counts the bytes of the head, if the answer has no body that could count them.
    _head: Option<HeldBytes>,
    end: Option<AnswerEnd>,
}

/// Waits for the end of an answer. If it is dropped before, the client left.
pub struct AnswerEnd(Option<Box<dyn FnOnce(bool) + Send>>);

impl AnswerEnd {
    /// Does `work` at the end, with whether the answer was sent.
    pub fn new(work: impl FnOnce(bool) + Send + 'static) -> Self {
        Self(Some(Box::new(work)))
    }

    /// The connection has taken the last byte of the answer's body, but for what it sends at once.
    pub fn sent(mut self) {
        self.work(true);
    }

    fn work(&mut self, is_sent: bool) {
        if let Some(work) = self.0.take() {
            work(is_sent);
        }
    }
}

impl Drop for AnswerEnd {
    fn drop(&mut self) {
        self.work(false);
    }
}

impl fmt::Debug for AnswerEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerEnd").finish_non_exhaustive()
    }
}

impl From<Bytes> for ResponseBody {
    fn from(whole: Bytes) -> Self {
        Self { first: whole, ..Self::default() }
    }
}

impl From<Vec<Bytes>> for ResponseBody {
    fn from(parts: Vec<Bytes>) -> Self {
        let mut rest = VecDeque::from(parts);
        let mut body =
            Self { first: rest.pop_front().unwrap_or_default(), rest, ..Self::default() };
        body.skip_empty();
        body
    }
}

impl ResponseBody {
    /// The same body. All of it counts against `budget` until it is sent.
    pub fn held(self, budget: &Arc<ByteBudget>) -> Self {
        let Self { first, rest, _head, end } = self;
        let rest = rest.into_iter().map(|part| held(part, budget));
        Self { first: held(first, budget), rest: rest.collect(), _head, end }
    }

    /// The same body. `end` waits for its end, which an empty body has reached.
    pub fn ending(mut self, end: AnswerEnd) -> Self {
        self.end = Some(end);
        self.note_end();
        self
    }

    /// Go on to the next part that has bytes.
    fn skip_empty(&mut self) {
        while self.first.is_empty()
            && let Some(part) = self.rest.pop_front()
        {
            self.first = part;
        }
    }

    fn note_end(&mut self) {
        if self.is_end_stream()
            && let Some(end) = self.end.take()
        {
            end.sent();
        }
    }

    /// The same for a body in one part. The `head_bytes` of its answer count, too.
    pub fn held_with_head(mut self, head_bytes: usize, budget: &Arc<ByteBudget>) -> Self {
        let bytes = self.first.len() + head_bytes;
        if bytes >= HELD_BYTES_MIN {
            let held = budget.hold(bytes);
            if self.first.is_empty() {
                self._head = Some(held);
            } else {
                self.first = held.attach_to(self.first);
            }
        }
        self
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.first.is_empty() {
            return Poll::Ready(None);
        }
        let bytes = self.first.len().min(FRAME_BYTES_MAX);
        let part = self.first.split_to(bytes);
        self.skip_empty();
        self.note_end();
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let rest: usize = self.rest.iter().map(Bytes::len).sum();
        SizeHint::with_exact((self.first.len() + rest) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    /// Counts answers that were sent, and clients that left.
    #[derive(Clone, Default)]
    struct Ends(Arc<[AtomicUsize; 2]>);

    impl Ends {
        fn body(&self, parts: &[usize]) -> ResponseBody {
            let parts: Vec<_> = parts.iter().map(|bytes| Bytes::from(vec![7; *bytes])).collect();
            let ends = self.clone();
            let count = move |is_sent| ends.count(is_sent);
            ResponseBody::from(parts).ending(AnswerEnd::new(count))
        }

        fn count(&self, is_sent: bool) {
            self.0[usize::from(!is_sent)].fetch_add(1, Ordering::Relaxed);
        }

        fn counts(&self) -> [usize; 2] {
            [0, 1].map(|index| self.0[index].load(Ordering::Relaxed))
        }
    }

    fn next(body: &mut ResponseBody) -> usize {
        body.frame().now_or_never().unwrap().unwrap().unwrap().into_data().unwrap().len()
    }

    #[test]
    fn an_answer_ends_with_its_last_byte() {
        let ends = Ends::default();
        let mut body = ends.body(&[0, 3, FRAME_BYTES_MAX + 1, 0]);
        assert_eq!((next(&mut body), ends.counts()), (3, [0, 0]));
        assert_eq!((next(&mut body), ends.counts()), (FRAME_BYTES_MAX, [0, 0]));
        assert_eq!(next(&mut body), 1);
        assert!(body.is_end_stream());
        assert_eq!(ends.counts(), [1, 0]);
        drop(body);
        assert_eq!(ends.counts(), [1, 0]);
    }

    #[test]
    fn an_empty_answer_is_sent_at_once() {
        let ends = Ends::default();
        drop((ends.body(&[]), ends.body(&[0, 0])));
        assert_eq!(ends.counts(), [2, 0]);
    }

    #[test]
    fn a_client_that_leaves_before_the_last_byte_does_not_have_the_answer() {
        let ends = Ends::default();
        let mut body = ends.body(&[3, 3]);
        next(&mut body);
        drop((body, ends.body(&[3])));
        assert_eq!(ends.counts(), [0, 2]);
    }
}
