//! Bodies of calls and answers that count against their tenant's budget.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gristmill_core::{ByteBudget, HeldBytes};
use http::Request;
use hyper::body::{Body, Frame, SizeHint};
use tonic::Status;

use super::status_of;
use crate::body::{RequestBody, held};
use crate::problem::Problem;

/// A call's body: its bytes count from when they are read until its message is.
///
/// Where a call is one message, the end of it is passed on only with the end of the call: then it is taken apart
/// and answered at once, and nobody who leaves a call open has a message, which may be large where it came
/// compressed, lie around uncounted.
pub(super) struct MeteredCall {
    body: RequestBody,
    held: Option<Arc<HeldBytes>>,
    streams: bool,
    last: Option<Frame<Bytes>>,
}

/// `call`, metered. Where it is a stream of messages, whoever takes them finds what is held among the
/// extensions, to release it.
pub(super) fn metered(
    mut call: Request<RequestBody>,
    budget: Option<&Arc<ByteBudget>>,
    streams: bool,
) -> Request<MeteredCall> {
    let held = budget.map(|budget| Arc::new(budget.hold(0)));
    if let Some(held) = held.as_ref().filter(|_| streams) {
        call.extensions_mut().insert(held.clone());
    }
    call.map(|body| MeteredCall { body, held, streams, last: None })
}

impl Body for MeteredCall {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
                return Poll::Ready(self.last.take().map(Ok));
            };
            let frame = frame.map_err(Status::from_error)?;
            if let (Some(held), Some(data)) = (&self.held, frame.data_ref()) {
                held.try_add(data.len()).map_err(|error| status_of(&Problem::from(error)))?;
            }
            if self.streams || self.last.is_none() && self.body.is_end_stream() {
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

/// An answer's body: its bytes count until they are written.
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
