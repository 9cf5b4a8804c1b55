//! `X-Request-Id`: the client's own, or a new one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Makes ids for requests that bring none.
pub(crate) struct RequestIds {
    prefix: u64,
    next: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Differs between restarts and replicas; an id is for finding log lines, not a secret.
        let prefix = (started.as_nanos() as u64) ^ (u64::from(std::process::id()) << 40);
        Self { prefix, next: AtomicU64::new(0) }
    }
}

impl RequestIds {
    /// The client's own id where it is a sane one, else a new one.
    pub(crate) fn of(&self, headers: &HeaderMap) -> String {
        let own = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        match own.filter(|id| (1..=128).contains(&id.len())) {
            Some(id) => id.to_owned(),
            None => {
                let next = self.next.fetch_add(1, Ordering::Relaxed);
                // One for each request: formatting it would take longer than routing it.
                let digits =
                    u128::from(self.prefix & 0xffff_ffff_ffff) << 32 | u128::from(next as u32);
                let digit = |at: u32| HEX[(digits >> (76 - 4 * at)) as usize & 0xf] as char;
                (0..20).map(digit).collect()
            }
        }
    }
}
