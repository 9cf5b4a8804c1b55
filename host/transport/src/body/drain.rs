//! Reading the rest of a body that its handler did not read.

use std::time::Duration;

use hyper::body::{Body, Incoming};

use super::read::next;

/// The most bytes of an unread body that are read so that the connection can be reused, and the
/// longest time for it.
const DRAINED_BYTES_MAX: usize = 64 << 10;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Read and drop the rest of a body, if it is short and arrives soon. Returns whether the
/// connection can be reused for the next request.
pub async fn drain(body: &mut Incoming) -> bool {
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
