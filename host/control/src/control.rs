//! The one place where releases are made.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use bytes::Bytes;
use gristmill_backend::Backends;
use gristmill_core::{Digest, Name, PipelineLimits};
use gristmill_sandbox::Sandbox;
use gristmill_snapshot::{Cell, Snapshot};
use gristmill_store::{Appended, Store, digest_of};
use tokio::sync::Mutex;

use crate::ControlError;
use crate::build::{Built, build};
use crate::desired::Desired;
use crate::loader::Loader;
use crate::progress::Progress;
use crate::release::{Change, Release};

/// What [`Control`] works with.
pub struct ControlParts {
    pub store: Arc<Store>,
    pub sandbox: Arc<Sandbox>,
    pub backends: Arc<Backends>,
    /// The defaults of every pipeline's limits, and their upper bounds where memory is concerned.
    pub limits: PipelineLimits,
    /// Of one tenant's requests and answers under way.
    pub tenant_bytes_max: usize,
    /// Where [`Control::open`] says how far it is.
    pub progress: Progress,
}

/// The control plane.
pub struct Control {
    loader: Loader,
    limits: PipelineLimits,
    cell: Arc<Cell>,
    applied: Mutex<Applied>,
    /// The desired state that is being served, for whoever only looks.
    serving: ArcSwap<Desired>,
}

/// How far the log has been applied.
#[derive(Clone, Default)]
struct Applied {
    number: u64,
    desired: Desired,
}

/// A release that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    pub release: u64,
}

impl Control {
    /// Replay the log and publish what it adds up to. What fails to load is unavailable, with the
    /// reason in the log and in the status.
    pub async fn open(parts: ControlParts) -> Result<Self, ControlError> {
        let ControlParts { store, sandbox, backends, limits, tenant_bytes_max, progress } = parts;
        let mut loader =
            Loader::new(store, sandbox, backends, limits.plugin.clone(), tenant_bytes_max);
        loader.progress = progress;
        let cell = Arc::new(Cell::new(Snapshot::default()));
        let control =
            Self { loader, limits, cell, applied: Mutex::default(), serving: ArcSwap::default() };
        let mut applied = control.applied.lock().await;
        if control.catch_up(&mut applied).await? {
            let built = control.build(&applied).await;
            for fault in &built.faults {
                tracing::error!(%fault, "not served");
            }
            control.publish(&applied, built.snapshot);
        }
        drop(applied);
        Ok(control)
    }

    /// The cell that the data plane reads.
    pub fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }

    /// The backends that can serve, best first.
    pub fn backends(&self) -> Vec<&'static str> {
        self.loader.backends.available()
    }

    /// What the current snapshot was built from. Never waits for a change under way.
    pub fn desired(&self) -> Arc<Desired> {
        self.serving.load_full()
    }

    fn publish(&self, applied: &Applied, snapshot: Snapshot) {
        self.serving.store(Arc::new(applied.desired.clone()));
        self.cell.publish(snapshot);
    }

    /// Keep a plugin's file, having loaded it once.
    pub async fn put_plugin(
        self: &Arc<Self>,
        tenant: &Name,
        plugin: &Name,
        file: Bytes,
    ) -> Result<(Digest, Published), ControlError> {
        // What is no plugin is not even stored.
        let admitted = gristmill_sandbox::admit(&file);
        let invalid = |why: String| ControlError::Plugin { name: plugin.to_string(), why };
        admitted.map_err(|error| invalid(error.to_string()))?;
        let digest = self.loader.store.put_blob(file).await?;
        // Compiled before the lock is taken: other changes need not wait for it.
        self.loader.plugin(digest).await.map_err(invalid)?;
        let change = Change::PutPlugin { tenant: tenant.clone(), plugin: plugin.clone(), digest };
        Ok((digest, self.release(vec![change]).await?))
    }

    /// Keep a model's file and load it.
    pub async fn put_model(
        self: &Arc<Self>,
        model: &Name,
        file: Bytes,
    ) -> Result<(Digest, Published), ControlError> {
        let digest = digest_of(&file);
        if file.is_empty() {
            let why = "the file is empty".to_owned();
            return Err(ControlError::Model { name: model.to_string(), why });
        }
        self.loader.store.put_blob(file).await?;
        let change = Change::PutModel { model: model.clone(), digest };
        let published = self.release(vec![change]).await?;
        // Unchanged content makes no release, so that it could be one that still fails to load.
        match self.cell.load().models.get(model).map(|state| state.served.clone()) {
            Some(Err(why)) if !self.is_unloaded(model) => {
                Err(ControlError::Model { name: model.to_string(), why })
            }
            _ => Ok((digest, published)),
        }
    }

    fn is_unloaded(&self, model: &Name) -> bool {
        self.serving.load().models.get(model).is_some_and(|model| model.unloaded)
    }

    /// Make a release of `changes`: all of them or none. What has begun is brought to its end, whoever
    /// waits for it or leaves: a release in the log is a release that serves.
    pub async fn release(
        self: &Arc<Self>,
        changes: Vec<Change>,
    ) -> Result<Published, ControlError> {
        let control = self.clone();
        let making = tokio::spawn(async move { control.make(changes).await });
        making.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
    }

    async fn make(&self, changes: Vec<Change>) -> Result<Published, ControlError> {
        let mut applied = self.applied.lock().await;
        loop {
            self.catch_up(&mut applied).await?;
            let mut next = applied.clone();
            next.number += 1;
            next.desired.apply(next.number, &changes)?;
            if next.desired == applied.desired {
                // Nothing to append; but what failed to load may be whole again.
                let built = self.build(&applied).await;
                self.publish(&applied, built.snapshot);
                return Ok(Published { release: applied.number });
            }
            let built = self.build(&next).await;
            if let Some(fault) = self.new_fault(&applied, built.faults).await {
                self.loader.forget_all_but(&applied.desired);
                return Err(fault);
            }
            let release = Release {
                number: next.number,
                published_at_ms: now_ms(),
                changes: changes.clone(),
            };
            if self.loader.store.append(next.number, &release).await? == Appended::Lost {
                continue;
            }
            tracing::info!(release = next.number, "published");
            *applied = next;
            self.publish(&applied, built.snapshot);
            self.loader.forget_all_but(&applied.desired);
            return Ok(Published { release: applied.number });
        }
    }

    /// Apply the releases that the log has beyond `applied`; whether there were any.
    async fn catch_up(&self, applied: &mut Applied) -> Result<bool, ControlError> {
        let from = applied.number;
        while let Some(release) = self.loader.store.document::<Release>(applied.number + 1).await? {
            let number = applied.number + 1;
            applied
                .desired
                .apply(number, &release.changes)
                .map_err(|error| ControlError::Log { number, why: error.to_string() })?;
            applied.number = number;
            self.loader.progress.replayed(number);
        }
        Ok(applied.number > from)
    }

    /// The first of `faults` that `applied` does not have already: that of a plugin or model, if
    /// there is one, rather than that of the pipelines it breaks.
    async fn new_fault(
        &self,
        applied: &Applied,
        mut faults: Vec<ControlError>,
    ) -> Option<ControlError> {
        if faults.is_empty() {
            return None;
        }
        let known = self.build(applied).await.faults;
        let known: Vec<_> = known.iter().map(ToString::to_string).collect();
        faults.retain(|fault| !known.contains(&fault.to_string()));
        faults.sort_by_key(|fault| matches!(fault, ControlError::Pipeline { .. }));
        faults.into_iter().next()
    }

    async fn build(&self, applied: &Applied) -> Built {
        build(&self.loader, &self.limits, applied.number, &applied.desired).await
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
