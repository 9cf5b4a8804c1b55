//! `store`: buckets are maps that the thread's test has made.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::tables::keys_of;
use super::tensors::{Dtype, Tensor};
use super::types::Blob;

#[derive(Clone, Debug, PartialEq)]
pub enum StoreError {
    NotGranted(String),
    InvalidArgument(String),
    Unavailable(String),
    ReadOnly(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for StoreError {}

/// The values of a bucket.
#[derive(Default)]
pub(crate) struct Bucket {
    pub(crate) values: RefCell<BTreeMap<String, Vec<u8>>>,
    pub(crate) is_read_only: Cell<bool>,
}

thread_local! {
    /// The buckets with their names, in the order in which they were made.
    static BUCKETS: RefCell<Vec<(String, Rc<Bucket>)>> = const { RefCell::new(Vec::new()) };
}

/// Let this thread's calls find the bucket `name`, until [`remove`].
pub(crate) fn register(name: &str, bucket: Rc<Bucket>) {
    BUCKETS.with_borrow_mut(|buckets| buckets.push((name.into(), bucket)));
}

pub(crate) fn remove(bucket: &Rc<Bucket>) {
    BUCKETS.with_borrow_mut(|buckets| buckets.retain(|(_, other)| !Rc::ptr_eq(other, bucket)));
}

pub fn get(bucket: &str, key: &str) -> Result<Option<Blob>, StoreError> {
    let bucket = find(bucket)?;
    let values = bucket.values.borrow();
    Ok(values.get(key).map(|value| Blob::from_bytes(value)))
}

pub fn get_many(bucket: &str, keys: &[String]) -> Result<Vec<Option<Blob>>, StoreError> {
    find(bucket)?;
    keys.iter().map(|key| get(bucket, key)).collect()
}

pub fn gather(
    bucket: &str,
    keys: &[String],
    width: u32,
    missing: f32,
) -> Result<Tensor, StoreError> {
    let bucket = find(bucket)?;
    let values = bucket.values.borrow();
    let row_bytes = width as usize * size_of::<f32>();
    if row_bytes == 0 {
        return Err(StoreError::InvalidArgument("width is 0: must be at least 1".into()));
    }
    let mut rows = Vec::with_capacity(keys.len() * row_bytes);
    for key in keys {
        // An empty value counts as a missing key.
        match values.get(key).filter(|value| !value.is_empty()) {
            Some(value) if value.len() == row_bytes => rows.extend_from_slice(value),
            Some(value) => {
                let bytes = value.len();
                return Err(StoreError::InvalidArgument(format!(
                    "the value of {key:?} has {bytes} bytes, but {width} float32 have {row_bytes}"
                )));
            }
            None => (0..width).for_each(|_| rows.extend_from_slice(&missing.to_le_bytes())),
        }
    }
    let tensor = Tensor::create(Dtype::Float32, &[keys.len() as u32, width], &rows);
    tensor.map_err(|error| StoreError::InvalidArgument(error.to_string()))
}

pub fn gather_by(
    bucket: &str,
    prefix: &str,
    ids: &Tensor,
    width: u32,
    missing: f32,
) -> Result<Tensor, StoreError> {
    let keys = keys_of(ids).ok_or_else(|| {
        let why = "ids must be int64 or strings of one dimension";
        StoreError::InvalidArgument(why.into())
    })?;
    let keys: Vec<_> = keys.iter().map(|key| format!("{prefix}{key}")).collect();
    gather(bucket, &keys, width, missing)
}

pub fn set(bucket: &str, key: &str, value: &[u8], _ttl_ms: Option<u64>) -> Result<(), StoreError> {
    let bucket = find_to_write(bucket)?;
    bucket.values.borrow_mut().insert(key.into(), value.into());
    Ok(())
}

pub fn increment(bucket: &str, key: &str, delta: i64) -> Result<i64, StoreError> {
    let bucket = find_to_write(bucket)?;
    let mut values = bucket.values.borrow_mut();
    let number = match values.get(key) {
        None => Some(0),
        Some(value) => str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok()),
    };
    let Some(sum) = number.and_then(|number| number.checked_add(delta)) else {
        let text =
            format!("the value of {key:?} is not a whole number, or the sum is out of range");
        return Err(StoreError::InvalidArgument(text));
    };
    values.insert(key.into(), sum.to_string().into_bytes());
    Ok(sum)
}

fn find_to_write(name: &str) -> Result<Rc<Bucket>, StoreError> {
    let bucket = find(name)?;
    match bucket.is_read_only.get() {
        true => {
            Err(StoreError::ReadOnly(format!("this test lets it only read the store {name:?}")))
        }
        false => Ok(bucket),
    }
}

/// The bucket of this name, the one that was made last.
fn find(name: &str) -> Result<Rc<Bucket>, StoreError> {
    let found = BUCKETS.with_borrow(|buckets| {
        let found = buckets.iter().rev().find(|(other, _)| other == name);
        found.map(|(_, bucket)| Rc::clone(bucket))
    });
    found.ok_or_else(|| {
        StoreError::NotGranted(format!(
            "this test has no store {name:?}: make one with testing::store({name:?})"
        ))
    })
}
