//! Reading the rest of a body that its handler did not read.
//!
//! A connection with a longer rest is closed after the answer, and then only after its client has
//! had time to read the answer, which many read when they have sent all.

use std::time::Duration;

use http::header::{CONNECTION, EXPECT};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use hyper::body::{Body, Incoming};

use super::read::next;

/// Maximum bytes of an unread body that are read so that the connection can be reused, and the
/// longest time for it.
const DRAINED_BYTES_MAX: usize = 64 << 10;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Read the rest of a request's body if it is short. Otherwise, or if there is nothing to read it
/// from, the connection closes after `answer`.
pub async fn finish<B>(head: &Parts, rest: Option<&mut Incoming>, answer: &mut Response<B>) {
    let is_reusable = match rest {
        Some(rest) => is_reusable(head, rest, answer.status()).await,
        None => false,
    };
    if !is_reusable {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Read the rest of `body` if it is short. Returns whether the connection can be reused for the
/// next request.
async fn is_reusable(head: &Parts, body: &mut Incoming, answer: StatusCode) -> bool {
    if body.is_end_stream() {
        return true;
    }
    // The body of a client that sends too slowly or too much is not read further. A client that
    // waits for `100 Continue` may send its body or not, so its connection cannot be reused.
    let gives_up = match answer {
        StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE => true,
        status => status.as_u16() >= 400 && head.headers.contains_key(EXPECT),
    };
    !gives_up && drain(body).await
}

/// Read and drop the rest of a body, if it is short and arrives soon. Returns whether all of it
/// came.
async fn drain(body: &mut Incoming) -> bool {
    if body.size_hint().lower() > DRAINED_BYTES_MAX as u64 {
        return false;
    }
    let reading = async {
        let mut read = 0;
        while read <= DRAINED_BYTES_MAX {
            match next(body, None).await {
                Ok(Some(data)) => read += data.len(),
                // A body of known length may end early; a chunked one has no length.
                Ok(None) => return body.size_hint().exact().is_none_or(|left| left == 0),
                Err(_) => return false,
            }
        }
        false
    };
    tokio::time::timeout(DRAIN_TIMEOUT, reading).await.unwrap_or(false)
}
