//! The body of an answer, for as long as it is being written.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::connections::Ongoing;

/// A handler's body, or one of the listener's own. Its request is under way until it is dropped.
pub(super) struct Answering<B> {
    body: Whose<B>,
    _ongoing: Ongoing,
}

enum Whose<B> {
    Handler(B),
    Listener(Bytes),
}

impl<B> Answering<B> {
    pub(super) fn new(body: B, ongoing: Ongoing) -> Self {
        Self { body: Whose::Handler(body), _ongoing: ongoing }
    }

    /// What the listener itself answers.
    pub(super) fn own(body: Bytes, ongoing: Ongoing) -> Self {
        Self { body: Whose::Listener(body), _ongoing: ongoing }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answering<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut self.body {
            Whose::Handler(body) => Pin::new(body).poll_frame(context),
            Whose::Listener(bytes) if bytes.is_empty() => Poll::Ready(None),
            Whose::Listener(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Whose::Handler(body) => body.is_end_stream(),
            Whose::Listener(bytes) => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Whose::Handler(body) => body.size_hint(),
            Whose::Listener(bytes) => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}
