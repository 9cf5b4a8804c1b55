//! Bodies: reading one, bounded in bytes and in time, and answering with one in several parts.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use gristmill_core::{Deadline, ErrorCode};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::problem::Problem;

/// What the data plane answers.
pub(crate) type Answer = Response<ResponseBody>;

/// The most that is set aside for a body before any of it is there.
const RESERVED_BYTES_MAX: usize = 8 << 20;

/// What tensors are aligned to in a body that is put together from several reads.
const ALIGNMENT: usize = 64;

/// Bounds on reading a body.
pub(crate) struct Limits {
    pub(crate) bytes: usize,
    pub(crate) deadline: Deadline,
    /// Where in the body its tensors begin, which are to be aligned.
    pub(crate) aligned_at: usize,
}

/// The whole body. What says that it is over the limit is refused unread; what turns out to be, as
/// soon as it does.
pub(crate) async fn read(body: Incoming, limits: Limits) -> Result<Bytes, Problem> {
    let Limits { bytes: limit, deadline, aligned_at } = limits;
    let too_large = || {
        let detail = format!("the body is over the limit of {limit} bytes");
        Problem::new(ErrorCode::BodyTooLarge, detail)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let reading = collect(body, limit, aligned_at);
    match tokio::time::timeout_at(deadline.instant().into(), reading).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => Err(too_large()),
        Ok(Err(error)) => {
            let detail = format!("the body could not be read: {error}");
            Err(Problem::new(ErrorCode::InvalidRequest, detail))
        }
        Err(_) => {
            let detail = "the body did not arrive within the timeout";
            Err(Problem::new(ErrorCode::RequestTimeout, detail))
        }
    }
}

/// The body's bytes, where they were read if one read brought them all; none where they are more than
/// `limit`.
async fn collect(
    mut body: Incoming,
    limit: usize,
    aligned_at: usize,
) -> Result<Option<Bytes>, hyper::Error> {
    let expected = body.size_hint().exact().unwrap_or(0) as usize;
    let Some(first) = next(&mut body).await? else { return Ok(Some(Bytes::new())) };
    if first.len() == expected {
        return Ok(Some(first));
    }
    if first.len() > limit {
        return Ok(None);
    }
    let reserved = expected.max(first.len()).min(RESERVED_BYTES_MAX);
    let mut all = BytesMut::with_capacity(reserved + ALIGNMENT);
    let padding = (all.as_ptr() as usize).wrapping_add(aligned_at).wrapping_neg() % ALIGNMENT;
    all.resize(padding, 0);
    all.extend_from_slice(&first);
    while let Some(chunk) = next(&mut body).await? {
        if all.len() - padding + chunk.len() > limit {
            return Ok(None);
        }
        all.extend_from_slice(&chunk);
    }
    Ok(Some(all.freeze().slice(padding..)))
}

/// The next data; trailers are passed over.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// A body in parts, which are sent from where they lie.
#[derive(Debug, Default)]
pub struct ResponseBody {
    first: Bytes,
    rest: VecDeque<Bytes>,
}

impl From<Bytes> for ResponseBody {
    fn from(whole: Bytes) -> Self {
        Self { first: whole, rest: VecDeque::new() }
    }
}

impl From<Vec<Bytes>> for ResponseBody {
    fn from(parts: Vec<Bytes>) -> Self {
        let mut rest = VecDeque::from(parts);
        Self { first: rest.pop_front().unwrap_or_default(), rest }
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
