//! Reading a body, bounded in bytes and in time.

use bytes::{Bytes, BytesMut};
use gristmill_core::{Deadline, ErrorCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use super::Refusal;
use crate::problem::Problem;

/// The whole body. What says that it is over `limit` is refused unread; what turns out to be, as
/// soon as it does.
pub(super) async fn read(
    body: Incoming,
    limit: usize,
    deadline: Deadline,
) -> Result<Bytes, Refusal> {
    let too_large = || {
        let detail = format!("the body is over the pipeline's limit of {limit} bytes");
        Refusal::from(Problem::new(ErrorCode::BodyTooLarge, detail))
    };
    let hint = body.size_hint();
    if hint.lower() > limit as u64 {
        return Err(too_large());
    }
    let reading = collect(body, limit, hint.exact().unwrap_or(0) as usize);
    match tokio::time::timeout_at(deadline.instant().into(), reading).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => Err(too_large()),
        Ok(Err(error)) => {
            let detail = format!("the body could not be read: {error}");
            Err(Problem::new(ErrorCode::InvalidRequest, detail).into())
        }
        Err(_) => {
            let detail = "the body did not arrive within the pipeline's timeout";
            Err(Problem::new(ErrorCode::RequestTimeout, detail).into())
        }
    }
}

/// The body's bytes; none where they are more than `limit`.
async fn collect(
    mut body: Incoming,
    limit: usize,
    expected: usize,
) -> Result<Option<Bytes>, hyper::Error> {
    let Some(first) = next(&mut body).await? else { return Ok(Some(Bytes::new())) };
    if first.len() == expected {
        return Ok(Some(first));
    }
    if first.len() > limit {
        return Ok(None);
    }
    let mut all = BytesMut::with_capacity(expected.max(first.len()));
    all.extend_from_slice(&first);
    while let Some(chunk) = next(&mut body).await? {
        if all.len() + chunk.len() > limit {
            return Ok(None);
        }
        all.extend_from_slice(&chunk);
    }
    Ok(Some(all.freeze()))
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
