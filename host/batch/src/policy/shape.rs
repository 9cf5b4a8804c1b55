//! Which requests fit one batch: those of one shape, and of one tenant if its rows may not meet
//! those of others.
//!
//! The rest of the policy knows a shape only by its key. If two shapes had equal keys, they could
//! come into one batch. Copying that batch together would fail, and it would be bisected.
//!
//! Requests that may be padded have one shape if they have the same buckets. Their key ends with
//! the buckets, so that it says which of them can be padded to the shape of others. A request that
//! is far shorter than its bucket is not padded: a batch of such rows could not be filled up.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_core::{BUCKETS_MAX, LENGTHS_MAX, Lengths, Name, NamedTensor, PaddedLength, Padding};

/// Maximum bytes that fill rows up, as a multiple of the bytes of the requests.
pub(crate) const FILLING_FACTOR_MAX: usize = 16;

/// The bit that keys of requests that share no batch have.
const LONE: u64 = 1 << 63;

/// The bit that keys of other requests have if they may be padded.
const PADDED: u64 = 1 << 62;

/// The bits of a bucket, and those of all buckets of a key.
const BUCKET_BITS: u32 = BUCKETS_MAX.ilog2();
const BUCKETS: u64 = (1 << (BUCKET_BITS * LENGTHS_MAX as u32)) - 1;

/// Whether a request with this key shares no batch.
pub(crate) fn is_lone(key: u64) -> bool {
    key & LONE != 0
}

/// The buckets in a key, as a number. None if requests with this key are not padded.
pub(super) fn buckets_in(key: u64) -> Option<u64> {
    (key & (LONE | PADDED) == PADDED).then_some(key & BUCKETS)
}

/// Whether requests with the key `smaller` can be padded to the shape of those with another key,
/// `larger`.
pub(super) fn is_padded_to(smaller: u64, larger: u64) -> bool {
    buckets_in(larger).is_some() && smaller != larger && joined_key(smaller, larger) == larger
}

/// Whether the buckets of the key `larger` are near enough to those of the key `smaller`, so that
/// rows may be filled up from one to the other.
pub(super) fn is_near(padding: &Padding, smaller: u64, larger: u64) -> bool {
    (0..).zip(&padding.lengths).all(|(at, length): (u32, &PaddedLength)| {
        let size = |key: u64| {
            let bucket = (key >> (at * BUCKET_BITS)) as usize % BUCKETS_MAX;
            length.buckets.get(bucket).copied().unwrap_or_default()
        };
        may_fill(size(smaller), size(larger))
    })
}

/// Whether rows of one length may be filled up to another one.
fn may_fill(length: usize, filled: usize) -> bool {
    filled <= length.saturating_mul(FILLING_FACTOR_MAX + 1)
}

/// The key of requests with the key `a` and others with the key `b`, which fit one batch: the
/// larger bucket of each length.
pub(crate) fn joined_key(a: u64, b: u64) -> u64 {
    if (a ^ b) & !BUCKETS != 0 || buckets_in(a).is_none() {
        return a;
    }
    let larger = |at: u32| {
        let bucket = (BUCKETS_MAX as u64 - 1) << (at * BUCKET_BITS);
        (a & bucket).max(b & bucket)
    };
    (0..LENGTHS_MAX as u32).fold(a & !BUCKETS, |key, at| key | larger(at))
}

/// The key of requests whose other dimensions have this hash.
pub(super) fn key_of_buckets(hash: u64, buckets: &[usize]) -> u64 {
    let bits = |(at, bucket): (u32, &usize)| (*bucket as u64) << (at * BUCKET_BITS);
    let buckets = (0..).zip(buckets).map(bits).fold(0, |all, bucket| all | bucket);
    hash & !(LONE | BUCKETS) | PADDED | buckets & BUCKETS
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
    /// dimensions after the first can differ. Inputs that are longer than the largest bucket of
    /// `padding`, or far shorter than their bucket, are not padded. `apart` is a tenant that shares
    /// batches with no other.
    pub(crate) fn of(
        &self,
        inputs: &[NamedTensor],
        padding: &Padding,
        apart: Option<&Name>,
    ) -> u64 {
        let mut hasher = self.state.build_hasher();
        apart.hash(&mut hasher);
        let buckets = padding.lengths_of(inputs).and_then(|lengths: Lengths| {
            let padded = padding.padded(&lengths)?;
            let mut pairs = lengths.iter().zip(&padded);
            let is_near = pairs.all(|(length, filled)| may_fill(*length, *filled));
            if is_near { padding.buckets_of(&lengths) } else { None }
        });
        let Some(buckets) = buckets else {
            for input in inputs {
                input.tensor.shape().get(1..).hash(&mut hasher);
            }
            return hasher.finish() & !(LONE | PADDED);
        };
        for (index, input) in inputs.iter().enumerate() {
            let axis = padding.of_input(index).map(|(_, padded)| padded.axis);
            let dims = input.tensor.shape().iter().enumerate().skip(1);
            dims.filter(|(at, _)| Some(*at) != axis).for_each(|dim| dim.hash(&mut hasher));
        }
        key_of_buckets(hasher.finish(), &buckets)
    }

    /// A key for a request that shares no batch.
    pub(crate) fn lone(&self) -> u64 {
        LONE | self.state.hash_one(("alone", self.lone.fetch_add(1, Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_be_filled_up_to_near_buckets_only() {
        let length = PaddedLength { buckets: vec![2, 34, 35], inputs: Vec::new() };
        let padding = Padding { lengths: vec![length], outputs: Vec::new() };
        let key = |bucket: usize| key_of_buckets(u64::MAX, &[bucket]);
        assert!(is_near(&padding, key(0), key(1)) && is_near(&padding, key(1), key(2)));
        assert!(!is_near(&padding, key(0), key(2)));
        assert!(may_fill(1, 16) && may_fill(1, 17) && !may_fill(1, 18));
    }

    #[test]
    fn a_key_says_which_requests_can_be_padded_to_which() {
        let key = |buckets: &[usize]| key_of_buckets(u64::MAX, buckets);
        assert!(is_padded_to(key(&[0, 3]), key(&[2, 3])) && is_padded_to(key(&[0]), key(&[15])));
        assert!(!is_padded_to(key(&[2, 3]), key(&[0, 3])), "a smaller one");
        assert!(!is_padded_to(key(&[0, 3]), key(&[2, 1])), "the second length is longer");
        assert!(!is_padded_to(key(&[1]), key(&[1])), "the same");
        let other = key_of_buckets(u64::MAX << 20, &[2]);
        assert!(!is_padded_to(key(&[0]), other), "another shape");
        assert!(!is_padded_to(LONE | key(&[0]), LONE | key(&[2])), "alone");
        assert!(!is_padded_to(0, 2), "not padded");
        assert_eq!(joined_key(key(&[0, 3]), key(&[2, 1])), key(&[2, 3]));
        assert_eq!(joined_key(5, 5), 5);
    }
}
