//! The body of an answer while it is being written.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::Response;
use hyper::body::{Body, Frame, SizeHint};

use crate::requests::{Ongoing, StaysOpen, Unwritten};

/// The body of an answer of a handler, or of the listener itself. Its request is under way until
/// the body is dropped and all of its parts are written. If the answer [stays open](StaysOpen), the
/// request is not under way, but each part is until it is written.
pub(crate) struct Answering<B> {
    body: Whose<B>,
    request: Ongoing,
}

/// The body, by the one that made it.
enum Whose<B> {
    Handler(B),
    Listener(Bytes),
}

/// A part of an answer.
pub(crate) struct AnswerPart {
    bytes: Bytes,
    unwritten: Unwritten,
}

impl<B> Answering<B> {
    /// A handler's answer to a request.
    pub(crate) fn of(answer: Response<B>, mut request: Ongoing) -> Response<Self> {
        if answer.extensions().get::<StaysOpen>().is_some() {
            request.end();
        }
        answer.map(|body| Self { body: Whose::Handler(body), request })
    }

    /// An answer that the listener itself gives.
    pub(crate) fn of_listener(answer: Response<Bytes>, request: Ongoing) -> Response<Self> {
        answer.map(|body| Self { body: Whose::Listener(body), request })
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answering<B> {
    type Data = AnswerPart;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<AnswerPart>, B::Error>>> {
        let frame = match &mut self.body {
            Whose::Handler(body) => ready!(Pin::new(body).poll_frame(context)),
            Whose::Listener(bytes) if bytes.is_empty() => None,
            Whose::Listener(bytes) => Some(Ok(Frame::data(std::mem::take(bytes)))),
        };
        let part = |bytes| AnswerPart { bytes, unwritten: self.request.requests().begin_part() };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(part))))
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

impl Buf for AnswerPart {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, bytes: usize) {
        self.unwritten.advance(bytes);
        self.bytes.advance(bytes);
    }
}
