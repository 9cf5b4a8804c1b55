//! The body of a request, whose bytes are counted.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gristmill_sandbox::{OUTGOING_BODY_BYTES_MAX, OutgoingBody, OutgoingFault};
use hyper::body::{Body, Frame, SizeHint};

/// A body that fails when it is too large.
pub(super) struct RequestBody {
    inner: OutgoingBody,
    left: usize,
}

impl RequestBody {
    pub(super) fn new(inner: OutgoingBody) -> Self {
        Self { inner, left: OUTGOING_BODY_BYTES_MAX }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = OutgoingFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, OutgoingFault>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(task));
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Poll::Ready(frame)
            }
            None => Poll::Ready(Some(Err(OutgoingFault::RequestTooLarge))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
