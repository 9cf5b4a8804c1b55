//! `store`: values by key, in stores that the operator binds. How they are asked is in `asked`.

mod arguments;
mod asked;
mod bindings;

use bytes::Bytes;
use gristmill_core::{BufferPool, Dtype, Tensor};
use wasmtime::component::{HasSelf, Linker, Resource};

pub(super) use self::arguments::VALUES_BYTES_MAX;
use self::arguments::{Distinct, check_ids, check_keys, keys_by, keys_bytes, work_of};
pub(crate) use self::asked::CapabilityState;
pub(super) use self::asked::{VALUE_BYTES, bytes_of};
pub use self::bindings::wit;
use super::tensors::text_of;
use crate::call::CallState;
use crate::stores::{StoreFault, StoreFaultKind, WantedValues, shown};

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &["gristmill:plugin/store@0.3.0"];

/// The bytes of one element of a row.
const ELEMENT_BYTES: usize = size_of::<f32>();

pub(crate) fn link<S: AsMut<CapabilityState> + Send + 'static>(
    linker: &mut Linker<CallState<S>>,
) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

type HostResult<T> = wasmtime::Result<Result<T, wit::StoreError>>;

impl<S: AsMut<CapabilityState> + Send> wit::Host for CallState<S> {
    async fn get(&mut self, bucket: String, key: String) -> HostResult<Option<Resource<Bytes>>> {
        let got = wit::Host::get_many(self, bucket, vec![key]).await?;
        Ok(got.map(|values| values.into_iter().flatten().next()))
    }

    async fn get_many(
        &mut self,
        bucket: String,
        keys: Vec<String>,
    ) -> HostResult<Vec<Option<Resource<Bytes>>>> {
        let (values, places) = match self.values_of(bucket, &keys).await? {
            Ok(found) => found,
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
    ) -> HostResult<Resource<Tensor>> {
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

    async fn gather_by(
        &mut self,
        bucket: String,
        prefix: String,
        ids: Resource<Tensor>,
        width: u32,
        missing: f32,
    ) -> HostResult<Resource<Tensor>> {
        let ids = self.table.get(&ids)?.clone();
        if let Err(fault) = check_ids(&prefix, &ids) {
            return Ok(Err(error_of(fault)));
        }
        let held = keys_bytes(&prefix, &ids);
        self.before_looking_at(held).await?;
        self.hold(held)?;
        let gathered = match keys_by(&prefix, &ids) {
            Ok(keys) => wit::Host::gather(self, bucket, keys, width, missing).await?,
            Err(fault) => Err(error_of(fault)),
        };
        self.give_back(held);
        Ok(gathered)
    }

    async fn set(
        &mut self,
        bucket: String,
        key: String,
        value: Vec<u8>,
        ttl_ms: Option<u64>,
    ) -> HostResult<()> {
        let set = self.set_values(bucket, &[(key.as_str(), value.as_slice())], ttl_ms).await?;
        Ok(set.map_err(error_of))
    }

    async fn increment(&mut self, bucket: String, key: String, delta: i64) -> HostResult<i64> {
        let sum = self.increment_value(bucket, &key, delta).await?;
        Ok(sum.map_err(error_of))
    }
}

impl<S: AsMut<CapabilityState> + Send> CallState<S> {
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

fn error_of(StoreFault { kind, text }: StoreFault) -> wit::StoreError {
    match kind {
        StoreFaultKind::NotGranted => wit::StoreError::NotGranted(text),
        StoreFaultKind::InvalidArgument => wit::StoreError::InvalidArgument(text),
        StoreFaultKind::Unavailable => wit::StoreError::Unavailable(text),
        StoreFaultKind::ReadOnly => wit::StoreError::ReadOnly(text),
    }
}
