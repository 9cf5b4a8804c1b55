//! `X-Request-Id`: the client's own, or a new one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

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
                format!("{:012x}{next:08x}", self.prefix & 0xffff_ffff_ffff)
            }
        }
    }
}
