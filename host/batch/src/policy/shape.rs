//! Which requests fit one batch.
//!
//! The rest of the policy knows a shape only by its key. If two shapes had equal keys, they could
//! come into one batch. Copying that batch together would fail, and it would be bisected.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use gristmill_core::NamedTensor;

/// A key that is equal for inputs that fit one batch. Their dtypes are the model's, so only the
/// dimensions after the first can differ.
pub(crate) fn shape_key(inputs: &[NamedTensor]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for input in inputs {
        input.tensor.shape().get(1..).hash(&mut hasher);
    }
    hasher.finish()
}
