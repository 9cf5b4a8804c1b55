//! `wasi:keyvalue`: the stores of the capability `store`, for guests that were built for other
//! hosts.
//!
//! It has no state and no rules of its own: which stores there are, what is bounded, counted and
//! charged, and what a trial does, is decided in `store::asked`. A guest that may not open or
//! change a store is told so by a case without a text. So the reason is a line of the plugin's log.
//!
//! A handle of `cas` has the value that was there when it was made. The store compares it.

mod bindings;
mod draft;
mod handles;

use bytes::Bytes;
use wasmtime::component::{HasSelf, Linker, Resource};

use self::bindings::{atomics, batch, store};
use self::handles::{Bucket, Cas};
use super::log::{self, Level};
use super::store::{CapabilityState, VALUE_BYTES, VALUES_BYTES_MAX, bytes_of};
use crate::call::CallState;
use crate::stores::{KeyPage, StoreFault, StoreFaultKind, Swap, Swapped};

/// The interfaces that it links. Both versions are in use: Spin has the second one, wasmCloud and
/// wasmtime the first one.
pub(crate) const INTERFACES: &[&str] = &[
    "wasi:keyvalue/store@0.2.0-draft2",
    "wasi:keyvalue/batch@0.2.0-draft2",
    "wasi:keyvalue/atomics@0.2.0-draft2",
    draft::STORE,
    draft::BATCH,
    draft::ATOMICS,
];

pub(crate) fn link<S>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send + 'static,
{
    store::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    batch::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    atomics::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    draft::link(linker)
}

type HostResult<T> = wasmtime::Result<Result<T, store::Error>>;

/// The value, or return the fault to the guest.
macro_rules! or_refuse {
    ($state:ident, $asked:expr) => {
        match $asked {
            Ok(value) => value,
            Err(fault) => return Ok(Err($state.refusal(fault))),
        }
    };
}

impl<S> store::Host for CallState<S>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send,
{
    async fn open(&mut self, identifier: String) -> HostResult<Resource<Bucket>> {
        or_refuse!(self, self.find_bucket(&identifier).await?);
        self.hold(VALUE_BYTES + identifier.len())?;
        let bucket = Bucket { name: identifier, next_page: None };
        Ok(Ok(self.table.push(bucket)?))
    }
}

impl<S> store::HostBucket for CallState<S>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send,
{
    async fn get(&mut self, bucket: Resource<Bucket>, key: String) -> HostResult<Option<Vec<u8>>> {
        let values = or_refuse!(self, self.copied_values(&bucket, &[key]).await?);
        Ok(Ok(values.into_iter().flatten().next()))
    }

    async fn set(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
        value: Vec<u8>,
    ) -> HostResult<()> {
        let bucket = self.name_of(&bucket)?;
        let values = [(key.as_str(), value.as_slice())];
        or_refuse!(self, self.set_values(bucket, &values, None).await?);
        Ok(Ok(()))
    }

    async fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> HostResult<()> {
        let bucket = self.name_of(&bucket)?;
        or_refuse!(self, self.remove_values(bucket, &[key]).await?);
        Ok(Ok(()))
    }

    async fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> HostResult<bool> {
        let bucket = self.name_of(&bucket)?;
        Ok(Ok(or_refuse!(self, self.has_key(bucket, &key).await?)))
    }

    async fn list_keys(
        &mut self,
        bucket: Resource<Bucket>,
        cursor: Option<String>,
    ) -> HostResult<store::KeyResponse> {
        let bucket = self.name_of(&bucket)?;
        let page = or_refuse!(self, self.keys_from(bucket, cursor.as_deref()).await?);
        let KeyPage { keys, next } = page;
        Ok(Ok(store::KeyResponse { keys, cursor: next }))
    }

    async fn drop(&mut self, bucket: Resource<Bucket>) -> wasmtime::Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl<S> batch::Host for CallState<S>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send,
{
    async fn get_many(
        &mut self,
        bucket: Resource<Bucket>,
        keys: Vec<String>,
    ) -> HostResult<Vec<Option<(String, Vec<u8>)>>> {
        let values = or_refuse!(self, self.copied_values(&bucket, &keys).await?);
        let with_key = |(key, value): (String, Option<Vec<u8>>)| Some((key, value?));
        Ok(Ok(keys.into_iter().zip(values).map(with_key).collect()))
    }

    async fn set_many(
        &mut self,
        bucket: Resource<Bucket>,
        key_values: Vec<(String, Vec<u8>)>,
    ) -> HostResult<()> {
        let bucket = self.name_of(&bucket)?;
        let values: Vec<_> =
            key_values.iter().map(|(key, value)| (key.as_str(), value.as_slice())).collect();
        or_refuse!(self, self.set_values(bucket, &values, None).await?);
        Ok(Ok(()))
    }

    async fn delete_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> HostResult<()> {
        let bucket = self.name_of(&bucket)?;
        or_refuse!(self, self.remove_values(bucket, &keys).await?);
        Ok(Ok(()))
    }
}

impl<S> atomics::Host for CallState<S>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send,
{
    async fn increment(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
        delta: i64,
    ) -> HostResult<i64> {
        let bucket = self.name_of(&bucket)?;
        Ok(Ok(or_refuse!(self, self.increment_value(bucket, &key, delta).await?)))
    }

    async fn swap(
        &mut self,
        cas: Resource<Cas>,
        value: Vec<u8>,
    ) -> wasmtime::Result<Result<(), atomics::CasError>> {
        let Cas { bucket, key, expected } = self.table.delete(cas)?;
        let swap = Swap { key: &key, expected: expected.as_deref(), value: &value };
        Ok(match self.swap_value(bucket.clone(), swap).await? {
            Ok(Swapped::Done) => Ok(()),
            Ok(Swapped::Other(expected)) => {
                let cas = self.table.push(Cas { bucket, key, expected })?;
                Err(atomics::CasError::CasFailed(cas))
            }
            Err(fault) => Err(atomics::CasError::StoreError(self.refusal(fault))),
        })
    }
}

impl<S> atomics::HostCas for CallState<S>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send,
{
    async fn new(&mut self, bucket: Resource<Bucket>, key: String) -> HostResult<Resource<Cas>> {
        let bucket = self.name_of(&bucket)?;
        let keys = [key];
        let (values, _) = or_refuse!(self, self.values_of(bucket.clone(), &keys).await?);
        let ([key], expected) = (keys, values.into_iter().flatten().next());
        self.hold(VALUE_BYTES + key.len())?;
        Ok(Ok(self.table.push(Cas { bucket, key, expected })?))
    }

    async fn current(&mut self, cas: Resource<Cas>) -> HostResult<Option<Vec<u8>>> {
        let expected = self.table.get(&cas)?.expected.clone();
        self.before_copying(expected.as_ref().map_or(0, Bytes::len)).await?;
        Ok(Ok(expected.map(|value| value.to_vec())))
    }

    async fn drop(&mut self, cas: Resource<Cas>) -> wasmtime::Result<()> {
        self.table.delete(cas)?;
        Ok(())
    }
}

impl<S> CallState<S>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send,
{
    fn name_of(&self, bucket: &Resource<Bucket>) -> wasmtime::Result<String> {
        Ok(self.table.get(bucket)?.name.clone())
    }

    /// The values of keys, in their order, as the guest gets them.
    async fn copied_values(
        &mut self,
        bucket: &Resource<Bucket>,
        keys: &[String],
    ) -> wasmtime::Result<Result<Vec<Option<Vec<u8>>>, StoreFault>> {
        let bucket = self.name_of(bucket)?;
        let (values, places) = or_tell!(self.values_of(bucket, keys).await?);
        let value = |at: &usize| values.get(*at).and_then(Option::as_ref);
        let bytes: usize = places.iter().filter_map(value).map(Bytes::len).sum();
        // A key that stands several times is copied as often.
        if bytes > VALUES_BYTES_MAX {
            self.give_back(bytes_of(&values));
            return Ok(Err(StoreFault::invalid(format!(
                "the values of these keys have {bytes} bytes: the limit for one call is \
                 {VALUES_BYTES_MAX}; name no key several times, or fewer keys"
            ))));
        }
        self.before_copying(places.len() * VALUE_BYTES + bytes).await?;
        let copied = places.iter().map(|at| Some(value(at)?.to_vec())).collect();
        self.give_back(bytes_of(&values));
        self.check_cpu()?;
        Ok(Ok(copied))
    }

    /// The error that the guest gets.
    fn refusal(&mut self, StoreFault { kind, text }: StoreFault) -> store::Error {
        let error = match kind {
            StoreFaultKind::NotGranted => store::Error::NoSuchStore,
            StoreFaultKind::ReadOnly => store::Error::AccessDenied,
            StoreFaultKind::InvalidArgument | StoreFaultKind::Unavailable => {
                return store::Error::Other(text);
            }
        };
        let log = AsMut::<log::CapabilityState>::as_mut(&mut self.states).share();
        log.lock().line(Level::Warn, &text);
        error
    }
}
