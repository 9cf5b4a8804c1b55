//! Which requests fit one batch.
//!
//! The rest of the policy knows a shape only by its key. Two shapes with equal keys would meet in
//! one batch, which fails to be copied together and is bisected.

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
