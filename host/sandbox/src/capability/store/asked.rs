//! How a call asks its tenant's stores, for each interface that has them.
//!
//! The guest's fiber waits for the store: it keeps its permits, but uses no thread and no CPU time.
//! The values are counted before they are asked for, at their largest: the store cuts longer ones.

use std::slice;
use std::sync::Arc;

use bytes::Bytes;

use super::arguments::{
    Distinct, KEY_BYTES_MAX, VALUE_BYTES_MAX, VALUES_BYTES_MAX, check_cursor, check_key,
    check_keys, check_value, check_values, work_of, work_of_values,
};
use crate::call::CallState;
use crate::grant::{Grant, PerCall};
use crate::limiter::Limited;
use crate::meter::Lookup;
use crate::stores::{
    KeyPage, NoAnswer, STORE_PAGE_KEYS, StoreFault, StoreUse, Swap, Swapped, TenantStores,
    WantedValues,
};

/// The memory of a value or a key besides its bytes: its place in lists and in the call's table.
pub(in crate::capability) const VALUE_BYTES: usize = 128;

/// The stores that the call may use, and whether it belongs to a trial.
pub(crate) struct CapabilityState(Option<(Arc<TenantStores>, bool)>);

impl PerCall for CapabilityState {
    fn grant(grant: &Grant<'_>) -> Self {
        let granted = grant.systems.and_then(|systems| Some((systems.stores?, systems.is_trial)));
        Self(granted.map(|(stores, is_trial)| (stores.clone(), is_trial)))
    }

    fn end(&mut self, _: bool) {
        self.0 = None;
    }
}

/// What a store answers, or why it does not.
type HostResult<T> = wasmtime::Result<Result<T, StoreFault>>;

/// Ask the tenant's stores, and wait. So many bytes are counted before.
macro_rules! ask {
    ($state:ident, $bucket:expr, $most:expr, |$stores:ident, $by:ident| $asking:expr) => {{
        let ($stores, $by) = or_tell!($state.access($bucket));
        $state.hold($most)?;
        let answer = {
            let _waiting = Lookup::begin(&$state.meter);
            $asking.await
        };
        told(answer)?
    }};
}

impl<S: AsMut<CapabilityState> + Send> CallState<S> {
    /// Check that there is this bucket for the tenant.
    pub(in crate::capability) async fn find_bucket(&mut self, bucket: &str) -> HostResult<()> {
        self.before_looking_at(bucket.len()).await?;
        let (stores, by) = or_tell!(self.access(bucket.to_owned()));
        Ok(stores.check(&by.bucket))
    }

    /// The values of the distinct ones among these keys, and the place of each key among them. They
    /// are counted.
    pub(in crate::capability) async fn values_of(
        &mut self,
        bucket: String,
        keys: &[String],
    ) -> HostResult<(Vec<Option<Bytes>>, Vec<usize>)> {
        self.before_looking_at(work_of(keys)).await?;
        or_tell!(check_keys(keys));
        let Distinct { keys, places } = Distinct::of(keys);
        let count = keys.len();
        let most_bytes = VALUE_BYTES_MAX.min(VALUES_BYTES_MAX / count.max(1));
        let wanted = WantedValues { keys: &keys, most_bytes, none_if_empty: false };
        let values = or_tell!(self.wanted_values(bucket, wanted).await?);
        if values.iter().flatten().any(|value| value.len() > most_bytes) {
            self.give_back(bytes_of(&values));
            return Ok(Err(too_long(most_bytes, count)));
        }
        Ok(Ok((values, places)))
    }

    /// Whether there is a value for this key.
    pub(in crate::capability) async fn has_key(
        &mut self,
        bucket: String,
        key: &str,
    ) -> HostResult<bool> {
        self.before_looking_at(key.len()).await?;
        or_tell!(check_key(key));
        let wanted = WantedValues { keys: &[key], most_bytes: 0, none_if_empty: false };
        let values = or_tell!(self.wanted_values(bucket, wanted).await?);
        self.give_back(bytes_of(&values));
        self.check_cpu()?;
        Ok(Ok(values.iter().any(Option::is_some)))
    }

    /// Set values, for so many milliseconds if that is given.
    pub(in crate::capability) async fn set_values(
        &mut self,
        bucket: String,
        values: &[(&str, &[u8])],
        ttl_ms: Option<u64>,
    ) -> HostResult<()> {
        self.before_looking_at(work_of_values(values)).await?;
        or_tell!(check_values(values, ttl_ms));
        let answer = ask!(self, bucket, 0, |stores, by| stores.set(by, values, ttl_ms));
        self.check_cpu()?;
        Ok(answer)
    }

    /// Forget keys.
    pub(in crate::capability) async fn remove_values(
        &mut self,
        bucket: String,
        keys: &[String],
    ) -> HostResult<()> {
        self.before_looking_at(work_of(keys)).await?;
        or_tell!(check_keys(keys));
        let Distinct { keys, .. } = Distinct::of(keys);
        let answer = ask!(self, bucket, 0, |stores, by| stores.remove(by, &keys));
        self.check_cpu()?;
        Ok(answer)
    }

    /// Add to a number. Returns the sum.
    pub(in crate::capability) async fn increment_value(
        &mut self,
        bucket: String,
        key: &str,
        delta: i64,
    ) -> HostResult<i64> {
        self.before_looking_at(key.len()).await?;
        or_tell!(check_key(key));
        let answer = ask!(self, bucket, 0, |stores, by| stores.increment(by, key, delta));
        self.check_cpu()?;
        Ok(answer)
    }

    /// A page of keys, from this cursor on. They are counted.
    pub(in crate::capability) async fn keys_from(
        &mut self,
        bucket: String,
        cursor: Option<&str>,
    ) -> HostResult<KeyPage> {
        let most = STORE_PAGE_KEYS * (VALUE_BYTES + KEY_BYTES_MAX);
        self.before_looking_at(cursor.map_or(0, str::len)).await?;
        or_tell!(cursor.map_or(Ok(()), check_cursor));
        let page = ask!(self, bucket, most, |stores, by| stores.keys(by, cursor));
        let kept = page
            .as_ref()
            .map_or(0, |page| page.keys.iter().map(|key| VALUE_BYTES + key.len()).sum::<usize>());
        // Redis gives a few more than it is asked for.
        self.hold(kept.saturating_sub(most))?;
        self.give_back(most.saturating_sub(kept));
        self.before_looking_at(kept).await?;
        Ok(page)
    }

    /// Compare a value and set it, in one step of the store. A value that is there instead is
    /// counted.
    pub(in crate::capability) async fn swap_value(
        &mut self,
        bucket: String,
        swap: Swap<'_>,
    ) -> HostResult<Swapped> {
        let Swap { key, expected, value } = swap;
        let bytes = key.len() + expected.map_or(0, <[u8]>::len) + value.len();
        self.before_looking_at(bytes).await?;
        or_tell!(check_key(key).and_then(|()| check_value(value, None)));
        let most = VALUE_BYTES + VALUE_BYTES_MAX + 1;
        let answer = ask!(self, bucket, most, |stores, by| stores.swap(by, swap));
        let other = match &answer {
            Ok(Swapped::Other(other)) => slice::from_ref(other),
            _ => &[],
        };
        let is_too_long = other.iter().flatten().any(|value| value.len() > VALUE_BYTES_MAX);
        let kept = if is_too_long { 0 } else { bytes_of(other) };
        self.give_back(most.saturating_sub(kept));
        self.check_cpu()?;
        Ok(if is_too_long { Err(too_long(VALUE_BYTES_MAX, 1)) } else { answer })
    }

    /// The tenant's stores, and this use of a bucket.
    fn access(&mut self, bucket: String) -> Result<(Arc<TenantStores>, StoreUse), StoreFault> {
        let granted = self.states.as_mut().0.clone();
        let deadline = self.context.as_ref().map(|context| context.deadline.instant());
        match (granted, deadline) {
            (Some((stores, is_trial)), Some(deadline)) => {
                let (held, meter) = (self.limiter.held().beside(), self.meter.clone());
                Ok((stores, StoreUse { bucket, deadline, is_trial, held, meter }))
            }
            _ => Err(StoreFault::not_granted(&bucket, std::iter::empty())),
        }
    }

    /// The values, longer ones cut. They are counted.
    pub(super) async fn wanted_values(
        &mut self,
        bucket: String,
        wanted: WantedValues<'_>,
    ) -> HostResult<Vec<Option<Bytes>>> {
        let most = wanted.keys.len() * (VALUE_BYTES + wanted.most_bytes + 1);
        let values = ask!(self, bucket, most, |stores, by| stores.get_many(by, wanted));
        let kept = values.as_ref().map_or(0, |values| bytes_of(values));
        self.give_back(most.saturating_sub(kept));
        Ok(values)
    }
}

/// The answer or the fault that the plugin is told. A tenant that holds too much ends the guest.
fn told<T>(answer: Result<T, NoAnswer>) -> Result<Result<T, StoreFault>, Limited> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(NoAnswer::Fault(fault)) => Ok(Err(fault)),
        Err(NoAnswer::OverBudget(error)) => Err(Limited::Owner(error)),
    }
}

/// The memory of values, with what belongs to each.
pub(in crate::capability) fn bytes_of(values: &[Option<Bytes>]) -> usize {
    values.iter().map(|value| VALUE_BYTES + value.as_ref().map_or(0, Bytes::len)).sum()
}

fn too_long(most_bytes: usize, count: usize) -> StoreFault {
    StoreFault::invalid(format!(
        "a value in the store is over the limit of {most_bytes} bytes for a call of {count} keys: a \
         value has at most {VALUE_BYTES_MAX} bytes, those of a call {VALUES_BYTES_MAX}"
    ))
}
