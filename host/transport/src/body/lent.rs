//! A body that is lent to a handler, which may move it into tasks of its own. It comes back when
//! the handler drops it, so that the plane sees whether it was read to its end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use parking_lot::Mutex;

/// The body of a request, as its handler has it.
pub struct Lent {
    /// None only while it is dropped.
    body: Option<Incoming>,
    lender: Lender,
}

/// Where the body comes back to.
#[derive(Clone, Debug, Default)]
pub struct Lender(Arc<Mutex<Option<Incoming>>>);

impl Lent {
    /// Lend `body`.
    pub fn new(body: Incoming) -> (Self, Lender) {
        let lender = Lender::default();
        (Self { body: Some(body), lender: lender.clone() }, lender)
    }
}

impl Lender {
    /// The body, if its handler has dropped it.
    pub fn take(&self) -> Option<Incoming> {
        self.0.lock().take()
    }
}

impl Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Incoming::size_hint).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.lender.0.lock() = self.body.take();
    }
}
