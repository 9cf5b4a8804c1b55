//! Which requests fit one batch: those of one shape, and of one tenant if its rows may not meet
//! those of others.
//!
//! The rest of the policy knows a shape only by its key. If two shapes had equal keys, they could
//! come into one batch. Copying that batch together would fail, and it would be bisected.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_core::{Name, NamedTensor};

/// The bit that keys of requests that share no batch have.
const LONE: u64 = 1 << 63;

/// Whether a request with this key shares no batch.
pub(crate) fn is_lone(key: u64) -> bool {
    key & LONE != 0
}

/// Makes keys. Clients cannot know its secret, so they cannot make equal keys.
#[derive(Debug, Default)]
pub(crate) struct ShapeKeys {
    state: RandomState,
    /// How many keys were made for one request each.
    lone: AtomicU64,
}

impl ShapeKeys {
    /// A key that is equal for inputs that fit one batch. Their dtypes are the model's, so only the
    /// dimensions after the first can differ. `apart` is a tenant that shares batches with no
    /// other.
    pub(crate) fn of(&self, inputs: &[NamedTensor], apart: Option<&Name>) -> u64 {
        let mut hasher = self.state.build_hasher();
        apart.hash(&mut hasher);
        for input in inputs {
            input.tensor.shape().get(1..).hash(&mut hasher);
        }
        hasher.finish() & !LONE
    }

    /// A key for a request that shares no batch.
    pub(crate) fn lone(&self) -> u64 {
        LONE | self.state.hash_one(("alone", self.lone.fetch_add(1, Ordering::Relaxed)))
    }
}
