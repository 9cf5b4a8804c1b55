//! Bodies of calls and answers that count against their tenant's budget.
//!
//! Invariant: the only message of a call is decoded when all of the call has arrived. So it counts
//! in its decoded form from the same moment. A message of a stream must arrive within its timeout.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use gristmill_core::{ByteBudget, HeldBytes};
use gristmill_transport::body::{Turns, held};
use gristmill_transport::{Ongoing, Problem, Requests};
use http::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::Status;

use super::status::status_of;

/// A call's body. Its bytes count while they are read, and until its message is decoded.
///
/// If a call is one message, the end of the message is passed on only with the end of the call. So
/// it is decoded and answered at once. Otherwise a client could leave a call open and keep a large
/// decompressed message in memory that no budget counts. In a stream of messages, each message that
/// has begun must arrive within a timeout.
pub(super) struct MeteredCall {
    body: Incoming,
    held: Option<Arc<HeldBytes>>,
    stream: Option<Pace>,
    last: Option<Frame<Bytes>>,
    turns: Turns,
}

/// The same `call`, with its bytes metered. A stream has a `message_timeout`, which is the time for
/// each of its messages; its held bytes are an extension of the call, so that the reader of the
/// messages can release them.
pub(super) fn metered(
    mut call: Request<Incoming>,
    budget: Option<&Arc<ByteBudget>>,
    message_timeout: Option<Duration>,
) -> Request<MeteredCall> {
    let held = budget.map(|budget| Arc::new(budget.hold(0)));
    if let Some(held) = held.as_ref().filter(|_| message_timeout.is_some()) {
        call.extensions_mut().insert(held.clone());
    }
    let requests = call.extensions().get::<Arc<Requests>>().cloned();
    let stream = message_timeout.map(|timeout| Pace::new(timeout, requests));
    call.map(|body| MeteredCall { body, held, stream, last: None, turns: Turns::default() })
}

impl Body for MeteredCall {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            ready!(self.turns.poll_next(context));
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
                let is_late = self.stream.as_mut().is_some_and(|pace| pace.is_late(context));
                if !is_late {
                    return Poll::Pending;
                }
                let detail = "a message of the stream did not arrive within the timeout";
                return Poll::Ready(Some(Err(Status::deadline_exceeded(detail))));
            };
            let Some(frame) = frame else {
                return Poll::Ready(self.last.take().map(Ok));
            };
            let frame = frame.map_err(|error| Status::from_error(error.into()))?;
            self.turns.took(frame.data_ref().map_or(0, Bytes::len));
            if let (Some(held), Some(data)) = (&self.held, frame.data_ref()) {
                held.try_add(data.len()).map_err(|error| status_of(&Problem::from(error)))?;
            }
            if let (Some(pace), Some(data)) = (&mut self.stream, frame.data_ref()) {
                pace.read(data);
            }
            if self.stream.is_some() || self.last.is_none() && self.body.is_end_stream() {
                return Poll::Ready(Some(Ok(frame)));
            }
            if let Some(before) = self.last.replace(frame) {
                return Poll::Ready(Some(Ok(before)));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_none() && self.body.is_end_stream()
    }
}

/// The bytes of the prefix of a message: a flag for compression, and the message's length.
pub(super) const PREFIX_BYTES: usize = 5;

/// The position in a stream's message, and the time by which it must arrive.
struct Pace {
    prefix: [u8; PREFIX_BYTES],
    prefix_len: usize,
    /// The bytes of the message that have not arrived.
    left: usize,
    timeout: Duration,
    /// Runs from a message's first byte to its last.
    timer: Option<Pin<Box<Sleep>>>,
    /// The counts of the connection. Such a message counts as under way.
    requests: Option<Arc<Requests>>,
    ongoing: Option<Ongoing>,
}

impl Pace {
    fn new(timeout: Duration, requests: Option<Arc<Requests>>) -> Self {
        Self {
            prefix: [0; PREFIX_BYTES],
            prefix_len: 0,
            left: 0,
            timeout,
            timer: None,
            requests,
            ongoing: None,
        }
    }

    fn read(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.prefix_len < PREFIX_BYTES {
                let len = data.len().min(PREFIX_BYTES - self.prefix_len);
                self.prefix[self.prefix_len..][..len].copy_from_slice(&data[..len]);
                self.prefix_len += len;
                data = &data[len..];
                let [_, len @ ..] = self.prefix;
                self.left = u32::from_be_bytes(len) as usize;
            } else {
                let len = data.len().min(self.left);
                self.left -= len;
                data = &data[len..];
            }
            if self.prefix_len == PREFIX_BYTES && self.left == 0 {
                self.prefix_len = 0;
                self.timer = None;
            }
        }
        self.ongoing = match self.ongoing.take() {
            _ if self.prefix_len == 0 => None,
            None => self.requests.as_ref().map(Requests::begin),
            ongoing => ongoing,
        };
    }

    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        if self.prefix_len == 0 {
            return false;
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        timer.as_mut().poll(context).is_ready()
    }
}

/// An answer's body. Its bytes count until they are written.
pub struct MeteredAnswer {
    body: tonic::body::Body,
    budget: Option<Arc<ByteBudget>>,
}

impl MeteredAnswer {
    pub(crate) fn new(body: tonic::body::Body, budget: Option<Arc<ByteBudget>>) -> Self {
        Self { body, budget }
    }
}

impl Body for MeteredAnswer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let Some(budget) = &self.budget else { return Poll::Ready(frame) };
        let counted = |frame: Frame<Bytes>| frame.map_data(|data| held(data, budget));
        Poll::Ready(frame.map(|frame| frame.map(counted)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Pace;

    #[test]
    fn a_message_has_begun_with_its_first_byte_and_ends_with_its_last() {
        let mut pace = Pace::new(Duration::from_secs(1), None);
        let begun = |pace: &Pace| pace.prefix_len > 0;
        let stream = [&[0, 0, 0, 0, 3][..], b"abc", &[0, 0, 0, 0, 0], &[1, 0, 0, 1, 0]].concat();
        let expected = [[true; 7].as_slice(), &[false], &[true; 4], &[false], &[true; 5]].concat();
        for (byte, expected) in stream.iter().zip(&expected) {
            pace.read(&[*byte]);
            assert_eq!(begun(&pace), *expected);
        }
        assert_eq!(pace.left, 256);
        pace.read(&[7; 256]);
        assert!(!begun(&pace));
        // All at once.
        pace.read(&stream);
        assert_eq!((begun(&pace), pace.left), (true, 256));
    }
}
