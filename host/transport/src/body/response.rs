//! The body of an answer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_core::{ByteBudget, HeldBytes};
use http::Response;
use hyper::body::{Body, Frame, SizeHint};

use super::hold::{HELD_BYTES_MIN, held};

/// An answer of the data plane.
pub type Answer = Response<ResponseBody>;

/// A body in parts. They are sent without being copied together.
#[derive(Debug, Default)]
pub struct ResponseBody {
    first: Bytes,
    rest: VecDeque<Bytes>,
    /// Counts the bytes of the head, if the answer has no body that could count them.
    _head: Option<HeldBytes>,
    _timer: Option<WriteTimer>,
}

/// Takes the time from an answer until its connection has taken the last byte of its body.
pub trait WriteSink: Send + Sync {
    /// Take the time of one answer.
    fn written(&self, took: Duration);
}

struct WriteTimer {
    sink: &'static dyn WriteSink,
    since: Instant,
}

impl Drop for WriteTimer {
    fn drop(&mut self) {
        self.sink.written(self.since.elapsed());
    }
}

impl fmt::Debug for WriteTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteTimer").field("since", &self.since).finish()
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
        Self { first: rest.pop_front().unwrap_or_default(), rest, ..Self::default() }
    }
}

impl ResponseBody {
    /// The same body. All of it counts against `budget` until it is sent.
    pub fn held(self, budget: &Arc<ByteBudget>) -> Self {
        let Self { first, rest, _head, _timer } = self;
        let rest = rest.into_iter().map(|part| held(part, budget));
        Self { first: held(first, budget), rest: rest.collect(), _head, _timer }
    }

    /// The same body. `sink` takes the time from `since` until it is written or dropped.
    pub fn timed(self, sink: &'static dyn WriteSink, since: Instant) -> Self {
        Self { _timer: Some(WriteTimer { sink, since }), ..self }
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
            self.first = match self.rest.pop_front() {
                Some(part) => part,
                None => return Poll::Ready(None),
            };
        }
        let part = std::mem::take(&mut self.first);
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
