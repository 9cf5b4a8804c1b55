//! The stores of values by key that a tenant's plugins may use, and the trait of their clients.
//!
//! Refuses to know how a store is reached. A bucket is a store's name on this server. A tenant has
//! some of them, each for reading or for writing too.
//!
//! Invariant: the memory of a call of a store, its request and the largest answer, counts against
//! its tenant's budget until the store's work has ended, also if the guest that asked is gone
//! before. [`STORE_KIB`] bounds that of all calls of a tenant under way.

mod tenant;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use gristmill_core::{HeldBytes, Name};
use tokio::sync::OwnedSemaphorePermit;

pub use self::tenant::TenantStores;
pub(crate) use self::tenant::{NoAnswer, StoreUse};
use crate::host_work::HostWork;

/// Maximum KiB that the calls of a tenant that are under way together take.
pub const STORE_KIB: usize = 64 << 10;

/// Maximum bytes of a key.
pub const STORE_KEY_BYTES_MAX: usize = 1024;

/// Maximum bytes of a value.
pub const STORE_VALUE_BYTES_MAX: usize = 1 << 20;

/// The keys of a page of a list of keys. Redis can give some more.
pub const STORE_PAGE_KEYS: usize = 1000;

/// Maximum characters of a bucket's or a key's name that a text repeats.
const SHOWN_CHARS: usize = 64;

/// Why a store gave no answer. The text is for the plugin's author.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct StoreFault {
    /// What a plugin may do about it.
    pub kind: StoreFaultKind,
    /// What is wrong.
    pub text: String,
}

/// The kinds of faults: the cases of the contract's `store-error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFaultKind {
    /// The tenant may not use the bucket, or there is none of this name.
    NotGranted,
    /// An argument or a value cannot be used.
    InvalidArgument,
    /// The store did not answer, or not rightly.
    Unavailable,
    /// The tenant may only read the bucket.
    ReadOnly,
}

/// What a tenant may do in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAccess {
    /// Read values.
    Read,
    /// Read and change values.
    Write,
}

/// A call of a bucket. It is dropped when the store's work for it has ended.
#[derive(Debug)]
pub struct StoreCall {
    /// The tenant whose values are meant.
    pub tenant: Name,
    /// The bucket, which the tenant may use like this.
    pub bucket: Name,
    /// The end of the request.
    pub deadline: Instant,
    /// Whether the operator calls, not a plugin.
    is_of_operator: bool,
    /// Who pays for the store's work.
    work: HostWork,
    /// Of the memory that the tenant's calls may take together.
    _permit: Option<OwnedSemaphorePermit>,
    /// Its memory.
    _held: Option<HeldBytes>,
}

impl StoreCall {
    /// A call that the operator makes for a tenant. It counts against nobody's limits.
    pub fn of_operator(tenant: Name, bucket: Name, deadline: Instant) -> Self {
        let (work, is_of_operator) = (HostWork::default(), true);
        Self { tenant, bucket, deadline, is_of_operator, work, _permit: None, _held: None }
    }

    /// The tenant whose plugin calls; none if the operator calls.
    pub fn owner(&self) -> Option<&Name> {
        (!self.is_of_operator).then_some(&self.tenant)
    }

    /// Charge the tenant and the plugin's call for CPU time of a thread of the host's.
    pub fn charge(&self, cpu: Duration) {
        self.work.charge(cpu);
    }
}

/// The values that a call wants.
#[derive(Clone, Copy, Debug)]
pub struct WantedValues<'a> {
    /// The keys, distinct and at least one.
    pub keys: &'a [&'a str],
    /// Of a longer value come only so many bytes and one more, and those after it may be told as
    /// none. So the memory of an answer is known before it is asked for.
    pub most_bytes: usize,
    /// Whether an empty value may be told as none.
    pub none_if_empty: bool,
}

/// Some of the keys that a tenant has in a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPage {
    /// The keys, without what the bucket puts before them. There may be none, although more follow.
    pub keys: Vec<String>,
    /// The cursor of the next page. None after the last one.
    pub next: Option<String>,
}

/// A value that is set if the key still has the value that the caller knows.
#[derive(Clone, Copy, Debug)]
pub struct Swap<'a> {
    /// The key.
    pub key: &'a str,
    /// The value that it must have. None if it must have none.
    pub expected: Option<&'a [u8]>,
    /// The value that it gets, which has no end.
    pub value: &'a [u8],
}

/// The outcome of a [`Swap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swapped {
    /// The value is set.
    Done,
    /// The key has this other value, or none. Of one that is longer than [`STORE_VALUE_BYTES_MAX`]
    /// come so many bytes and one more.
    Other(Option<Bytes>),
}

/// What a step of clearing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// The values that it forgot.
    pub values: usize,
    /// Whether it forgot all that were there at that moment. Otherwise further steps are needed.
    pub is_all: bool,
}

/// The stores of a server. An answer comes before the call's deadline. What a function does before
/// it waits is charged to the plugin that calls.
#[async_trait]
pub trait Stores: Send + Sync {
    /// The bytes that each key of a tenant gets in a bucket besides its own. None if there is no
    /// bucket of this name.
    fn prefix_bytes(&self, bucket: &str, tenant: &Name) -> Option<usize>;

    /// The values of these keys, in their order.
    ///
    /// # Errors
    /// [`StoreFault`] if the store gives none of them.
    async fn get_many(
        &self,
        call: StoreCall,
        wanted: WantedValues<'_>,
    ) -> Result<Vec<Option<Bytes>>, StoreFault>;

    /// Set the values of keys, for so many milliseconds if that is given.
    ///
    /// # Errors
    /// [`StoreFault`]. Of several values, some may be set.
    async fn set(
        &self,
        call: StoreCall,
        values: &[(&str, &[u8])],
        ttl_ms: Option<u64>,
    ) -> Result<(), StoreFault>;

    /// Add to the number of a key. Returns the sum.
    ///
    /// # Errors
    /// [`StoreFault`]
    async fn increment(&self, call: StoreCall, key: &str, delta: i64) -> Result<i64, StoreFault>;

    /// Forget keys, which are distinct and at least one. Returns how many of them were there.
    ///
    /// # Errors
    /// [`StoreFault`]. Of several keys, some may be forgotten.
    async fn remove(&self, call: StoreCall, keys: &[&str]) -> Result<usize, StoreFault>;

    /// A page of the keys that the call's tenant has, from this cursor on.
    ///
    /// # Errors
    /// [`StoreFault`], also if this is not a cursor that a page had.
    async fn keys(&self, call: StoreCall, cursor: Option<&str>) -> Result<KeyPage, StoreFault>;

    /// Compare a value and set it, in one step of the store.
    ///
    /// # Errors
    /// [`StoreFault`]
    async fn swap(&self, call: StoreCall, swap: Swap<'_>) -> Result<Swapped, StoreFault>;

    /// Forget values of the call's tenant, in one step of many.
    ///
    /// # Errors
    /// [`StoreFault`], also if the store cannot do that.
    async fn clear(&self, call: StoreCall) -> Result<Cleared, StoreFault>;

    /// The memory of the values that this server keeps of other systems.
    fn cached_bytes(&self) -> usize {
        0
    }

    /// Write all changes that are only in this process's memory to the disk.
    async fn flush(&self) {}
}

/// The stores of a server that has none.
#[derive(Clone, Copy, Debug)]
pub struct NoStores;

impl StoreFault {
    /// A fault of this kind.
    pub fn new(kind: StoreFaultKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// The store gives no answer now, for this reason.
    pub fn unavailable(text: impl Into<String>) -> Self {
        Self::new(StoreFaultKind::Unavailable, text)
    }

    /// An argument or a value cannot be used, for this reason.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(StoreFaultKind::InvalidArgument, text)
    }

    /// The tenant may not use this bucket. It is the same text if there is no such bucket.
    pub(crate) fn not_granted<'a>(bucket: &str, granted: impl Iterator<Item = &'a Name>) -> Self {
        let granted: Vec<_> = granted.map(|name| format!("{:?}", name.as_str())).collect();
        let has = match granted.is_empty() {
            true => "it grants none".to_owned(),
            false => format!("it grants {}", granted.join(", ")),
        };
        let text = format!(
            "the tenant's document grants no store {:?} under \"stores\"; {has}: name it there, with \
             \"read\" or \"write\"",
            shown(bucket)
        );
        Self::new(StoreFaultKind::NotGranted, text)
    }
}

/// The beginning of a text that a plugin gave.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[async_trait]
impl Stores for NoStores {
    fn prefix_bytes(&self, _: &str, _: &Name) -> Option<usize> {
        None
    }

    async fn get_many(
        &self,
        _: StoreCall,
        _: WantedValues<'_>,
    ) -> Result<Vec<Option<Bytes>>, StoreFault> {
        Err(no_store())
    }

    async fn set(
        &self,
        _: StoreCall,
        _: &[(&str, &[u8])],
        _: Option<u64>,
    ) -> Result<(), StoreFault> {
        Err(no_store())
    }

    async fn increment(&self, _: StoreCall, _: &str, _: i64) -> Result<i64, StoreFault> {
        Err(no_store())
    }

    async fn remove(&self, _: StoreCall, _: &[&str]) -> Result<usize, StoreFault> {
        Err(no_store())
    }

    async fn keys(&self, _: StoreCall, _: Option<&str>) -> Result<KeyPage, StoreFault> {
        Err(no_store())
    }

    async fn swap(&self, _: StoreCall, _: Swap<'_>) -> Result<Swapped, StoreFault> {
        Err(no_store())
    }

    async fn clear(&self, _: StoreCall) -> Result<Cleared, StoreFault> {
        Err(no_store())
    }
}

/// The number that an increment leaves in place of a value, with Redis's texts.
///
/// # Errors
/// The value is not a number, or the sum is out of range.
pub fn incremented(value: Option<&[u8]>, delta: i64) -> Result<i64, StoreFault> {
    let Some(text) = value else { return Ok(delta) };
    let number = str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    let number =
        number.ok_or_else(|| StoreFault::invalid("ERR value is not an integer or out of range"))?;
    let sum = number.checked_add(delta);
    sum.ok_or_else(|| StoreFault::invalid("ERR increment or decrement would overflow"))
}

fn no_store() -> StoreFault {
    StoreFault::unavailable("this server has no stores")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_incremented_within_its_range() {
        assert_eq!(incremented(None, -3), Ok(-3));
        assert_eq!(incremented(Some(b"7"), -3), Ok(4));
        let max = i64::MAX.to_string();
        assert_eq!(incremented(Some(max.as_bytes()), 0), Ok(i64::MAX));
        for value in [max.as_bytes(), b"", b"1.5", b"word", b"\xff"] {
            assert_eq!(
                incremented(Some(value), 1).unwrap_err().kind,
                StoreFaultKind::InvalidArgument
            );
        }
    }

    #[test]
    fn a_long_name_is_cut() {
        assert_eq!(shown("short"), "short");
        assert_eq!(shown(&"ä".repeat(100)), format!("{}...", "ä".repeat(64)));
    }
}
