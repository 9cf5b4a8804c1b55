//! Keys as clients send them, and the hashes that are kept in place of them.
//!
//! A hash is keyed with a secret of the server, so that a copy of the release log alone does not
//! tell whether a guessed key is right.

use std::fmt;

use gristmill_core::{Digest, HashKeyId, KeyHash, KeyHashes};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};

/// The length of the secret with which hashes are made.
pub const HASH_KEY_BYTES: usize = 32;

/// The block of SHA-256, to which HMAC fills up its secret.
const BLOCK_BYTES: usize = 64;

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

/// The digest that earlier versions stored in place of a key.
pub fn digest(key: &str) -> Digest {
    Digest::from_bytes(Sha256::digest(key).into())
}

/// The hash that earlier versions kept in place of a key.
pub fn plain_hash(key: &str) -> KeyHash {
    KeyHash::Plain(digest(key))
}

/// A new key: `prefix` and 64 hexadecimal digits.
///
/// # Errors
/// The system has no randomness.
pub fn new_key(prefix: &str) -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{prefix}{}", Digest::from_bytes(bytes).hex()))
}

/// Makes the hashes of keys with a secret of the server. Clones share the secret.
#[derive(Clone)]
pub struct KeyHasher {
    /// After the secret, before the key.
    begun: Hmac<Sha256>,
    id: HashKeyId,
}

impl KeyHasher {
    /// A hasher with this secret.
    pub fn new(secret: &[u8; HASH_KEY_BYTES]) -> Self {
        let mut block = [0; BLOCK_BYTES];
        block[..HASH_KEY_BYTES].copy_from_slice(secret);
        let begun = Hmac::<Sha256>::new(&block.into());
        let name: [u8; 32] = mac(begun.clone(), "gristmill hash key");
        let id = HashKeyId::from_bytes([name[0], name[1], name[2], name[3]]);
        Self { begun, id }
    }

    /// The name of the secret.
    pub fn id(&self) -> HashKeyId {
        self.id
    }

    /// The hash that is kept in place of a key.
    pub fn hash(&self, key: &str) -> KeyHash {
        let digest = Digest::from_bytes(mac(self.begun.clone(), key));
        KeyHash::Keyed { by: self.id, digest }
    }

    /// Both hashes of a key.
    pub fn hashes(&self, key: &str) -> KeyHashes {
        KeyHashes { keyed: self.hash(key), plain: Some(plain_hash(key)) }
    }
}

impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHasher").field("id", &self.id).finish_non_exhaustive()
    }
}

fn mac(mut begun: Hmac<Sha256>, text: &str) -> [u8; 32] {
    begun.update(text.as_bytes());
    begun.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_the_secret_and_is_that_of_rfc_2104() {
        let (hasher, other) = (KeyHasher::new(&[7; 32]), KeyHasher::new(&[8; 32]));
        assert_ne!(hasher.id(), other.id());
        assert_ne!(hasher.hash("a key"), other.hash("a key"));
        assert_eq!(hasher.hash("a key"), hasher.clone().hash("a key"));
        let expected = {
            let inner: [u8; 32] =
                Sha256::digest([&[0x36 ^ 7; 32][..], &[0x36; 32], b"a key"].concat()).into();
            let outer = [&[0x5c ^ 7; 32][..], &[0x5c; 32], &inner].concat();
            Digest::from_bytes(Sha256::digest(outer).into())
        };
        assert_eq!(hasher.hash("a key"), KeyHash::Keyed { by: hasher.id(), digest: expected });
        let both = hasher.hashes("a key");
        assert!(
            both.include(&KeyHash::Plain(digest("a key"))) && !both.include(&other.hash("a key"))
        );
    }

    #[test]
    fn new_keys_differ_and_can_be_sent() {
        let keys = [new_key("gmt_").unwrap(), new_key("gmt_").unwrap()];
        assert!(keys[0] != keys[1] && keys.iter().all(|key| key.len() == 68 && can_be_sent(key)));
    }

    #[test]
    fn only_bearer_tokens_open_anything() {
        assert_eq!(bearer_in("bEARER  the-key "), "the-key");
        for other in ["Basic dXNlcjpwYXNz", "Bearer", "Bearer ", "the-key", "", "Bearer\tthe-key"] {
            assert_eq!(bearer_in(other), "", "{other:?}");
        }
    }
}
