//! The headers `RateLimit-Policy` and `RateLimit`: a tenant's quota of requests, and what is left
//! of it.
//!
//! As the tenth draft of "RateLimit header fields for HTTP" has them
//! (draft-ietf-httpapi-ratelimit-headers-10). The one policy is `requests`: its quota `q` is the
//! burst, and its window `w` the time in which the burst refills. `r` requests can be sent at once,
//! and after `t` seconds all of the burst can.

use std::time::Duration;

use gristmill_serve::RequestQuota;
use http::{HeaderMap, HeaderName, HeaderValue};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Add both headers.
pub(crate) fn add(headers: &mut HeaderMap, quota: &RequestQuota) {
    let RequestQuota { limit, left, full_after } = quota;
    let window = seconds(limit.window()).max(1);
    let policy = format!("\"requests\";q={};w={window}", limit.burst);
    let state = format!("\"requests\";r={left};t={}", seconds(*full_after));
    for (name, text) in [(POLICY, policy), (RATE_LIMIT, state)] {
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(name, value);
        }
    }
}

/// Whole seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_the_burst_in_the_time_in_which_it_refills() {
        let every = Duration::from_secs(1);
        for (tokens, burst, left, full_after_ms, policy, state) in [
            (100, 200, 199, 10, "\"requests\";q=200;w=2", "\"requests\";r=199;t=1"),
            (3, 10, 0, 3334, "\"requests\";q=10;w=4", "\"requests\";r=0;t=4"),
            (1000, 1, 1, 0, "\"requests\";q=1;w=1", "\"requests\";r=1;t=0"),
        ] {
            let limit = gristmill_core::RateLimit { tokens, every, burst };
            let full_after = Duration::from_millis(full_after_ms);
            let mut headers = HeaderMap::new();
            add(&mut headers, &RequestQuota { limit, left, full_after });
            assert_eq!(headers[POLICY], policy);
            assert_eq!(headers[RATE_LIMIT], state);
        }
    }
}
