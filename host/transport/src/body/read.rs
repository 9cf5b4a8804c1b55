//! Reading a body, bounded in bytes and in time.

use std::error::Error;
use std::pin::pin;

use bytes::Bytes;
use gristmill_core::{ErrorCode, HeldBytes};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout_at;

use super::hold::{count, with_held};
use super::plan::ReadPlan;
use super::turns::Turns;
use super::whole::{POOLED_BYTES_MIN, Whole};
use crate::problem::Problem;

/// Read a whole body.
///
/// If the Content-Length is over the limit, the body is refused unread. Otherwise it is refused at
/// the byte that exceeds the limit.
///
/// # Errors
/// `body_too_large`, `request_timeout` at the deadline, `tenant_busy` if the budget is used up, and
/// `invalid_request` for a body that ends early.
pub async fn read(body: &mut Incoming, plan: ReadPlan<'_>) -> Result<Bytes, Problem> {
    let ReadPlan { bytes: limit, deadline, .. } = plan;
    let too_large = || {
        let detail = format!("the body is over the limit of {limit} bytes");
        Problem::new(ErrorCode::BodyTooLarge, detail)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let held = plan.budget.map(|budget| budget.hold(0));
    let read = {
        // Pinned here, because the timeout would move it.
        let reading = pin!(collect(body, &plan, held.as_ref()));
        timeout_at(deadline.instant().into(), reading).await
    };
    match read {
        Ok(Ok(Some(bytes))) => Ok(with_held(bytes, held)),
        Ok(Ok(None)) => Err(too_large()),
        Ok(Err(problem)) => Err(problem),
        Err(_) => {
            let detail = "the body did not arrive within the timeout";
            Err(Problem::new(ErrorCode::RequestTimeout, detail))
        }
    }
}

fn unreadable(error: &hyper::Error) -> Problem {
    // hyper names the cause only in its source.
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let detail = format!("the body could not be read: {error}{cause}");
    Problem::new(ErrorCode::InvalidRequest, detail)
}

/// The body's bytes. A short body that came in one read is not copied; any other is copied once.
/// None if the body is over the limit.
async fn collect(
    body: &mut Incoming,
    plan: &ReadPlan<'_>,
    held: Option<&HeldBytes>,
) -> Result<Option<Bytes>, Problem> {
    let expected = body.size_hint().exact().map(|bytes| bytes as usize);
    let Some(first) = next(body, held).await? else { return Ok(Some(Bytes::new())) };
    // A longer body is copied: it would keep hyper's read buffer, which may be larger than the
    // body.
    if expected == Some(first.len()) && first.len() < POOLED_BYTES_MIN {
        return Ok(Some(first));
    }
    let mut whole = Whole::begin(plan, expected, first.len());
    let mut turns = Turns::default();
    let mut chunk = first;
    loop {
        let len = whole.len() + chunk.len();
        if len > plan.bytes {
            return Ok(None);
        }
        // A client that sent this much will probably send the rest.
        let capacity = expected.unwrap_or(0).max(len * 2).min(plan.bytes);
        if !whole.push(&chunk, capacity) {
            let detail = "the body is longer than its Content-Length";
            return Err(Problem::new(ErrorCode::InvalidRequest, detail));
        }
        turns.took(chunk.len());
        drop(chunk);
        turns.next().await;
        match next(body, held).await? {
            Some(next) => chunk = next,
            None => return Ok(Some(whole.freeze())),
        }
    }
}

/// The next data. Trailers are skipped.
pub(super) async fn next(
    body: &mut Incoming,
    held: Option<&HeldBytes>,
) -> Result<Option<Bytes>, Problem> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|error| unreadable(&error))?.into_data() {
            count(held, data.len())?;
            return Ok(Some(data));
        }
    }
    Ok(None)
}
