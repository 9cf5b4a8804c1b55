//! `X-Request-Id`: the client's own, or a new one.

use std::array::from_fn;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName};

/// The header with the request's id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken from a client.
const OWN_BYTES_MAX: usize = 128;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Makes ids for requests without one. An id does not reveal the number of earlier requests, which
/// would reveal the traffic of other tenants.
#[derive(Default)]
pub struct RequestIds {
    /// A hash with a random key, so that the hashed counter cannot be guessed.
    keys: [RandomState; 2],
    next: AtomicU64,
}

impl RequestIds {
    /// The client's own id if it is safe in a log line, otherwise a new one.
    pub fn of(&self, headers: &HeaderMap) -> Arc<str> {
        let sent = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        self.of_text(sent.unwrap_or_default())
    }

    /// The same for an id that came in another way than in the header.
    pub fn of_text(&self, text: &str) -> Arc<str> {
        if is_sane(text) { text.into() } else { self.new_id() }
    }

    fn new_id(&self) -> Arc<str> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let [high, low] = self.keys.each_ref().map(|key| key.hash_one(next));
        // This runs for each request, and formatting would take longer than routing.
        let digits = u128::from(high) << 64 | u128::from(low);
        let text: [u8; 20] = from_fn(|at| HEX[(digits >> (124 - 4 * at)) as usize & 0xf]);
        str::from_utf8(&text).unwrap_or_default().into()
    }
}

fn is_sane(id: &str) -> bool {
    let sane = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'.' | b'_' | b':' | b'/' | b'+' | b'=' | b'-')
    };
    (1..=OWN_BYTES_MAX).contains(&id.len()) && id.as_bytes().iter().all(sane)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::RequestIds;

    #[test]
    fn only_ids_that_can_stand_in_a_log_line_are_kept() {
        let ids = RequestIds::default();
        for id in ["order-66", "a/b+c=:._", "x"] {
            assert_eq!(&*ids.of_text(id), id);
        }
        let long = "x".repeat(129);
        for id in ["", "a b", "a} ERROR x{b=c", "a\"b", "a,b", "ä", long.as_str()] {
            let made = ids.of_text(id);
            assert_eq!(made.len(), 20, "{id:?} became {made}");
        }
    }

    #[test]
    fn ids_differ_and_do_not_count() {
        let ids = RequestIds::default();
        let made: Vec<_> = (0..1000).map(|_| ids.of_text("")).collect();
        assert_eq!(made.iter().collect::<HashSet<_>>().len(), made.len());
        let begins: HashSet<_> = made.iter().map(|id| &id[..2]).collect();
        assert!(begins.len() > 200, "only {} first digits", begins.len());
    }
}
