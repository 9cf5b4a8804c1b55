//! `store`: values by key, in stores that the operator binds.
//!
//! The guest's fiber waits for the store: it keeps its permits, but uses no thread and no CPU time.
//! The values are counted before they are asked for, at their largest: the store cuts longer ones.

mod arguments;
mod bindings;

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{BufferPool, Dtype, Tensor};
use wasmtime::component::{HasSelf, Linker, Resource};

use self::arguments::{Distinct, VALUE_BYTES_MAX, check_key, check_keys, check_value, work_of};
pub use self::bindings::wit;
use super::tensors::text_of;
use crate::call::CallState;
use crate::grant::{Grant, PerCall};
use crate::limiter::Limited;
use crate::meter::Lookup;
use crate::stores::{
    NoAnswer, StoreFault, StoreFaultKind, StoreUse, TenantStores, WantedValues, shown,
};

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &["gristmill:plugin/store@0.3.0"];

/// Maximum bytes of all values of a call: they are counted before they are asked for.
const VALUES_BYTES_MAX: usize = 16 << 20;

/// The memory of a value besides its bytes: its place in lists and in the call's table.
const VALUE_BYTES: usize = 128;

/// The bytes of one element of a row.
const ELEMENT_BYTES: usize = size_of::<f32>();

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

pub(crate) fn link<S: AsMut<CapabilityState> + Send + 'static>(
    linker: &mut Linker<CallState<S>>,
) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

type Answer<T> = wasmtime::Result<Result<T, wit::StoreError>>;

impl<S: AsMut<CapabilityState> + Send> wit::Host for CallState<S> {
    async fn get(&mut self, bucket: String, key: String) -> Answer<Option<Resource<Bytes>>> {
        let got = wit::Host::get_many(self, bucket, vec![key]).await?;
        Ok(got.map(|values| values.into_iter().flatten().next()))
    }

    async fn get_many(
        &mut self,
        bucket: String,
        keys: Vec<String>,
    ) -> Answer<Vec<Option<Resource<Bytes>>>> {
        self.before_looking_at(work_of(&keys)).await?;
        if let Err(fault) = check_keys(&keys) {
            return Ok(Err(error_of(fault)));
        }
        let Distinct { keys, places } = Distinct::of(&keys);
        let values = match self.values(bucket, &keys).await? {
            Ok(values) => values,
            Err(fault) => return Ok(Err(error_of(fault))),
        };
        self.hold(places.len() * VALUE_BYTES)?;
        let mut blobs = Vec::with_capacity(places.len());
        for at in places {
            let value = values.get(at).cloned().flatten();
            blobs.push(value.map(|value| self.table.push(value)).transpose()?);
        }
        self.check_cpu()?;
        Ok(Ok(blobs))
    }

    async fn gather(
        &mut self,
        bucket: String,
        keys: Vec<String>,
        width: u32,
        missing: f32,
    ) -> Answer<Resource<Tensor>> {
        self.before_looking_at(work_of(&keys)).await?;
        if let Err(fault) = check_keys(&keys) {
            return Ok(Err(error_of(fault)));
        }
        if width == 0 {
            return Ok(Err(error_of(StoreFault::invalid("width is 0: must be at least 1"))));
        }
        let row_bytes = (width as usize).saturating_mul(ELEMENT_BYTES);
        let bytes = keys.len().saturating_mul(row_bytes);
        if let Err(error) = self.reserve_tensor(2, bytes).await? {
            return Ok(Err(wit::StoreError::InvalidArgument(text_of(error))));
        }
        let gathered = self.gather_rows(bucket, &keys, row_bytes, missing).await?;
        let tensor = match gathered {
            Ok(tensor) => tensor,
            Err(fault) => {
                self.give_back(BufferPool::bytes_taken(bytes));
                return Ok(Err(error_of(fault)));
            }
        };
        let tensor = self.table.push(tensor)?;
        self.check_cpu()?;
        Ok(Ok(tensor))
    }

    async fn set(
        &mut self,
        bucket: String,
        key: String,
        value: Vec<u8>,
        ttl_ms: Option<u64>,
    ) -> Answer<()> {
        self.before_looking_at(key.len() + value.len()).await?;
        let checked = check_key(&key).and_then(|()| check_value(&value, ttl_ms));
        let (stores, by) = match checked.and_then(|()| self.access(bucket)) {
            Ok(access) => access,
            Err(fault) => return Ok(Err(error_of(fault))),
        };
        let answer = {
            let _waiting = Lookup::begin(&self.meter);
            stores.set(by, &key, &value, ttl_ms).await
        };
        let answer = told(answer)?;
        self.check_cpu()?;
        Ok(answer.map_err(error_of))
    }

    async fn increment(&mut self, bucket: String, key: String, delta: i64) -> Answer<i64> {
        self.before_looking_at(key.len()).await?;
        let (stores, by) = match check_key(&key).and_then(|()| self.access(bucket)) {
            Ok(access) => access,
            Err(fault) => return Ok(Err(error_of(fault))),
        };
        let answer = {
            let _waiting = Lookup::begin(&self.meter);
            stores.increment(by, &key, delta).await
        };
        let answer = told(answer)?;
        self.check_cpu()?;
        Ok(answer.map_err(error_of))
    }
}

impl<S: AsMut<CapabilityState> + Send> CallState<S> {
    /// The tenant's stores, and this use of a bucket.
    fn access(&mut self, bucket: String) -> Result<(Arc<TenantStores>, StoreUse), StoreFault> {
        let granted = self.states.as_mut().0.clone();
        let deadline = self.context.as_ref().map(|context| context.deadline.instant());
        match (granted, deadline) {
            (Some((stores, is_trial)), Some(deadline)) => {
                let held = self.limiter.held().beside();
                Ok((stores, StoreUse { bucket, deadline, is_trial, held }))
            }
            _ => Err(StoreFault::not_granted(&bucket, std::iter::empty())),
        }
    }

    /// The values of these keys, which are distinct. They are counted.
    async fn values(
        &mut self,
        bucket: String,
        keys: &[&str],
    ) -> wasmtime::Result<Result<Vec<Option<Bytes>>, StoreFault>> {
        let count = keys.len();
        let most_bytes = VALUE_BYTES_MAX.min(VALUES_BYTES_MAX / count.max(1));
        let wanted = WantedValues { keys, most_bytes, none_if_empty: false };
        let values = match self.wanted_values(bucket, wanted).await? {
            Ok(values) => values,
            Err(fault) => return Ok(Err(fault)),
        };
        if values.iter().flatten().any(|value| value.len() > most_bytes) {
            self.give_back(bytes_of(&values));
            return Ok(Err(StoreFault::invalid(format!(
                "a value in the store is over the limit of {most_bytes} bytes for a call of {count} \
                 keys: a value has at most {VALUE_BYTES_MAX} bytes, those of a call \
                 {VALUES_BYTES_MAX}"
            ))));
        }
        Ok(Ok(values))
    }

    /// The values, longer ones cut. They are counted.
    async fn wanted_values(
        &mut self,
        bucket: String,
        wanted: WantedValues<'_>,
    ) -> wasmtime::Result<Result<Vec<Option<Bytes>>, StoreFault>> {
        let (stores, by) = match self.access(bucket) {
            Ok(access) => access,
            Err(fault) => return Ok(Err(fault)),
        };
        let most = wanted.keys.len() * (VALUE_BYTES + wanted.most_bytes + 1);
        self.hold(most)?;
        let values = {
            let _waiting = Lookup::begin(&self.meter);
            stores.get_many(by, wanted).await
        };
        let values = told(values)?;
        let kept = values.as_ref().map_or(0, |values| bytes_of(values));
        self.give_back(most.saturating_sub(kept));
        Ok(values)
    }

    /// The tensor of the values, whose memory is counted already.
    async fn gather_rows(
        &mut self,
        bucket: String,
        keys: &[String],
        row_bytes: usize,
        missing: f32,
    ) -> wasmtime::Result<Result<Tensor, StoreFault>> {
        let Distinct { keys, places } = Distinct::of(keys);
        let bytes = keys.len().saturating_mul(row_bytes);
        if bytes > VALUES_BYTES_MAX {
            return Ok(Err(StoreFault::invalid(format!(
                "{} different keys with rows of {row_bytes} bytes have {bytes} bytes: the limit for \
                 one call is {VALUES_BYTES_MAX}; gather fewer keys at once",
                keys.len()
            ))));
        }
        let wanted = WantedValues { keys: &keys, most_bytes: row_bytes, none_if_empty: true };
        let values = match self.wanted_values(bucket, wanted).await? {
            Ok(values) => values,
            Err(fault) => return Ok(Err(fault)),
        };
        let held = bytes_of(&values);
        let wrong = keys.iter().zip(&values).find_map(|(key, value)| {
            let bytes = value.as_ref()?.len();
            (bytes != row_bytes).then(|| (shown(key), bytes))
        });
        if let Some((key, bytes)) = wrong {
            self.give_back(held);
            let width = row_bytes / ELEMENT_BYTES;
            let has = match bytes > row_bytes {
                true => "more".to_owned(),
                false => format!("{bytes}"),
            };
            return Ok(Err(StoreFault::invalid(format!(
                "the value of {key:?} has {has} bytes, but {width} float32 have {row_bytes}"
            ))));
        }
        self.before_looking_at(places.len() * row_bytes).await?;
        let missing = missing.to_le_bytes();
        let buffer = self.pool.fill(places.len() * row_bytes, |rows| {
            for (row, at) in rows.chunks_exact_mut(row_bytes).zip(&places) {
                match values.get(*at).and_then(Option::as_ref) {
                    Some(value) => row.copy_from_slice(value),
                    None => row
                        .chunks_exact_mut(ELEMENT_BYTES)
                        .for_each(|element| element.copy_from_slice(&missing)),
                }
            }
        });
        self.give_back(held);
        let shape = [places.len(), row_bytes / ELEMENT_BYTES].as_slice().into();
        Ok(Ok(Tensor::new(Dtype::Float32, shape, buffer)?))
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
fn bytes_of(values: &[Option<Bytes>]) -> usize {
    values.iter().map(|value| VALUE_BYTES + value.as_ref().map_or(0, Bytes::len)).sum()
}

fn error_of(StoreFault { kind, text }: StoreFault) -> wit::StoreError {
    match kind {
        StoreFaultKind::NotGranted => wit::StoreError::NotGranted(text),
        StoreFaultKind::InvalidArgument => wit::StoreError::InvalidArgument(text),
        StoreFaultKind::Unavailable => wit::StoreError::Unavailable(text),
        StoreFaultKind::ReadOnly => wit::StoreError::ReadOnly(text),
    }
}
