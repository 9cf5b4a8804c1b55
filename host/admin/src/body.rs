//! The body of an answer: a whole document, a file that is sent part by part, or events.

use std::error::Error;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt, TryStreamExt, try_unfold};
use gristmill_control::{ControlError, Outgoing};
use hyper::body::{Body, Frame, SizeHint};

/// Why a file could not be sent to its end.
type SendError = Box<dyn Error + Send + Sync>;

/// The body of an answer of the admin plane.
pub struct AdminBody(Kind);

enum Kind {
    Whole(Bytes),
    /// A file, and the bytes of it that are still to come. Each part is read when the client has
    /// taken the one before.
    File {
        parts: BoxStream<'static, Result<Bytes, SendError>>,
        left: u64,
    },
    /// Each is made when the client has taken the one before.
    Events(BoxStream<'static, Bytes>),
}

impl AdminBody {
    /// The body with this file. If the file turns out to be damaged, the connection breaks before
    /// the body's end.
    pub(crate) fn file(file: Outgoing) -> Self {
        let left = file.bytes();
        let parts = try_unfold(file, Outgoing::next);
        let parts = parts.map_err(|error| ControlError::from(error).logged().into()).boxed();
        Self(Kind::File { parts, left })
    }

    /// The body with these events.
    pub(crate) fn events(events: BoxStream<'static, Bytes>) -> Self {
        Self(Kind::Events(events))
    }

    /// The document, unless it is something else.
    pub(crate) fn whole(&self) -> Option<&Bytes> {
        match &self.0 {
            Kind::Whole(bytes) => Some(bytes),
            Kind::File { .. } | Kind::Events(_) => None,
        }
    }
}

impl From<Bytes> for AdminBody {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Whole(bytes))
    }
}

impl Body for AdminBody {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        let part = match &mut self.0 {
            Kind::Whole(bytes) if bytes.is_empty() => None,
            Kind::Whole(bytes) => Some(Ok(mem::take(bytes))),
            Kind::File { parts, left } => {
                let part = ready!(Pin::new(parts).poll_next(context));
                if let Some(Ok(part)) = &part {
                    *left = left.saturating_sub(part.len() as u64);
                }
                part
            }
            Kind::Events(events) => ready!(Pin::new(events).poll_next(context)).map(Ok),
        };
        Poll::Ready(part.map(|part| part.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.size_hint().exact() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::File { left, .. } => SizeHint::with_exact(*left),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}
