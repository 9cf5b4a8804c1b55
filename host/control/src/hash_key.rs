//! The secret with which keys and tokens were hashed must be the one that the server has: with
//! another one no key would open anything.

use std::collections::BTreeSet;

use gristmill_core::HashKeyId;

/// Why the server cannot check keys and tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the keys and tokens of this store were hashed with the hash key {}, and {}: put the file \
     hash-key back into the data directory, from a copy of it; without it these keys and tokens \
     cannot be checked", .needed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    .has.map_or("there is none".into(), |has| format!("hash-key is another one, {has}"))
)]
pub struct HashKeyError {
    needed: BTreeSet<HashKeyId>,
    has: Option<HashKeyId>,
}

/// Check the secret that the server has against those with which hashes were made.
///
/// # Errors
/// Some were made with another one.
pub(crate) fn check(
    mut needed: BTreeSet<HashKeyId>,
    has: Option<HashKeyId>,
) -> Result<(), HashKeyError> {
    needed.retain(|key| Some(*key) != has);
    match needed.is_empty() {
        true => Ok(()),
        false => Err(HashKeyError { needed, has }),
    }
}
