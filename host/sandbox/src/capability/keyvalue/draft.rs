//! `wasi:keyvalue` 0.2.0-draft for guests that were built for it: the functions of the later
//! version under other names.
//!
//! An adapter. Pages of keys and numbers that are incremented are `u64` there, and `cas` is
//! missing. A cursor of a store is a text. So the bucket keeps that of the next page, and the guest
//! gets its number.

use wasmtime::component::{ComponentType, Linker, Lower, Resource};

use super::bindings::atomics::Host as Atomics;
use super::bindings::batch::Host as Batch;
use super::bindings::store::{Error, Host as Store, HostBucket, KeyResponse};
use super::handles::Bucket;
use crate::call::CallState;
use crate::capability::methods::{link_methods, resource};
use crate::capability::{log, store};

pub(super) const STORE: &str = "wasi:keyvalue/store@0.2.0-draft";
pub(super) const BATCH: &str = "wasi:keyvalue/batch@0.2.0-draft";
pub(super) const ATOMICS: &str = "wasi:keyvalue/atomics@0.2.0-draft";

/// The record `key-response` of this version.
#[derive(ComponentType, Lower)]
#[component(record)]
struct Page {
    keys: Vec<String>,
    cursor: Option<u64>,
}

pub(super) fn link<S>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()>
where
    S: AsMut<store::CapabilityState> + AsMut<log::CapabilityState> + Send + 'static,
{
    let mut instance = linker.instance(STORE)?;
    resource::<S, Bucket>(&mut instance, "bucket")?;
    link_methods! { instance,
        async "open" = Store::open, (identifier: String);
        async "[method]bucket.get" = HostBucket::get, (bucket: Resource<Bucket>, key: String);
        async "[method]bucket.set" = HostBucket::set,
            (bucket: Resource<Bucket>, key: String, value: Vec<u8>);
        async "[method]bucket.delete" = HostBucket::delete,
            (bucket: Resource<Bucket>, key: String);
        async "[method]bucket.exists" = HostBucket::exists,
            (bucket: Resource<Bucket>, key: String);
        async "[method]bucket.list-keys" = CallState::list_page,
            (bucket: Resource<Bucket>, cursor: Option<u64>);
    }
    let mut instance = linker.instance(BATCH)?;
    link_methods! { instance,
        async "get-many" = Batch::get_many, (bucket: Resource<Bucket>, keys: Vec<String>);
        async "set-many" = Batch::set_many,
            (bucket: Resource<Bucket>, key_values: Vec<(String, Vec<u8>)>);
        async "delete-many" = Batch::delete_many, (bucket: Resource<Bucket>, keys: Vec<String>);
    }
    let mut instance = linker.instance(ATOMICS)?;
    link_methods! { instance,
        async "increment" = CallState::increment_unsigned,
            (bucket: Resource<Bucket>, key: String, delta: u64);
    }
    Ok(())
}

impl<S> CallState<S>
where
    S: AsMut<store::CapabilityState> + AsMut<log::CapabilityState> + Send,
{
    async fn list_page(
        &mut self,
        bucket: Resource<Bucket>,
        cursor: Option<u64>,
    ) -> wasmtime::Result<Result<Page, Error>> {
        let rep = bucket.rep();
        let begin = match (cursor, &self.table.get(&bucket)?.next_page) {
            (None, _) => None,
            (Some(number), Some((known_number, cursor))) if number == *known_number => {
                Some(cursor.clone())
            }
            (Some(number), _) => {
                let text = format!(
                    "the cursor {number} is not that of this bucket's last page: in this version of \
                     wasi:keyvalue a bucket knows only that one"
                );
                return Ok(Err(Error::Other(text)));
            }
        };
        let KeyResponse { keys, cursor: next } =
            or_tell!(HostBucket::list_keys(self, bucket, begin).await?);
        let number = cursor.unwrap_or(0).saturating_add(1);
        self.hold(next.as_ref().map_or(0, String::len))?;
        let bucket = self.table.get_mut(&Resource::<Bucket>::new_borrow(rep))?;
        bucket.next_page = next.map(|next| (number, next));
        Ok(Ok(Page { keys, cursor: bucket.next_page.as_ref().map(|(number, _)| *number) }))
    }

    async fn increment_unsigned(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
        delta: u64,
    ) -> wasmtime::Result<Result<u64, Error>> {
        let Ok(delta) = i64::try_from(delta) else {
            let text = format!("delta is {delta}: must be at most {}", i64::MAX);
            return Ok(Err(Error::Other(text)));
        };
        let sum = or_tell!(Atomics::increment(self, bucket, key, delta).await?);
        Ok(u64::try_from(sum).map_err(|_| {
            Error::Other(format!(
                "the sum is {sum}, which this version of wasi:keyvalue has no number for"
            ))
        }))
    }
}
