//! The body of a request, whose bytes are counted.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gristmill_sandbox::{OUTGOING_BODY_BYTES_MAX, OutgoingBody, OutgoingFault};
use hyper::body::{Body, Frame, SizeHint};

/// Maximum bytes of a part. Hyper copies parts, and what is copied ahead must stay small.
const PART_BYTES_MAX: usize = 16 << 10;

/// A body that comes in small parts, and that fails when it is too large.
pub(super) struct RequestBody {
    inner: OutgoingBody,
    /// What is left of the part that came last.
    part: Bytes,
    /// The bytes that may still come.
    left: usize,
}

impl RequestBody {
    pub(super) fn new(inner: OutgoingBody) -> Self {
        Self { inner, part: Bytes::new(), left: OUTGOING_BODY_BYTES_MAX }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = OutgoingFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, OutgoingFault>>> {
        if self.part.is_empty() {
            let frame = match ready!(Pin::new(&mut self.inner).poll_frame(task)) {
                Some(Ok(frame)) => frame,
                other => return Poll::Ready(other),
            };
            let part = match frame.into_data() {
                Ok(part) => part,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            };
            match self.left.checked_sub(part.len()) {
                Some(left) => self.left = left,
                None => return Poll::Ready(Some(Err(OutgoingFault::RequestTooLarge))),
            }
            self.part = part;
        }
        let bytes = self.part.len().min(PART_BYTES_MAX);
        Poll::Ready(Some(Ok(Frame::data(self.part.split_to(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.part.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, part) = (self.inner.size_hint(), self.part.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(part));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(part));
        }
        hint
    }
}
