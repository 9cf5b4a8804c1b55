//! Keys as clients send them.

use gristmill_core::Digest;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};

/// The bearer token, where there is one.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    bearer_in(headers.get(AUTHORIZATION)?.to_str().ok()?)
}

/// The same in a header's value.
pub(crate) fn bearer_in(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether a key arrives as it was written: what a header cannot carry, or loses, opens nothing.
pub(crate) fn can_be_sent(key: &str) -> bool {
    key.trim() == key && key.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// What is kept of a key.
pub(crate) fn digest(key: &str) -> Digest {
    Digest::from_bytes(Sha256::digest(key).into())
}
