//! Keys as clients send them.

use gristmill_core::Digest;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};

/// A token that matches no key: no key is empty.
pub const NO_TOKEN: &str = "";

/// The bearer token of a request. Other credentials become [`NO_TOKEN`]. They must not count as
/// missing, because a call without credentials acts as the open tenant.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?;
    Some(value.to_str().map_or(NO_TOKEN, bearer_in))
}

/// The bearer token in a header's value, or [`NO_TOKEN`].
pub fn bearer_in(value: &str) -> &str {
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => NO_TOKEN,
    }
}

/// Whether a header can carry this key unchanged.
pub fn can_be_sent(key: &str) -> bool {
    key.trim() == key && key.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// The digest that is stored in place of a key.
pub fn digest(key: &str) -> Digest {
    Digest::from_bytes(Sha256::digest(key).into())
}

#[cfg(test)]
mod tests {
    use super::bearer_in;

    #[test]
    fn only_bearer_tokens_open_anything() {
        assert_eq!(bearer_in("bEARER  the-key "), "the-key");
        for other in ["Basic dXNlcjpwYXNz", "Bearer", "Bearer ", "the-key", "", "Bearer\tthe-key"] {
            assert_eq!(bearer_in(other), "", "{other:?}");
        }
    }
}
