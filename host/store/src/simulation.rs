//! A shared store in memory for simulations of several servers. Each call takes time by tokio's
//! clock, which tests pause, and may fail: a [`Network`] chooses.
//!
//! It owns what a call that fails may have done all the same. Refuses to know why a call fails.
//!
//! Invariant: a server whose network is down makes no more calls, and gets no more answers. So it
//! ends between two calls, as a process that is killed does.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::cache::Cache;
use crate::log::number_in;
use crate::worker::Worker;
use crate::{BLOBS, LOG, Store, StoreError};

/// Objects that outlive the servers which use them; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    objects: InMemory,
    /// The first content of each document of the log.
    documents: Arc<Mutex<BTreeMap<u64, Bytes>>>,
}

/// A call to shared objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What it does.
    pub kind: CallKind,
    /// The object, or the folder that is listed.
    pub key: String,
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// It reads an object.
    Get,
    /// It lists a folder.
    List,
    /// It makes an object, unless there is one.
    Create,
    /// It makes or replaces an object.
    Put,
    /// It removes an object.
    Delete,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The time until it arrives at the store.
    pub arrives_after: Duration,
    /// The time from there to its answer.
    pub answered_after: Duration,
    /// How it fails, if it does.
    pub fault: Option<Fault>,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done.
    Lost,
    /// It is done, and its caller is told that it failed.
    AnswerLost,
    /// Its caller is told that it failed, and it is done after this time.
    Late(Duration),
    /// The answer is lost and the call is repeated. Its caller gets the second answer.
    Repeated,
}

/// What lies between a server and the shared objects.
pub trait Network: fmt::Debug + Send + Sync {
    /// What becomes of a call that a server makes now.
    fn fate(&self, call: &Call) -> Fate;

    /// Whether the server still runs.
    fn is_up(&self) -> bool;
}

/// The shared objects, as one server sees them.
#[derive(Clone, Debug)]
struct Seen {
    shared: Objects,
    network: Arc<dyn Network>,
}

impl Objects {
    /// The first content of each document that the log ever had, also of those that were removed.
    pub fn documents(&self) -> BTreeMap<u64, Bytes> {
        self.documents.lock().clone()
    }
}

impl Store {
    /// A store of these shared objects, with the small files of its server in `local`. It takes no
    /// blobs.
    ///
    /// # Errors
    /// [`StoreError::Write`]: a thread cannot be started.
    pub fn simulated(
        shared: &Objects,
        local: &Objects,
        network: Arc<dyn Network>,
    ) -> std::result::Result<Self, StoreError> {
        // This folder does not exist, so the cache finds no file.
        let directory = PathBuf::from("/nonexistent/simulation");
        Ok(Self {
            objects: Arc::new(Seen { shared: shared.clone(), network }),
            local: Arc::new(local.objects.clone()),
            worker: Worker::start().map_err(StoreError::write)?,
            cache: Some(Cache::new(directory.join(BLOBS), 0)),
            directory,
            faults: Arc::default(),
        })
    }
}

impl Seen {
    /// Make a call that does `work`.
    async fn call<T: Send + 'static>(
        &self,
        kind: CallKind,
        key: &Key,
        work: impl Fn() -> BoxFuture<'static, Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.wait_while_down().await;
        let key = key.to_string();
        let Fate { arrives_after, answered_after, fault } = self.network.fate(&Call { kind, key });
        sleep(arrives_after).await;
        let answer = match fault {
            None => work().await,
            Some(Fault::Lost) => Err(failed()),
            Some(Fault::AnswerLost) => work().await.and_then(|_| Err(failed())),
            Some(Fault::Late(after)) => {
                tokio::spawn(async move {
                    sleep(after).await;
                    drop(work().await);
                });
                Err(failed())
            }
            Some(Fault::Repeated) => {
                drop(work().await);
                work().await
            }
        };
        sleep(answered_after).await;
        self.wait_while_down().await;
        answer
    }

    /// Wait for ever if the server has ended.
    async fn wait_while_down(&self) {
        if !self.network.is_up() {
            std::future::pending::<()>().await;
        }
    }
}

fn failed() -> Error {
    Error::Generic { store: "simulation", source: "injected".into() }
}

fn unsupported<T>() -> Result<T> {
    Err(Error::Generic { store: "simulation", source: "not part of simulations".into() })
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulation")
    }
}

#[async_trait]
impl ObjectStore for Seen {
    async fn put_opts(
        &self,
        location: &Key,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let kind = match options.mode {
            PutMode::Create => CallKind::Create,
            _ => CallKind::Put,
        };
        let (shared, key) = (self.shared.clone(), location.clone());
        let work = move || {
            let (shared, key) = (shared.clone(), key.clone());
            let (payload, options) = (payload.clone(), options.clone());
            async move {
                let content = Bytes::from(payload.clone());
                let put = shared.objects.put_opts(&key, payload, options).await?;
                if let Some(number) = number_in(LOG, &key) {
                    shared.documents.lock().entry(number).or_insert(content);
                }
                Ok(put)
            }
            .boxed()
        };
        self.call(kind, location, work).await
    }

    async fn put_multipart_opts(
        &self,
        _: &Key,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        unsupported()
    }

    async fn get_opts(&self, location: &Key, options: GetOptions) -> Result<GetResult> {
        let (objects, key) = (self.shared.objects.clone(), location.clone());
        let work = move || {
            let (objects, key, options) = (objects.clone(), key.clone(), options.clone());
            async move { objects.get_opts(&key, options).await }.boxed()
        };
        self.call(CallKind::Get, location, work).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Key>>,
    ) -> BoxStream<'static, Result<Key>> {
        let seen = self.clone();
        let delete = move |location: Result<Key>| {
            let seen = seen.clone();
            async move {
                let location = location?;
                let (objects, key) = (seen.shared.objects.clone(), location.clone());
                let work = move || {
                    let (objects, key) = (objects.clone(), key.clone());
                    async move { objects.delete(&key).await }.boxed()
                };
                seen.call(CallKind::Delete, &location, work).await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (seen, folder) = (self.clone(), prefix.cloned().unwrap_or_default());
        let listing = async move {
            let (objects, prefix) = (seen.shared.objects.clone(), folder.clone());
            let work = move || objects.list(Some(&prefix)).try_collect::<Vec<_>>().boxed();
            seen.call(CallKind::List, &folder, work).await
        };
        let files = stream::once(listing).map_ok(|files| stream::iter(files).map(Ok));
        files.try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Key>) -> Result<ListResult> {
        unsupported()
    }

    async fn copy_opts(&self, _: &Key, _: &Key, _: CopyOptions) -> Result<()> {
        unsupported()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All calls have this fate.
    #[derive(Debug)]
    struct Same(Fate);

    impl Network for Same {
        fn fate(&self, _: &Call) -> Fate {
            self.0
        }

        fn is_up(&self) -> bool {
            true
        }
    }

    fn store(shared: &Objects, fault: Option<Fault>) -> Store {
        let second = Duration::from_secs(1);
        let fate = Fate { arrives_after: second, answered_after: second, fault };
        Store::simulated(shared, &Objects::default(), Arc::new(Same(fate))).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_call_has_done_depends_on_its_fault() {
        let late = Fault::Late(Duration::from_secs(9));
        for (fault, is_acknowledged, is_there, is_there_later) in [
            (None, true, true, true),
            (Some(Fault::Lost), false, false, false),
            (Some(Fault::AnswerLost), false, true, true),
            (Some(late), false, false, true),
            // The document is there when it is put again.
            (Some(Fault::Repeated), false, true, true),
        ] {
            let shared = Objects::default();
            let reader = store(&shared, None);
            let begun = tokio::time::Instant::now();
            let appended = store(&shared, fault).append(1, vec!["one".into()]).await;
            assert_eq!(begun.elapsed(), Duration::from_secs(2), "{fault:?}");
            assert_eq!(appended.is_ok_and(|count| count == 1), is_acknowledged, "{fault:?}");
            let is_read = reader.document(1).await.unwrap().is_some();
            assert_eq!(is_read, is_there, "{fault:?}");
            sleep(Duration::from_secs(10)).await;
            assert_eq!(reader.next_after(0).await.unwrap().is_some(), is_there_later, "{fault:?}");
            assert_eq!(!shared.documents().is_empty(), is_there_later, "{fault:?}");
        }
    }
}
