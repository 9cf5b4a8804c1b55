//! The servers that share a store: what this one knows of the others, and tells them.
//!
//! Each server puts a lease again and again: a document with the release that it serves. A server
//! whose lease is not much older than the newest one lives. Ages are compared by the clock of the
//! store alone, so the clocks of the servers do not matter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use gristmill_core::Name;
use gristmill_state::{NameText, Serving};
use gristmill_store::{Lease, Store, StoreError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};
use utoipa::ToSchema;

use crate::error::ControlError;

/// The time after which a lease is put again.
pub(crate) const RENEWED: Duration = Duration::from_secs(4);

/// How much older than the newest lease that of a living server may be. Some object stores give
/// times in whole seconds.
const LIVE_MS: i64 = 15_000;

/// How much older than the newest lease one is that is removed.
const FORGOTTEN_MS: i64 = 600_000;

/// The time for reading all leases, where an answer waits for it.
const READ_TIMEOUT: Duration = Duration::from_secs(3);

/// The pause between two polls of the leases, while an answer waits for all servers.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Leases that are read side by side.
const READS_AT_ONCE: usize = 16;

/// How this server follows the log that it shares with others.
#[derive(Clone, Debug)]
pub struct Following {
    /// Its name, which no other server of the store has.
    pub name: Name,
    /// Where its admin plane listens, for people.
    pub address: String,
    /// Of the program.
    pub version: &'static str,
    /// The time between two polls for new releases.
    pub poll: Duration,
    /// How long a change waits for all servers at most.
    pub wait: Duration,
    /// Whether the server may start with the state that it served last, if the store cannot be
    /// reached.
    pub start_offline: bool,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Replica {
    /// Its name.
    #[schema(value_type = NameText)]
    pub name: Name,
    /// Where its admin plane listens.
    pub address: String,
    /// The version of the program.
    pub version: String,
    /// The release that it serves.
    pub release: u64,
    /// The parts of the release that it does not serve.
    pub faults: usize,
}

/// A server, and whether it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownReplica {
    /// What it said last.
    pub replica: Replica,
    /// How much older its lease is than the newest one.
    pub silent: Duration,
    /// Whether it lives.
    pub is_live: bool,
}

/// What waiting for all servers came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waited {
    /// The servers that live.
    pub live: usize,
    /// Those of them that do not serve the release yet.
    pub behind: Vec<Replica>,
}

/// Why the log cannot be followed.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// Since when.
    pub since: Instant,
    /// Whether the store cannot be reached. Otherwise what is in it cannot be used.
    pub is_unreachable: bool,
    /// The reason, for people who may see the server.
    pub reason: String,
}

/// The servers that share a store, as this one sees them.
pub(crate) struct Replicas {
    store: Arc<Store>,
    pub(crate) following: Following,
    trouble: Mutex<Option<Trouble>>,
    /// When this server last found that it serves the newest release.
    current_at: Mutex<Instant>,
    /// Whether this server is about to end.
    has_left: AtomicBool,
}

impl Replicas {
    pub(crate) fn new(store: Arc<Store>, following: Following) -> Self {
        Self {
            store,
            following,
            trouble: Mutex::default(),
            current_at: Mutex::new(Instant::now()),
            has_left: AtomicBool::new(false),
        }
    }

    /// Why the log cannot be followed, if it cannot.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble.lock().clone()
    }

    /// The time since this server last found that it serves the newest release.
    pub(crate) fn lag(&self) -> Duration {
        self.current_at.lock().elapsed()
    }

    /// Note that this server serves the newest release.
    pub(crate) fn note_current(&self) {
        *self.current_at.lock() = Instant::now();
    }

    /// Refuse a change while the store cannot be reached, without trying it for seconds.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`]
    pub(crate) fn check_reachable(&self) -> Result<(), ControlError> {
        match self.trouble() {
            Some(Trouble { is_unreachable: true, reason, .. }) => {
                Err(StoreError::unreachable(reason).into())
            }
            _ => Ok(()),
        }
    }

    /// Note whether the log could be followed. Only a change of that is logged.
    pub(crate) fn note(&self, followed: &Result<(), ControlError>) {
        let mut trouble = self.trouble.lock();
        match (followed, &mut *trouble) {
            (Ok(()), None) => {}
            (Ok(()), Some(before)) => {
                let seconds = before.since.elapsed().as_secs();
                tracing::info!(seconds, "following the release log again");
                *trouble = None;
            }
            (Err(error), before) => {
                let reason = error.to_string();
                let is_known = before.as_ref().is_some_and(|before| before.reason == reason);
                if !is_known {
                    tracing::error!(
                        ?error,
                        "cannot follow the release log: what serves now serves on"
                    );
                }
                let since = before.as_ref().map_or_else(Instant::now, |before| before.since);
                let is_unreachable = error.is_unreachable();
                *trouble = Some(Trouble { since, is_unreachable, reason });
            }
        }
    }

    /// What this server says of itself.
    fn this_replica(&self, serving: &Serving) -> Replica {
        let Following { name, address, version, .. } = &self.following;
        Replica {
            name: name.clone(),
            address: address.clone(),
            version: (*version).to_owned(),
            release: serving.snapshot.release,
            faults: serving.faulty.len(),
        }
    }

    /// Put the lease of this server, unless it has left.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn renew(&self, serving: &Serving) -> Result<(), ControlError> {
        if self.has_left.load(Ordering::Acquire) {
            return Ok(());
        }
        let text = serde_json::to_vec(&self.this_replica(serving))?;
        Ok(self.store.put_lease(&self.following.name, text.into()).await?)
    }

    /// Take the lease back: nothing waits for this server any more.
    pub(crate) async fn leave(&self) {
        self.has_left.store(true, Ordering::Release);
        let removing = self.store.remove_lease(&self.following.name);
        if let Ok(Err(error)) = timeout(READ_TIMEOUT, removing).await {
            tracing::warn!(?error, "the lease of this server stays: it ends by itself");
        }
    }

    /// Remove the leases of servers that are gone for long.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn forget_old(&self) -> Result<(), ControlError> {
        for (lease, silent_ms) in ages(self.store.leases().await?) {
            if silent_ms > FORGOTTEN_MS {
                self.store.remove_lease(&lease.name).await?;
                tracing::info!(replica = lease.name.as_str(), "forgot a server that is gone");
            }
        }
        Ok(())
    }

    /// All servers, this one among them as it serves now.
    ///
    /// # Errors
    /// The store cannot be reached in time.
    pub(crate) async fn all(&self, serving: &Serving) -> Result<Vec<KnownReplica>, ControlError> {
        let reading = timeout(READ_TIMEOUT, self.read_all(serving)).await;
        reading.map_err(|_| StoreError::unreachable("it did not answer in time"))?
    }

    async fn read_all(&self, serving: &Serving) -> Result<Vec<KnownReplica>, ControlError> {
        let replica = self.this_replica(serving);
        let mut replicas = vec![KnownReplica { replica, silent: Duration::ZERO, is_live: true }];
        let others = ages(self.store.leases().await?);
        let others = others.into_iter().filter(|(lease, _)| lease.name != self.following.name);
        let reads = stream::iter(others).map(|(lease, silent_ms)| async move {
            let text = self.store.lease(&lease.name).await?;
            let replica = text.and_then(|text| serde_json::from_slice::<Replica>(&text).ok());
            // One that was taken back meanwhile, or that is not one, is left out.
            Ok::<_, ControlError>(replica.map(|replica| KnownReplica {
                replica,
                silent: Duration::from_millis(u64::try_from(silent_ms).unwrap_or_default()),
                is_live: silent_ms <= LIVE_MS,
            }))
        });
        for read in reads.buffer_unordered(READS_AT_ONCE).collect::<Vec<_>>().await {
            replicas.extend(read?);
        }
        replicas.sort_by(|one, other| one.replica.name.cmp(&other.replica.name));
        Ok(replicas)
    }

    /// Wait until all servers that live serve the release, but not for ever.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn wait_for(
        &self,
        release: u64,
        serving: impl Fn() -> Arc<Serving>,
    ) -> Result<Waited, ControlError> {
        let began = Instant::now();
        loop {
            let live = self.all(&serving()).await?.into_iter().filter(|replica| replica.is_live);
            let live: Vec<_> = live.map(|replica| replica.replica).collect();
            let all = live.len();
            let behind = live.into_iter().filter(|replica| replica.release < release);
            let behind: Vec<_> = behind.collect();
            if behind.is_empty() || began.elapsed() >= self.following.wait {
                return Ok(Waited { live: all, behind });
            }
            sleep(BETWEEN_LOOKS).await;
        }
    }
}

/// The leases, each with the milliseconds for which it is older than the newest one.
fn ages(leases: Vec<Lease>) -> Vec<(Lease, i64)> {
    let newest = leases.iter().map(|lease| lease.put_at_ms).max().unwrap_or_default();
    leases.into_iter().map(|lease| (lease.clone(), newest - lease.put_at_ms)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    #[test]
    fn ages_are_relative_to_the_newest_lease() {
        let lease = |text, put_at_ms| Lease { name: name(text), put_at_ms };
        let lease_ages = ages(vec![lease("a", 5_000), lease("b", 25_000), lease("c", 24_000)]);
        let lease_ages: Vec<_> =
            lease_ages.iter().map(|(lease, age)| (lease.name.as_str(), *age)).collect();
        assert_eq!(lease_ages, [("a", 20_000), ("b", 0), ("c", 1_000)]);
        assert_eq!(ages(Vec::new()), Vec::new());
    }
}
