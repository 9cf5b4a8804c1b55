//! Values by key, in stores that the operator binds, such as Redis: features of users and items,
//! counters, results that were computed before.
//!
//! ```no_run
//! # use gristmill_plugin::{store, Dtype, Failure, Prepared, Request};
//! # fn example(request: &Request) -> Result<Prepared, Failure> {
//! // One request to the store, for the keys `item:..`. Neither the ids nor the numbers pass
//! // through the plugin.
//! let ids = request.json_tensor("/ids", &[], Dtype::Int64)?;
//! let features = store::gather_by("features", "item:", &ids, 32, 0.0)?;
//! # Ok(Prepared::new().input("input", features))
//! # }
//! ```
//!
//! A bucket is a store's name on the server. The tenant's document grants it, as in
//! `"stores": {"features": "read"}`. Keys have 1 to 1024 bytes, at most 4096 in a call; values have
//! at most 1 MiB. While a call waits for a store it uses no CPU time.
//!
//! `?` makes the plugin's own fault of an error (500, with the text in the log). A plugin that can
//! do without a value matches on the [`StoreError`]: [`StoreError::Unavailable`] is a store that
//! does not answer now.
//!
//! In a trial, such as a sample or a shadow, [`set`] and [`increment`] answer without changing
//! anything.
//!
//! In tests [`testing::store`](crate::testing::store) stands in for a store.

use std::time::Duration;

use crate::bindings::store as host;
pub use crate::bindings::store::StoreError;
use crate::{Blob, Tensor};

/// The value of a key. None if the bucket does not have the key.
///
/// # Errors
/// Why the store gave no answer.
pub fn get(bucket: &str, key: &str) -> Result<Option<Blob>, StoreError> {
    host::get(bucket, key)
}

/// The values of keys, in their order, with one request to the store. A key that the bucket does
/// not have gives none.
///
/// # Errors
/// Why the store gave no answer.
pub fn get_many<K: AsRef<str>>(bucket: &str, keys: &[K]) -> Result<Vec<Option<Blob>>, StoreError> {
    host::get_many(bucket, &owned(keys))
}

/// The rows of keys, as a float32 tensor of the shape `[keys, width]`, with one request to the
/// store. A value is `width` little-endian float32. The row of a key that the bucket does not have,
/// or with an empty value, is filled with `missing`.
///
/// # Errors
/// Why the store gave no answer; [`StoreError::InvalidArgument`] names the key of a value of
/// another length.
pub fn gather<K: AsRef<str>>(
    bucket: &str,
    keys: &[K],
    width: usize,
    missing: f32,
) -> Result<Tensor, StoreError> {
    host::gather(bucket, &owned(keys), width_of(width)?, missing)
}

/// The same for keys that begin with `prefix` and end with the elements of `ids`, a tensor of int64
/// or of strings of one dimension.
///
/// # Errors
/// As for [`gather`].
pub fn gather_by(
    bucket: &str,
    prefix: &str,
    ids: &Tensor,
    width: usize,
    missing: f32,
) -> Result<Tensor, StoreError> {
    host::gather_by(bucket, prefix, ids, width_of(width)?, missing)
}

fn width_of(width: usize) -> Result<u32, StoreError> {
    u32::try_from(width)
        .map_err(|_| StoreError::InvalidArgument(format!("width is {width}: too large")))
}

/// Set the value of a key. After `ttl` the store forgets it; none keeps it.
///
/// # Errors
/// Why the store did not do so.
pub fn set(
    bucket: &str,
    key: &str,
    value: impl AsRef<[u8]>,
    ttl: Option<Duration>,
) -> Result<(), StoreError> {
    let ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    host::set(bucket, key, value.as_ref(), ttl_ms)
}

/// Add to the whole number that a key has as decimal text, or to 0. Returns the sum.
///
/// # Errors
/// Why the store did not do so.
pub fn increment(bucket: &str, key: &str, delta: i64) -> Result<i64, StoreError> {
    host::increment(bucket, key, delta)
}

fn owned<K: AsRef<str>>(keys: &[K]) -> Vec<String> {
    keys.iter().map(|key| key.as_ref().to_owned()).collect()
}

impl StoreError {
    /// What is missing, and what would grant or mend it.
    pub fn text(&self) -> &str {
        match self {
            Self::NotGranted(text)
            | Self::InvalidArgument(text)
            | Self::Unavailable(text)
            | Self::ReadOnly(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, testing};

    fn row(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn values_are_found_by_their_keys() {
        let features = testing::store("features");
        features.put("a", "one");
        assert_eq!(get("features", "a").unwrap().unwrap().read(0, 9), b"one");
        assert!(get("features", "b").unwrap().is_none());
        let found = get_many("features", &["b", "a"]).unwrap();
        assert!(found[0].is_none() && found[1].is_some());
        let refused = get("others", "a").unwrap_err();
        assert!(
            matches!(&refused, StoreError::NotGranted(text) if text.contains("testing::store"))
        );
        assert_eq!(Failure::from(refused.clone()), Failure::internal(refused.text()));
        drop(features);
        assert!(matches!(get("features", "a"), Err(StoreError::NotGranted(_))));
    }

    #[test]
    fn rows_are_gathered_and_missing_ones_filled() {
        let features = testing::store("features");
        features.put("a", row(&[1.0, 2.0]));
        features.put("short", row(&[1.0]));
        features.put("empty", row(&[]));
        let rows = gather("features", &["a", "none", "empty"], 2, -1.0).unwrap();
        assert_eq!(rows.dims(), [3, 2]);
        let filled = [1.0, 2.0, -1.0, -1.0, -1.0, -1.0];
        assert_eq!(rows.view::<f32>().unwrap().as_slice(), filled);
        let wrong = gather("features", &["a", "short"], 2, 0.0).unwrap_err();
        let text = "the value of \"short\" has 4 bytes, but 2 float32 have 8";
        assert_eq!(wrong, StoreError::InvalidArgument(text.into()));
    }

    #[test]
    fn rows_are_gathered_by_the_elements_of_a_tensor() {
        let features = testing::store("features");
        features.put("item:-8", row(&[3.0]));
        let ids = Tensor::from_slice(&[2], &[-8_i64, 9]).unwrap();
        let rows = gather_by("features", "item:", &ids, 1, 0.5).unwrap();
        assert_eq!(rows.view::<f32>().unwrap().as_slice(), [3.0, 0.5]);
        let ids = Tensor::from_slice(&[1], &[1.0_f32]).unwrap();
        let wrong = gather_by("features", "", &ids, 1, 0.0).unwrap_err();
        assert!(wrong.text().contains("must be int64 or strings of one dimension"), "{wrong}");
    }

    #[test]
    fn values_are_changed_where_that_is_granted() {
        let sessions = testing::store("sessions");
        set("sessions", "k", b"v", Some(Duration::from_secs(1))).unwrap();
        assert_eq!(sessions.value("k").as_deref(), Some(&b"v"[..]));
        assert_eq!(increment("sessions", "n", 2), Ok(2));
        assert_eq!(increment("sessions", "n", -3), Ok(-1));
        assert!(matches!(increment("sessions", "k", 1), Err(StoreError::InvalidArgument(_))));
        let _features = testing::store("features").read_only();
        assert!(matches!(set("features", "k", "v", None), Err(StoreError::ReadOnly(_))));
    }
}
