//! Who may call a tenant's pipelines, by the digests of keys.
//!
//! Invariant: a comparison of keys takes the same time for every key.

use gristmill_core::Digest;
use subtle::{Choice, ConstantTimeEq};

/// Who may call a tenant's pipelines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anyone.
    Open,
    /// Callers with one of the keys that have these digests.
    Keys(Vec<Digest>),
}

impl Access {
    /// Whether a key with this digest opens the tenant. Takes the same time for every key.
    pub fn admits(&self, key: Digest) -> bool {
        match self {
            Self::Open => true,
            Self::Keys(keys) => {
                let any =
                    keys.iter().fold(Choice::from(0), |found, known| found | same(*known, key));
                any.into()
            }
        }
    }
}

/// Whether two digests are equal. Takes the same time for all digests.
pub fn same_key(a: Digest, b: Digest) -> bool {
    same(a, b).into()
}

fn same(a: Digest, b: Digest) -> Choice {
    a.as_bytes().ct_eq(b.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Digest {
        Digest::from_bytes([byte; 32])
    }

    #[test]
    fn each_key_of_the_tenant_opens_it_and_no_other_does() {
        let access = Access::Keys(vec![key(1), key(2)]);
        assert!(access.admits(key(1)) && access.admits(key(2)));
        let mut nearly = [1; 32];
        nearly[31] = 0;
        assert!(!access.admits(key(3)) && !access.admits(Digest::from_bytes(nearly)));
    }

    #[test]
    fn an_open_tenant_admits_any_key_and_one_without_keys_admits_none() {
        assert!(Access::Open.admits(key(1)));
        assert!(!Access::Keys(Vec::new()).admits(key(1)));
    }

    #[test]
    fn keys_are_compared_over_their_whole_length() {
        assert!(same_key(key(7), key(7)));
        let mut nearly = [7; 32];
        nearly[0] = 8;
        assert!(!same_key(key(7), Digest::from_bytes(nearly)));
    }
}
