//! The stores of one tenant: what it may do there, and the memory that its calls take.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use gristmill_core::{HeldBytes, Name, OverBudget, Rate};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::{
    KeyPage, STORE_KEY_BYTES_MAX, STORE_KIB, STORE_PAGE_KEYS, STORE_VALUE_BYTES_MAX, StoreAccess,
    StoreCall, StoreFault, StoreFaultKind, Stores, Swap, Swapped, WantedValues, incremented,
};
use crate::host_work::HostWork;
use crate::meter::Meter;

/// How often the keys and the value of a request are in memory at the same time at most: the text
/// of the key, the command, and the message that is written.
const REQUEST_COPIES: usize = 4;

/// The memory of a key and its value besides their bytes: commands and answers, and their places in
/// lists.
const KEY_MEMORY: usize = 512;

/// Maximum characters of a number.
const NUMBER_BYTES: usize = 20;

/// The stores that a tenant may use.
pub struct TenantStores {
    tenant: Name,
    stores: Arc<dyn Stores>,
    granted: BTreeMap<Name, StoreAccess>,
    /// The permits of the memory of its calls, [`STORE_KIB`].
    kib: Arc<Semaphore>,
    /// The rate of the CPU time of its plugins, which the work for its calls counts against.
    cpu: Arc<Rate>,
}

/// One use of a bucket by a plugin.
pub(crate) struct StoreUse {
    pub(crate) bucket: String,
    /// The end of the request.
    pub(crate) deadline: Instant,
    /// Whether changes are answered as done without being done.
    pub(crate) is_trial: bool,
    /// A hold of the tenant's budget, of no bytes yet.
    pub(crate) held: HeldBytes,
    /// The meter of the plugin's call.
    pub(crate) meter: Arc<Meter>,
}

/// Why a use of a bucket gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// For a reason that the plugin is told.
    #[error(transparent)]
    Fault(#[from] StoreFault),
    /// The tenant holds too much memory.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
}

/// The size of a call.
#[derive(Clone, Copy)]
struct Size {
    keys: usize,
    /// The bytes of its keys and of the values that it sends.
    request_bytes: usize,
    /// Maximum bytes of the values or the keys that it gets.
    answer_bytes: usize,
}

impl Size {
    /// The size of changes of so many keys.
    fn of_changes(keys: usize, request_bytes: usize) -> Self {
        Self { keys, request_bytes, answer_bytes: 0 }
    }

    fn of_swap(Swap { key, expected, value }: Swap<'_>) -> Self {
        let request_bytes = key.len() + expected.map_or(0, <[u8]>::len) + value.len();
        Self { keys: 1, request_bytes, answer_bytes: STORE_VALUE_BYTES_MAX + 1 }
    }

    fn of_page(cursor: Option<&str>) -> Self {
        let answer_bytes = STORE_PAGE_KEYS * (STORE_KEY_BYTES_MAX + KEY_MEMORY);
        Self { keys: 1, request_bytes: cursor.map_or(0, str::len), answer_bytes }
    }

    fn of_values(WantedValues { keys, most_bytes, .. }: WantedValues<'_>) -> Self {
        Self {
            keys: keys.len(),
            request_bytes: keys.iter().map(|key| key.len()).sum(),
            answer_bytes: keys.len().saturating_mul(most_bytes.saturating_add(1)),
        }
    }

    /// The memory of the call, with so many bytes before each key.
    fn memory(self, prefix_bytes: usize) -> usize {
        let request_bytes = self.request_bytes + self.keys * prefix_bytes;
        let besides = REQUEST_COPIES * request_bytes + KEY_MEMORY * self.keys;
        self.answer_bytes.saturating_add(besides)
    }
}

impl TenantStores {
    /// The stores that the document of `tenant` grants. `kib` has the permits of the memory of its
    /// calls, [`STORE_KIB`].
    pub fn new(
        tenant: Name,
        stores: Arc<dyn Stores>,
        granted: BTreeMap<Name, StoreAccess>,
        kib: Arc<Semaphore>,
    ) -> Self {
        Self { tenant, stores, granted, kib, cpu: Arc::default() }
    }

    /// The stores whose work is charged as CPU time of this rate.
    pub fn charging(self, cpu: Arc<Rate>) -> Self {
        Self { cpu, ..self }
    }

    /// The values of these keys, in their order.
    pub(crate) async fn get_many(
        &self,
        by: StoreUse,
        wanted: WantedValues<'_>,
    ) -> Result<Vec<Option<Bytes>>, NoAnswer> {
        let call = self.call(by, StoreAccess::Read, Size::of_values(wanted)).await?;
        if wanted.keys.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.stores.get_many(call, wanted).await?)
    }

    /// Check that the tenant may read the bucket, and that there is one.
    pub(crate) fn check(&self, bucket: &str) -> Result<(), StoreFault> {
        self.bucket(bucket, StoreAccess::Read).map(drop)
    }

    /// Set the values of keys, for so many milliseconds if that is given.
    pub(crate) async fn set(
        &self,
        by: StoreUse,
        values: &[(&str, &[u8])],
        ttl_ms: Option<u64>,
    ) -> Result<(), NoAnswer> {
        if by.is_trial || values.is_empty() {
            self.bucket(&by.bucket, StoreAccess::Write)?;
            return Ok(());
        }
        let bytes = values.iter().map(|(key, value)| key.len() + value.len()).sum();
        let size = Size::of_changes(values.len(), bytes);
        let call = self.call(by, StoreAccess::Write, size).await?;
        Ok(self.stores.set(call, values, ttl_ms).await?)
    }

    /// Forget keys, which are distinct.
    pub(crate) async fn remove(&self, by: StoreUse, keys: &[&str]) -> Result<(), NoAnswer> {
        if by.is_trial || keys.is_empty() {
            self.bucket(&by.bucket, StoreAccess::Write)?;
            return Ok(());
        }
        let size = Size::of_changes(keys.len(), keys.iter().map(|key| key.len()).sum());
        let call = self.call(by, StoreAccess::Write, size).await?;
        self.stores.remove(call, keys).await?;
        Ok(())
    }

    /// A page of the keys, from this cursor on.
    pub(crate) async fn keys(
        &self,
        by: StoreUse,
        cursor: Option<&str>,
    ) -> Result<KeyPage, NoAnswer> {
        let call = self.call(by, StoreAccess::Read, Size::of_page(cursor)).await?;
        Ok(self.stores.keys(call, cursor).await?)
    }

    /// Compare a value and set it, in one step.
    pub(crate) async fn swap(&self, by: StoreUse, swap: Swap<'_>) -> Result<Swapped, NoAnswer> {
        if by.is_trial {
            self.bucket(&by.bucket, StoreAccess::Write)?;
            let keys = [swap.key];
            let most_bytes = STORE_VALUE_BYTES_MAX;
            let wanted = WantedValues { keys: &keys, most_bytes, none_if_empty: false };
            let present = self.get_many(by, wanted).await?.into_iter().flatten().next();
            return Ok(match present.as_deref() == swap.expected {
                true => Swapped::Done,
                false => Swapped::Other(present),
            });
        }
        let call = self.call(by, StoreAccess::Write, Size::of_swap(swap)).await?;
        Ok(self.stores.swap(call, swap).await?)
    }

    /// Add to the number of a key. Returns the sum.
    pub(crate) async fn increment(
        &self,
        by: StoreUse,
        key: &str,
        delta: i64,
    ) -> Result<i64, NoAnswer> {
        if by.is_trial {
            self.bucket(&by.bucket, StoreAccess::Write)?;
            let keys = [key];
            let wanted =
                WantedValues { keys: &keys, most_bytes: NUMBER_BYTES, none_if_empty: false };
            let found = self.get_many(by, wanted).await?;
            return Ok(incremented(found.iter().flatten().next().map(|value| &**value), delta)?);
        }
        let call = self.call(by, StoreAccess::Write, Size::of_changes(1, key.len())).await?;
        Ok(self.stores.increment(call, key, delta).await?)
    }

    /// The bucket's name, and the bytes before each of its keys, if the tenant may do this there.
    fn bucket(&self, bucket: &str, wanted: StoreAccess) -> Result<(&Name, usize), StoreFault> {
        let granted = self.granted.get_key_value(bucket);
        let (bucket, access) =
            granted.ok_or_else(|| StoreFault::not_granted(bucket, self.granted.keys()))?;
        let name = bucket.as_str();
        if wanted == StoreAccess::Write && *access == StoreAccess::Read {
            let text = format!(
                "the tenant's document lets it only read the store {name:?}: {{{name:?}: \"write\"}} \
                 under \"stores\" there lets it change values, too"
            );
            return Err(StoreFault::new(StoreFaultKind::ReadOnly, text));
        }
        let prefix_bytes = self.stores.prefix_bytes(name, &self.tenant).ok_or_else(|| {
            StoreFault::unavailable(format!(
                "this server has no store {name:?}: its operator binds one with [stores.{name}] in \
                 gristmill.toml"
            ))
        })?;
        Ok((bucket, prefix_bytes))
    }

    /// A call of this size, if the tenant may do this in the bucket.
    async fn call(
        &self,
        by: StoreUse,
        wanted: StoreAccess,
        size: Size,
    ) -> Result<StoreCall, NoAnswer> {
        let (bucket, prefix_bytes) = self.bucket(&by.bucket, wanted)?;
        let memory = size.memory(prefix_bytes);
        // More than there are would wait for ever.
        let kib = memory.div_ceil(1 << 10).min(STORE_KIB) as u32;
        let permit = self.kib.clone().acquire_many_owned(kib);
        let Ok(Ok(permit)) = timeout_at(by.deadline.into(), permit).await else {
            return Err(NoAnswer::Fault(StoreFault::unavailable(format!(
                "store {:?}: the tenant's calls of stores took {} MiB until the request's deadline",
                bucket.as_str(),
                STORE_KIB >> 10,
            ))));
        };
        by.held.try_add(memory)?;
        Ok(StoreCall {
            tenant: self.tenant.clone(),
            bucket: bucket.clone(),
            deadline: by.deadline,
            is_of_operator: false,
            work: HostWork { rate: self.cpu.clone(), meter: Some(by.meter) },
            _permit: Some(permit),
            _held: Some(by.held),
        })
    }
}

#[cfg(test)]
mod tests;
