//! The stores that an operator has bound, each under its name: a bucket.
//!
//! The keys of a bucket begin with its prefix, so that buckets and tenants can share a server. The
//! commands of a call are made where it is called, at the cost of the plugin. They are sent and
//! answered in a task on the thread of stores. The call ends by its own timeout, also if the
//! request that began it is gone. Its permit and its memory are given back when the answer has
//! come, or the connection is dropped.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use gristmill_core::Name;
use gristmill_sandbox::{StoreCall, StoreFault, Stores, WantedValues};
use redis::{Pipeline, Value};
use tokio::time::sleep;

use crate::answers::{Refusal, filled_values, number, values};
use crate::link::{Commands, LinkError, Until};
use crate::password::Password;
use crate::prefix::Prefix;
use crate::redis_url::RedisUrl;
use crate::server::{IDLE_MAX, Server};
use crate::thread::Thread;

/// How a bucket is bound.
#[derive(Clone, Debug)]
pub struct BucketConfig {
    /// The server.
    pub redis: RedisUrl,
    /// Its password, if it needs one.
    pub password: Option<Password>,
    /// The beginning of all keys.
    pub prefix: Prefix,
    /// The time for a call.
    pub timeout: Duration,
}

/// An error of setting up the stores.
#[derive(Debug, thiserror::Error)]
pub enum BucketsError {
    /// The client refuses the URL of this bucket.
    #[error("the client of Redis refuses stores.{0}.redis")]
    Refused(Name),
    /// The thread of stores cannot be started.
    #[error("cannot start the thread of stores")]
    Thread(#[source] std::io::Error),
}

/// The stores of a server.
pub struct Buckets {
    buckets: HashMap<Name, Arc<Bucket>>,
    thread: Thread,
}

struct Bucket {
    name: Name,
    prefix: Prefix,
    timeout: Duration,
    server: Arc<Server>,
}

impl Buckets {
    /// The buckets, with a thread of their own. No connection is made yet. Buckets on one server
    /// share the connections.
    ///
    /// # Errors
    /// [`BucketsError`]
    pub fn new(
        configs: impl IntoIterator<Item = (Name, BucketConfig)>,
    ) -> Result<Self, BucketsError> {
        let mut servers = HashMap::new();
        let mut buckets = HashMap::new();
        for (name, BucketConfig { redis, password, prefix, timeout }) in configs {
            if redis.is_encrypted() {
                // The client takes the provider of the process. It may be set already.
                let _ = rustls::crypto::ring::default_provider().install_default();
            }
            let server = match servers.entry((redis, password)) {
                Entry::Occupied(server) => Arc::clone(server.get()),
                Entry::Vacant(place) => {
                    let (redis, password) = place.key();
                    let server = Server::new(redis, password.as_ref())
                        .map_err(|_| BucketsError::Refused(name.clone()))?;
                    Arc::clone(place.insert(Arc::new(server)))
                }
            };
            let bucket = Bucket { name: name.clone(), prefix, timeout, server };
            buckets.insert(name, Arc::new(bucket));
        }
        let thread = Thread::start().map_err(BucketsError::Thread)?;
        // It ends with the thread.
        drop(thread.spawn(drop_idle(servers.into_values().collect())));
        Ok(Self { buckets, thread })
    }

    fn bucket(&self, call: &StoreCall) -> Result<Arc<Bucket>, StoreFault> {
        let bucket = self.buckets.get(&call.bucket).cloned();
        bucket.ok_or_else(|| StoreFault::unavailable("this server has no such store"))
    }

    /// Send commands, and read their answers with `read`, which gives none for those that cannot
    /// be. The work goes on if the request is gone.
    async fn ask<T: Send + 'static>(
        &self,
        bucket: Arc<Bucket>,
        call: StoreCall,
        (pipeline, only_read): (Pipeline, bool),
        read: impl FnOnce(Vec<Value>) -> Option<T> + Send + 'static,
    ) -> Result<T, StoreFault> {
        let (tenant, deadline) = (call.tenant.clone(), call.deadline);
        let commands = Arc::new(Commands { pipeline, only_read, _call: Some(call) });
        let asking = self.thread.spawn(async move {
            // The time of the server, which begins when this thread comes to the call.
            let (timeout, own) = (bucket.timeout, Instant::now() + bucket.timeout);
            let until = Until { at: own.min(deadline), timeout, is_whole: own <= deadline };
            let answer = bucket.server.link(&tenant).ask(&commands, until, read).await;
            answer.map_err(|error| bucket.fault(&error, until))
        });
        asking
            .await
            .unwrap_or_else(|_| Err(StoreFault::unavailable("the client of the store failed")))
    }
}

/// Drop links that are idle, now and then.
async fn drop_idle(servers: Vec<Arc<Server>>) {
    loop {
        sleep(IDLE_MAX / 4).await;
        servers.iter().for_each(|server| server.drop_idle(Instant::now()));
    }
}

impl Bucket {
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
            LinkError::Broken(error) => match Refusal::of(error) {
                Some(refusal) => format!("the connection is refused: {refusal}"),
                None => format!("the connection failed: {}", error.category()),
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
        let WantedValues { keys, most_bytes, none_if_empty } = wanted;
        let bucket = self.bucket(&call)?;
        let prefix = bucket.prefix.of(&call.tenant);
        let count = keys.len();
        let mut pipeline = Pipeline::with_capacity(2 * count + 2);
        // Redis gives an empty text for a key that it does not have. In a transaction it also says
        // whether the key is there. Not `Pipeline::atomic`: it panics if `MULTI` is refused.
        if !none_if_empty {
            pipeline.cmd("MULTI");
        }
        for key in keys {
            let key = format!("{prefix}{key}");
            if !none_if_empty {
                pipeline.cmd("EXISTS").arg(key.as_str());
            }
            pipeline.cmd("GETRANGE").arg(key.as_str()).arg(0).arg(most_bytes);
        }
        if !none_if_empty {
            pipeline.cmd("EXEC");
        }
        let read = move |answer| match none_if_empty {
            true => filled_values(answer, count),
            false => values(answer, count),
        };
        self.ask(bucket, call, (pipeline, true), read).await
    }

    async fn set(
        &self,
        call: StoreCall,
        key: &str,
        value: &[u8],
        ttl_ms: Option<u64>,
    ) -> Result<(), StoreFault> {
        let bucket = self.bucket(&call)?;
        let prefix = bucket.prefix.of(&call.tenant);
        let mut pipeline = redis::pipe();
        pipeline.cmd("SET").arg(format!("{prefix}{key}")).arg(value);
        if let Some(ttl_ms) = ttl_ms {
            pipeline.arg("PX").arg(ttl_ms);
        }
        let is_done = |answer: Vec<Value>| matches!(answer[..], [Value::Okay]).then_some(());
        self.ask(bucket, call, (pipeline, false), is_done).await
    }

    async fn increment(&self, call: StoreCall, key: &str, delta: i64) -> Result<i64, StoreFault> {
        let bucket = self.bucket(&call)?;
        let prefix = bucket.prefix.of(&call.tenant);
        let mut pipeline = redis::pipe();
        pipeline.cmd("INCRBY").arg(format!("{prefix}{key}")).arg(delta);
        let sum = |answer: Vec<Value>| number(&answer);
        self.ask(bucket, call, (pipeline, false), sum).await
    }
}
