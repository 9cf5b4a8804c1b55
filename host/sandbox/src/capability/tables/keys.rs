//! The keys that a guest gives, and their bounds.

use gristmill_core::Tensor;
use gristmill_tables::Key;

use super::bindings::wit;
use crate::capability::ids::{Id, ids_of};

/// Maximum keys of a call, and bytes of a key.
const KEYS_MAX: usize = 4096;
const KEY_BYTES_MAX: usize = 1024;

/// The work of finding a row, as the bytes that take as long to be read.
const KEY_WORK_BYTES: usize = 256;

/// Keys, of which some may be too long, or not UTF-8.
pub(super) enum Source {
    List(Vec<String>),
    Tensor(Tensor),
}

impl Source {
    /// The work that a request with these keys takes, as bytes that are read.
    pub(super) fn work(&self) -> usize {
        let bytes = match self {
            Self::List(keys) => keys.iter().map(String::len).sum(),
            Self::Tensor(tensor) => tensor.as_bytes().len(),
        };
        bytes + self.count() * KEY_WORK_BYTES
    }

    fn count(&self) -> usize {
        match self {
            Self::List(keys) => keys.len(),
            Self::Tensor(tensor) => tensor.rows(),
        }
    }

    /// The keys, within the limits.
    pub(super) fn keys(&self) -> Result<Vec<Key<'_>>, wit::TableError> {
        let count = self.count();
        if count > KEYS_MAX {
            return Err(wit::TableError::TooLarge(format!(
                "{count} keys are over the limit of {KEYS_MAX} for one call"
            )));
        }
        match self {
            Self::List(keys) => keys.iter().map(|key| text(key.as_bytes())).collect(),
            Self::Tensor(tensor) => {
                let ids = ids_of("keys", tensor).map_err(wit::TableError::InvalidArgument)?;
                let key = |id| match id {
                    Id::Number(number) => Ok(Key::Number(number)),
                    Id::Text(key) => text(key),
                };
                ids.map(key).collect()
            }
        }
    }
}

fn text(key: &[u8]) -> Result<Key<'_>, wit::TableError> {
    if key.len() > KEY_BYTES_MAX {
        return Err(wit::TableError::TooLarge(format!(
            "a key of {} bytes is over the limit of {KEY_BYTES_MAX}",
            key.len()
        )));
    }
    let key = str::from_utf8(key);
    let not_text = |error| wit::TableError::InvalidArgument(format!("a key is not UTF-8: {error}"));
    Ok(Key::Text(key.map_err(not_text)?))
}
