//! Hashes of keys, which are kept in place of the keys.
//!
//! Invariant: each hash says which kind it has, and which secret it was made with. A plain SHA-256
//! is kept only for keys of logs up to format 5, until they are replaced, and for the root token.

use std::fmt;
use std::str::FromStr;

use crate::digest::Digest;
use crate::serde_as_text::serde_as_text;

const KEYED_PREFIX: &str = "hmac-sha256:";

/// The name of the secret with which keyed hashes are made. It tells nothing about the secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HashKeyId([u8; 4]);

/// The hash of a key, as it is kept: the key of a tenant, or an admin token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyHash {
    /// The key's SHA-256, as earlier versions kept it. Written as a digest.
    Plain(Digest),
    /// The key's HMAC-SHA-256. Written `hmac-sha256:`, the name of the secret, a colon and 64
    /// hexadecimal digits.
    Keyed {
        /// The name of the secret.
        by: HashKeyId,
        /// The hash.
        digest: Digest,
    },
}

/// The hashes of one key, to be compared with a hash of either kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHashes {
    /// [`KeyHash::Keyed`], which is kept.
    pub keyed: KeyHash,
    /// [`KeyHash::Plain`], for comparing. None if there is nothing to compare it with.
    pub plain: Option<KeyHash>,
}

/// A text that is not a [`KeyHash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid hash of a key")]
pub struct InvalidKeyHash;

impl HashKeyId {
    /// A name from its 4 bytes.
    pub fn from_bytes(bytes: [u8; 4]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for HashKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for HashKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl KeyHash {
    /// The name of the secret that it was made with.
    pub fn hash_key(&self) -> Option<HashKeyId> {
        match self {
            Self::Plain(_) => None,
            Self::Keyed { by, .. } => Some(*by),
        }
    }
}

impl KeyHashes {
    /// Whether `kept` is a hash of the same key. Not for keys that callers send: the time that it
    /// takes depends on them.
    pub fn include(&self, kept: &KeyHash) -> bool {
        self.keyed == *kept || self.plain == Some(*kept)
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(digest) => write!(f, "{digest}"),
            Self::Keyed { by, digest } => write!(f, "{KEYED_PREFIX}{by}:{}", digest.hex()),
        }
    }
}

/// Without the hash: it must not get into the log.
impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(..)")
    }
}

impl fmt::Debug for KeyHashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHashes(..)")
    }
}

impl FromStr for KeyHash {
    type Err = InvalidKeyHash;

    fn from_str(text: &str) -> Result<Self, InvalidKeyHash> {
        let digest = |text: &str| text.parse().map_err(|_| InvalidKeyHash);
        let Some(rest) = text.strip_prefix(KEYED_PREFIX) else {
            return digest(text).map(Self::Plain);
        };
        let (by, hex) = rest.split_once(':').ok_or(InvalidKeyHash)?;
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if by.len() != 8 || !is_hex(by) {
            return Err(InvalidKeyHash);
        }
        let by = u32::from_str_radix(by, 16).map_err(|_| InvalidKeyHash)?;
        let by = HashKeyId(by.to_be_bytes());
        Ok(Self::Keyed { by, digest: digest(&format!("sha256:{hex}"))? })
    }
}

serde_as_text!(KeyHash);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_says_of_which_kind_it_is() {
        let digest = Digest::from_bytes(std::array::from_fn(|i| i as u8 * 7));
        let by = HashKeyId::from_bytes([0, 0xab, 1, 0xff]);
        let (plain, keyed) = (KeyHash::Plain(digest), KeyHash::Keyed { by, digest });
        assert_eq!(plain.to_string(), digest.to_string(), "as in older logs");
        assert_eq!(keyed.to_string(), format!("hmac-sha256:00ab01ff:{}", digest.hex()));
        for hash in [plain, keyed] {
            assert_eq!(hash.to_string().parse(), Ok(hash));
        }
        assert_eq!((plain.hash_key(), keyed.hash_key()), (None, Some(by)));
        let hex = digest.hex();
        for wrong in
            ["", "hmac-sha256:", "hmac-sha256:00ab01f:", "hmac-sha256:+0ab01ff:", "hmac-sha256:zz:"]
        {
            assert!(format!("{wrong}{hex}").parse::<KeyHash>().is_err(), "{wrong}");
        }
        assert!(!format!("{plain:?} {keyed:?}").contains(&hex[..8]));
    }
}
