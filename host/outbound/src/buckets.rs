//! The stores that an operator has bound, each under its name: a bucket.
//!
//! The keys of a bucket begin with its prefix, so that buckets and tenants can share a server or a
//! file. The commands of a call are made where it is called, at the cost of the plugin. The rest is
//! done on threads of stores. The call ends by its own timeout, also if the request that began it
//! is gone. Its permit and its memory are given back when the work for it is over.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use gristmill_core::Name;
use gristmill_sandbox::{
    Cleared, KeyPage, StoreCall, StoreFault, Stores, Swap, Swapped, WantedValues,
};
use tokio::time::sleep;

use crate::answers::{Refusal, failure};
use crate::cache::Cache;
use crate::config::{BucketConfig, BucketKind, BucketsError};
use crate::embedded::{Change, Embedded, Key, OwnedSwap, TooLate, WantedKeys};
use crate::endpoint::EndpointError;
use crate::link::{LinkError, Until};
use crate::prefix::Prefix;
use crate::remote::{Question, Remote};
use crate::server::IDLE_MAX;
use crate::thread::Thread;

/// The stores of a server.
pub struct Buckets {
    buckets: HashMap<Name, Arc<Bucket>>,
    thread: Thread,
}

struct Bucket {
    name: Name,
    prefix: Prefix,
    timeout: Duration,
    client: Client,
}

enum Client {
    Redis(Remote, Option<Cache>),
    Embedded(Embedded),
}

impl Buckets {
    /// The buckets, with threads of their own. No connection is made yet. Buckets on one server
    /// share the connections. The files are in `directory`, which is made when one is needed.
    ///
    /// # Errors
    /// [`BucketsError`]
    pub fn new(
        configs: impl IntoIterator<Item = (Name, BucketConfig)>,
        directory: &Path,
    ) -> Result<Self, BucketsError> {
        let mut remotes = HashMap::<_, Remote>::new();
        let mut buckets = HashMap::new();
        for (name, BucketConfig { kind, prefix, timeout, cache }) in configs {
            let client = match kind {
                BucketKind::Embedded { max_bytes } => {
                    let path = directory.join(format!("{}.redb", name.as_str()));
                    let embedded = Embedded::start(&name, path, max_bytes);
                    Client::Embedded(embedded.map_err(BucketsError::Thread)?)
                }
                BucketKind::Redis(config) => {
                    let remote = match remotes.entry(config) {
                        Entry::Occupied(remote) => remote.get().clone(),
                        Entry::Vacant(place) => {
                            let remote = Remote::new(place.key());
                            let remote = remote.map_err(|error| no_remote(&name, error))?;
                            place.insert(remote).clone()
                        }
                    };
                    Client::Redis(remote, cache.map(Cache::new))
                }
            };
            let bucket = Bucket { name: name.clone(), prefix, timeout, client };
            buckets.insert(name, Arc::new(bucket));
        }
        let thread = Thread::start("stores").map_err(BucketsError::Thread)?;
        // It ends with the thread.
        drop(thread.spawn(drop_idle(remotes.into_values().collect())));
        Ok(Self { buckets, thread })
    }

    fn bucket(&self, call: &StoreCall) -> Result<&Arc<Bucket>, StoreFault> {
        let bucket = self.buckets.get(&call.bucket);
        bucket.ok_or_else(|| StoreFault::unavailable("this server has no such store"))
    }

    /// Ask Redis.
    async fn ask<T: Send + 'static>(
        &self,
        bucket: &Arc<Bucket>,
        question: Question<T>,
        call: StoreCall,
    ) -> Result<T, StoreFault> {
        let changed = question.changed.clone();
        let asking = |call, until| question.ask(call, until);
        self.ask_changing(bucket, changed, call, asking).await
    }

    /// Ask Redis what may change these keys. The work goes on if the request is gone.
    async fn ask_changing<T: Send + 'static, F>(
        &self,
        bucket: &Arc<Bucket>,
        changed: Vec<String>,
        call: StoreCall,
        asking: impl FnOnce(StoreCall, Until) -> F + Send + 'static,
    ) -> Result<T, StoreFault>
    where
        F: Future<Output = Result<T, LinkError>> + Send,
    {
        let bucket = bucket.clone();
        let asking = self.thread.spawn(async move {
            // The time of the server begins when this thread comes to the call.
            let until = bucket.until(call.owner(), call.deadline);
            let answer = asking(call, until).await;
            // Also if it failed: the server may have done it.
            if let Some(cache) = bucket.cache() {
                changed.iter().for_each(|key| cache.changed(key));
            }
            answer.map_err(|error| bucket.fault(&error, until))
        });
        asking
            .await
            .unwrap_or_else(|_| Err(StoreFault::unavailable("the client of the store failed")))
    }
}

/// Drop links that are idle, now and then.
async fn drop_idle(remotes: Vec<Remote>) {
    loop {
        sleep(IDLE_MAX / 4).await;
        remotes.iter().for_each(|remote| remote.drop_idle(Instant::now()));
    }
}

/// Why a bucket cannot be bound.
fn no_remote(name: &Name, error: EndpointError) -> BucketsError {
    match error {
        EndpointError::Refused => BucketsError::Refused(name.clone()),
        EndpointError::NoAuthorities => BucketsError::NoAuthorities(name.clone()),
    }
}

impl Bucket {
    fn cache(&self) -> Option<&Cache> {
        match &self.client {
            Client::Redis(_, cache) => cache.as_ref(),
            Client::Embedded(_) => None,
        }
    }

    /// When a call ends whose request ends at `deadline`. The operator's has all the time until
    /// then.
    fn until(&self, owner: Option<&Name>, deadline: Instant) -> Until {
        let whole = Instant::now() + self.timeout;
        let is_whole = owner.is_some() && whole <= deadline;
        let at = if is_whole { whole } else { deadline };
        Until { at, timeout: self.timeout, is_whole }
    }

    /// The key of a tenant.
    fn key(&self, tenant: &Name, key: &str) -> Key {
        Key::new(&self.prefix.of(tenant), key)
    }

    /// Make changes in an embedded store.
    async fn change(
        &self,
        embedded: &Embedded,
        call: StoreCall,
        changes: Vec<Change>,
    ) -> Result<usize, StoreFault> {
        let until = self.until(call.owner(), call.deadline);
        self.answer(until, embedded.change(call, until.at, changes).await)
    }

    /// The answer of an embedded store.
    fn answer<T>(
        &self,
        until: Until,
        answer: Result<Result<T, StoreFault>, TooLate>,
    ) -> Result<T, StoreFault> {
        let answer = answer.map_err(|TooLate| self.fault(&LinkError::TooLate, until))?;
        let name = self.name.as_str();
        answer.map_err(|StoreFault { kind, text }| {
            StoreFault::new(kind, format!("store {name:?}: {text}"))
        })
    }

    /// The error that a plugin gets. Its text names no address.
    fn fault(&self, error: &LinkError, until: Until) -> StoreFault {
        let name = self.name.as_str();
        let why = match error {
            LinkError::Paused(left) => format!(
                "it did not answer before; the next call is tried in {} ms",
                left.as_millis()
            ),
            LinkError::TooLate if until.is_whole => format!(
                "no answer within {} ms (timeout_ms of [stores.{name}] in gristmill.toml)",
                self.timeout.as_millis()
            ),
            LinkError::TooLate => "no answer until the request's deadline".to_owned(),
            LinkError::Garbage => "its answer is not one to the command".to_owned(),
            LinkError::Refused(refusal) if refusal.is_about_value() => {
                return StoreFault::invalid(format!("store {name:?}: {refusal}"));
            }
            LinkError::Refused(refusal) => refusal.to_string(),
            LinkError::NoServer => "no server of the cluster has the key now".to_owned(),
            LinkError::KeysMoved => {
                return StoreFault::invalid(format!(
                    "store {name:?}: keys of the cluster have moved since the page with this \
                     cursor, or another server gave it: list the keys from the beginning"
                ));
            }
            LinkError::Broken(error) => match Refusal::of(error) {
                Some(refusal) => format!("the connection is refused: {refusal}"),
                None => format!("the connection failed: {}", failure(error, name)),
            },
        };
        StoreFault::unavailable(format!("store {name:?}: {why}"))
    }
}

#[async_trait]
impl Stores for Buckets {
    fn prefix_bytes(&self, bucket: &str, tenant: &Name) -> Option<usize> {
        self.buckets.get(bucket).map(|bucket| bucket.prefix.of(tenant).len())
    }

    async fn get_many(
        &self,
        call: StoreCall,
        wanted: WantedValues<'_>,
    ) -> Result<Vec<Option<Bytes>>, StoreFault> {
        let bucket = self.bucket(&call)?;
        let prefix = bucket.prefix.of(&call.tenant);
        let (remote, cache) = match &bucket.client {
            Client::Redis(remote, cache) => (remote, cache),
            Client::Embedded(embedded) => {
                let WantedValues { keys, most_bytes, none_if_empty } = wanted;
                let keys = keys.iter().map(|key| format!("{prefix}{key}")).collect();
                let wanted = WantedKeys { keys, most_bytes, none_if_empty };
                let until = bucket.until(call.owner(), call.deadline);
                return bucket.answer(until, embedded.values(call, until.at, wanted).await);
            }
        };
        // The operator looks at what Redis has.
        let Some(cache) = cache.as_ref().filter(|_| call.owner().is_some()) else {
            return self.ask(bucket, remote.get_many(&prefix, wanted), call).await;
        };
        let found = cache.find(&prefix, wanted, Instant::now());
        let missing = found.missing.iter().filter_map(|missing| wanted.keys.get(missing.place));
        let missing: Vec<_> = missing.copied().collect();
        let fresh = match missing.is_empty() {
            true => Vec::new(),
            false => {
                let wanted = WantedValues { keys: &missing, ..wanted };
                self.ask(bucket, remote.get_many(&prefix, wanted), call).await?
            }
        };
        Ok(cache.complete(found, wanted, fresh))
    }

    async fn set(
        &self,
        call: StoreCall,
        values: &[(&str, &[u8])],
        ttl_ms: Option<u64>,
    ) -> Result<(), StoreFault> {
        let bucket = self.bucket(&call)?;
        let remote = match &bucket.client {
            Client::Redis(remote, _) => remote,
            Client::Embedded(embedded) => {
                let changes = values.iter().map(|(key, value)| Change::Set {
                    key: bucket.key(&call.tenant, key),
                    value: Bytes::copy_from_slice(value),
                    ttl_ms,
                });
                let changes = changes.collect();
                return bucket.change(embedded, call, changes).await.map(drop);
            }
        };
        let question = remote.set(&bucket.prefix.of(&call.tenant), values, ttl_ms);
        self.ask(bucket, question, call).await
    }

    async fn increment(&self, call: StoreCall, key: &str, delta: i64) -> Result<i64, StoreFault> {
        let bucket = self.bucket(&call)?;
        let remote = match &bucket.client {
            Client::Redis(remote, _) => remote,
            Client::Embedded(embedded) => {
                let until = bucket.until(call.owner(), call.deadline);
                let key = bucket.key(&call.tenant, key);
                let sum = embedded.increment(call, until.at, key, delta).await;
                return bucket.answer(until, sum);
            }
        };
        let question = remote.increment(&bucket.prefix.of(&call.tenant), key, delta);
        self.ask(bucket, question, call).await
    }

    async fn remove(&self, call: StoreCall, keys: &[&str]) -> Result<usize, StoreFault> {
        let bucket = self.bucket(&call)?;
        let remote = match &bucket.client {
            Client::Redis(remote, _) => remote,
            Client::Embedded(embedded) => {
                let change = |key: &&str| Change::Remove { key: bucket.key(&call.tenant, key) };
                let changes = keys.iter().map(change).collect();
                return bucket.change(embedded, call, changes).await;
            }
        };
        let question = remote.remove(&bucket.prefix.of(&call.tenant), keys);
        self.ask(bucket, question, call).await
    }

    async fn keys(&self, call: StoreCall, cursor: Option<&str>) -> Result<KeyPage, StoreFault> {
        let bucket = self.bucket(&call)?;
        let prefix = bucket.prefix.of(&call.tenant);
        let remote = match &bucket.client {
            Client::Redis(remote, _) => remote,
            Client::Embedded(embedded) => {
                let until = bucket.until(call.owner(), call.deadline);
                let after = cursor.map(str::to_owned);
                return bucket.answer(until, embedded.keys(call, until.at, prefix, after).await);
            }
        };
        let Some(listing) = remote.keys(prefix, cursor) else {
            let name = bucket.name.as_str();
            return Err(StoreFault::invalid(format!(
                "store {name:?}: the cursor is not one that a page of its keys had"
            )));
        };
        let asking = |call, until| listing.ask(call, until);
        self.ask_changing(bucket, Vec::new(), call, asking).await
    }

    async fn swap(&self, call: StoreCall, swap: Swap<'_>) -> Result<Swapped, StoreFault> {
        let bucket = self.bucket(&call)?;
        let remote = match &bucket.client {
            Client::Redis(remote, _) => remote,
            Client::Embedded(embedded) => {
                let until = bucket.until(call.owner(), call.deadline);
                let swap = OwnedSwap {
                    key: bucket.key(&call.tenant, swap.key),
                    expected: swap.expected.map(Bytes::copy_from_slice),
                    value: Bytes::copy_from_slice(swap.value),
                };
                return bucket.answer(until, embedded.swap(call, until.at, swap).await);
            }
        };
        let question = remote.swap(&bucket.prefix.of(&call.tenant), swap);
        self.ask(bucket, question, call).await
    }

    async fn clear(&self, call: StoreCall) -> Result<Cleared, StoreFault> {
        let bucket = self.bucket(&call)?;
        let (name, prefix) = (bucket.name.as_str(), bucket.prefix.of(&call.tenant));
        if !bucket.prefix.is_of_tenant() {
            return Err(StoreFault::invalid(format!(
                "store {name:?}: tenants share its keys (its prefix is {prefix:?}), so none can be \
                 told as this tenant's: delete them one by one"
            )));
        }
        let Client::Embedded(embedded) = &bucket.client else {
            return Err(StoreFault::invalid(format!(
                "store {name:?} is in Redis: delete the keys there that begin with {prefix:?}; \
                 redis-cli --scan --pattern '{prefix}*' lists those of one server"
            )));
        };
        let until = bucket.until(call.owner(), call.deadline);
        bucket.answer(until, embedded.clear(call, until.at, prefix).await)
    }

    fn cached_bytes(&self) -> usize {
        self.buckets.values().filter_map(|bucket| bucket.cache()).map(Cache::bytes).sum()
    }

    async fn flush(&self) {
        for bucket in self.buckets.values() {
            if let Client::Embedded(embedded) = &bucket.client {
                embedded.flush().await;
            }
        }
    }
}
