//! Who may call a tenant's pipelines, by the hashes of keys.
//!
//! Invariant: a comparison of keys takes the same time for every key.

use gristmill_core::{Digest, KeyHash, KeyHashes};
use subtle::{Choice, ConstantTimeEq};

/// Who may call a tenant's pipelines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anyone.
    Open,
    /// Callers with one of the keys that have these hashes.
    Keys(Vec<KeyHash>),
}

impl Access {
    /// Whether a key with these hashes opens the tenant. Takes the same time for every key.
    pub fn admits(&self, key: &KeyHashes) -> bool {
        match self {
            Self::Open => true,
            Self::Keys(keys) => {
                let any = keys
                    .iter()
                    .fold(Choice::from(0), |found, known_key| found | same(known_key, key));
                any.into()
            }
        }
    }
}

/// Whether `kept` is a hash of the key with these hashes. Takes the same time for every key.
pub fn same_key(kept: &KeyHash, key: &KeyHashes) -> bool {
    same(kept, key).into()
}

/// Compare the key with a hash that no key has, which takes as long as with that of a key.
pub fn is_no_key(key: &KeyHashes) -> bool {
    let digest = Digest::from_bytes([0; 32]);
    let none = match key.keyed {
        KeyHash::Keyed { by, .. } => KeyHash::Keyed { by, digest },
        KeyHash::Plain(_) => KeyHash::Plain(digest),
    };
    same_key(&none, key)
}

/// Of which kind the kept hash is, and with which secret it was made, does not depend on the key.
fn same(kept: &KeyHash, key: &KeyHashes) -> Choice {
    match (kept, key.keyed, key.plain) {
        (KeyHash::Keyed { by, digest }, KeyHash::Keyed { by: secret, digest: key }, _)
            if *by == secret =>
        {
            digest.as_bytes().ct_eq(key.as_bytes())
        }
        (KeyHash::Plain(digest), _, Some(KeyHash::Plain(key))) => {
            digest.as_bytes().ct_eq(key.as_bytes())
        }
        _ => Choice::from(0),
    }
}

#[cfg(test)]
mod tests {
    use gristmill_core::HashKeyId;

    use super::*;

    fn digest(byte: u8) -> Digest {
        Digest::from_bytes([byte; 32])
    }

    fn keyed(digest: Digest) -> KeyHash {
        KeyHash::Keyed { by: HashKeyId::from_bytes([1; 4]), digest }
    }

    /// The hashes of the key number `byte`.
    fn key(byte: u8) -> KeyHashes {
        let plain = Some(KeyHash::Plain(digest(byte)));
        KeyHashes { keyed: keyed(digest(100 + byte)), plain }
    }

    #[test]
    fn each_key_of_the_tenant_opens_it_and_no_other_does() {
        let access = Access::Keys(vec![KeyHash::Plain(digest(1)), key(2).keyed]);
        assert!(access.admits(&key(1)) && access.admits(&key(2)));
        assert!(!access.admits(&key(3)));
        assert!(!access.admits(&KeyHashes { plain: None, ..key(1) }));
        let mut nearly = [1; 32];
        nearly[31] = 0;
        let nearly = Some(KeyHash::Plain(Digest::from_bytes(nearly)));
        assert!(!access.admits(&KeyHashes { plain: nearly, ..key(3) }));
    }

    #[test]
    fn an_open_tenant_admits_any_key_and_one_without_keys_admits_none() {
        assert!(Access::Open.admits(&key(1)));
        assert!(!Access::Keys(Vec::new()).admits(&key(1)));
    }

    #[test]
    fn keys_are_compared_over_their_whole_length_and_by_their_kind() {
        assert!(same_key(&key(7).keyed, &key(7)));
        let mut nearly = [107; 32];
        nearly[0] = 8;
        let nearly = keyed(Digest::from_bytes(nearly));
        assert!(!same_key(&nearly, &key(7)));
        let other = KeyHash::Keyed { by: HashKeyId::from_bytes([2; 4]), digest: digest(107) };
        assert!(!is_no_key(&key(7)));
        assert!(!same_key(&other, &key(7)) && !same_key(&KeyHash::Plain(digest(107)), &key(7)));
    }
}
