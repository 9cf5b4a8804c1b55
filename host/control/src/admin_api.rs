//! The control plane as admin handlers see it: its parts, its start, and its methods.
//!
//! Methods for plugins are in `plugins`, those for assets in `assets`, those for models in
//! `models`: all load what a change brings before its release is made (`releases`). `history` has
//! those for whole releases, `tokens` those for admin tokens, `replicas` those for the servers that
//! share the store, `figures` those for metrics. Refuses to know HTTP.
//!
//! The futures of the parts are boxed here and in `blobs`: otherwise the compiler looks through all
//! of them again for each handler of `admin`, which takes minutes.
//!
//! Invariant: a change that a method acknowledges is in the log on stable storage, and serves.

mod assets;
pub(crate) mod figures;
pub(crate) mod history;
pub(crate) mod models;
mod plugins;
mod replicas;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use gristmill_backend::Backends;
use gristmill_core::{Digest, HashKeyId, Name, PipelineLimits};
use gristmill_metrics::Durations;
use gristmill_sandbox::{JobStatus, OutgoingHttp, RuntimeStatus, Sandbox, Stores};
use gristmill_snapshot::SnapshotCell;
use gristmill_state::{
    AskedChange, Change, ChangeOptions, Conditions, Desired, Faults, PipelineDocument,
    PipelineSpec, PutPipeline, Serving, StateError, Subject, TenantDocument, TokenScope,
    tenant_refusal,
};
use gristmill_store::{Incoming, Outgoing, Store, StoreError};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Semaphore};

use crate::accounts::{Accounts, FigureParts};
use crate::asset_limits::AssetLimits;
use crate::blob_holder::Holder;
use crate::blobs::Blobs;
use crate::candidates::take_away;
use crate::change_request::ChangeRequest;
use crate::error::ControlError;
use crate::follower::{follow, keep_lease};
use crate::load::assets::{Assets, Payer};
use crate::load::loader::Loader;
use crate::load::models::Models;
use crate::load::plugins::Plugins;
use crate::load::progress::Progress;
use crate::load::prove::ProverConfig;
use crate::pace::Pace;
use crate::publish::Publisher;
use crate::release_log::{ReleaseLog, Replayed};
use crate::releases::Releases;
use crate::releases::queue::Queue;
use crate::releases::step::Published;
use crate::replicas::{Following, Replicas};
use crate::samples::SampleRunner;
use crate::samples::run::{LARGE_CHECKS, SampleRuns};
use crate::turns::Turns;
use crate::uploads::Uploads;

/// The parts that [`Control`] works with.
pub struct ControlParts {
    /// The blobs and the release log.
    pub store: Arc<Store>,
    /// Loads the plugins.
    pub sandbox: Arc<Sandbox>,
    /// Load the models.
    pub backends: Arc<Backends>,
    /// The defaults of every pipeline's limits, and their upper bounds where memory is concerned.
    pub limits: PipelineLimits,
    /// Of one tenant's requests and answers under way.
    pub tenant_bytes_max: usize,
    /// Of one tenant's compiled plugins on disk.
    pub tenant_compiled_bytes_max: u64,
    /// Of the files that plugins open.
    pub asset_limits: AssetLimits,
    /// The releases that are kept at least.
    pub keep_releases: u64,
    /// Of the uploaded files that wait for a release.
    pub waiting_bytes_max: usize,
    /// The secret with which the server hashes keys and tokens, if it has one yet.
    pub hash_key: Option<HashKeyId>,
    /// How models are proven before they are loaded.
    pub prover: ProverConfig,
    /// Runs the samples of pipelines before a release is made.
    pub sample_runner: Arc<dyn SampleRunner>,
    /// The time for all samples of a release.
    pub samples_timeout: Duration,
    /// The progress of [`Control::open`].
    pub progress: Progress,
    /// Where the figures and the usage of requests come from.
    pub figures: FigureParts,
    /// The stores that plugins may use.
    pub stores: Arc<dyn Stores>,
    /// Sends the HTTP requests of plugins.
    pub outgoing: Arc<dyn OutgoingHttp>,
    /// How the log is followed, if the store is shared.
    pub following: Option<Following>,
}

/// The control plane.
pub struct Control {
    store: Arc<Store>,
    uploads: Arc<Uploads>,
    blobs: Arc<Blobs>,
    loader: Arc<Loader>,
    sandbox: Arc<Sandbox>,
    figures: FigureParts,
    stores: Arc<dyn Stores>,
    releases: Arc<Releases>,
    /// The servers that share the store, if it is shared.
    replicas: Option<Arc<Replicas>>,
}

impl Control {
    /// Replay the log and publish the resulting state. Plugins and models that fail to load are
    /// unavailable, with the reason in the log and in the status.
    ///
    /// # Errors
    /// The log cannot be read, has a gap, was changed, or is of a later version.
    pub async fn open(parts: ControlParts) -> Result<Self, ControlError> {
        let ControlParts { store, sandbox, backends, limits, prover, progress, .. } = parts;
        let samples = SampleRuns {
            runner: parts.sample_runner,
            timeout: parts.samples_timeout,
            large_checks: Arc::new(Semaphore::new(LARGE_CHECKS)),
        };
        let tenant_bytes_max = parts.tenant_bytes_max;
        let calls = sandbox.config().concurrent_calls as usize;
        let (accounts, aborted) = Accounts::new(tenant_bytes_max, calls, parts.figures.clone());
        let accounts = Arc::new(accounts.asking(parts.stores.clone(), parts.outgoing));
        let probe_limits = limits.plugin.clone();
        let loader = Arc::new(Loader {
            plugins: Plugins::new(store.clone(), sandbox.clone(), accounts.clone(), probe_limits),
            assets: Assets::new(
                store.clone(),
                accounts.clone(),
                parts.asset_limits.tenant_bytes_max,
            ),
            models: Models::new(store.clone(), backends, prover),
            progress: progress.clone(),
        });
        let uploads = Arc::new(Uploads::new(store.clone()));
        let blobs = Blobs::new(store.clone(), uploads.clone(), parts.waiting_bytes_max);
        let (keep, hash_key) = (parts.keep_releases, parts.hash_key);
        let releases = Arc::new(Releases {
            log: ReleaseLog::new(store.clone(), uploads.clone(), progress, keep, hash_key),
            loader: loader.clone(),
            accounts,
            limits,
            compiled_bytes_max: parts.tenant_compiled_bytes_max,
            asset_limits: parts.asset_limits,
            publisher: Publisher::default(),
            builds: Durations::default(),
            samples,
            turns: Turns::default(),
            reading_powers: Mutex::default(),
            pace: Pace::default(),
            queue: Queue::default(),
            replayed: Mutex::new(Replayed::default()),
        });
        let may_be_offline =
            parts.following.as_ref().is_some_and(|following| following.start_offline);
        let is_read = releases.start(may_be_offline).await?;
        tokio::spawn(take_away(Arc::downgrade(&releases), aborted));
        let replicas =
            parts.following.map(|following| Arc::new(Replicas::new(store.clone(), following)));
        if let Some(replicas) = &replicas {
            if !is_read {
                let source = StoreError::unreachable("not since the start");
                replicas.note(&Err(source.into()));
            }
            tokio::spawn(follow(Arc::downgrade(&releases), replicas.clone()));
            tokio::spawn(keep_lease(Arc::downgrade(&releases), replicas.clone()));
        }
        let (figures, stores) = (parts.figures, parts.stores);
        Ok(Self { store, uploads, blobs, loader, sandbox, figures, stores, releases, replicas })
    }

    /// The stores that plugins may use.
    pub fn stores(&self) -> &Arc<dyn Stores> {
        &self.stores
    }

    /// The cell that the data plane reads.
    pub fn cell(&self) -> &Arc<SnapshotCell> {
        self.releases.publisher.cell()
    }

    /// The current snapshot, and the state that it was built from: both of one release. Never waits
    /// for a change under way.
    pub fn serving(&self) -> Arc<Serving> {
        self.releases.publisher.serving()
    }

    /// The state that the current snapshot was built from. Never waits for a change under way.
    pub fn desired(&self) -> Arc<Desired> {
        self.serving().desired.clone()
    }

    /// The uploaded files that no release needs yet.
    pub fn blobs(&self) -> &Arc<Blobs> {
        &self.blobs
    }

    /// The holder of an uploaded file, for an author with this scope.
    pub fn holder(&self, token_scope: &TokenScope, digest: Digest) -> Holder {
        let token = token_scope.token().cloned();
        Holder { token, sees_others: token_scope.has_file(&self.desired(), digest) }
    }

    /// The backends that can serve, best first.
    pub fn backends(&self) -> Vec<&'static str> {
        self.loader.models.backends()
    }

    /// The runtimes of languages, and how many plugins were loaded into another one before.
    pub fn runtimes(&self) -> (Vec<RuntimeStatus>, u64) {
        self.loader.plugins.runtimes()
    }

    /// The jobs that run in child processes, and those that wait.
    pub fn jobs(&self) -> Vec<JobStatus> {
        let mut jobs = self.loader.plugins.jobs();
        jobs.extend(self.loader.models.jobs());
        jobs
    }

    /// Put a tenant. `faults` are those of its document.
    ///
    /// # Errors
    /// [`StateError::Document`] names all faults of the document and of the tenant; or as for
    /// [`Self::change`].
    pub async fn put_tenant(
        &self,
        tenant: &Name,
        document: TenantDocument,
        faults: Faults,
        options: ChangeOptions,
    ) -> Result<Published, ControlError> {
        if !faults.is_empty() {
            return Err(tenant_refusal(&self.desired(), tenant, &document, faults).into());
        }
        let put = AskedChange::PutTenant { tenant: tenant.clone(), document };
        self.run(ChangeRequest::one(put, options)).await
    }

    /// Put the pipeline that `document` describes.
    ///
    /// # Errors
    /// The tenant does not exist, or the document has faults, all of which the error names.
    /// Otherwise as for [`Self::change`].
    pub async fn put_pipeline(
        &self,
        tenant: &Name,
        pipeline: &Name,
        document: Map<String, Value>,
        options: ChangeOptions,
    ) -> Result<Published, ControlError> {
        if !self.desired().tenants.contains_key(tenant) {
            return Err(StateError::not_found("tenant", tenant).into());
        }
        let limits = &self.releases.limits;
        let token_scope = options.token_scope.clone();
        let put = || PutPipeline {
            tenant,
            pipeline,
            serving: self.serving(),
            token_scope: &token_scope,
            limits,
        };
        let document = PipelineDocument::read(document, limits);
        let spec = document.into_spec().map_err(|faulty| put().faulty(*faulty))?;
        let (of, name) = (tenant.clone(), pipeline.clone());
        let change = Change::PutPipeline { tenant: of, pipeline: name, spec: spec.clone().into() };
        let changed = self.change(change, options).await;
        changed.map_err(|error| match error {
            ControlError::Refused(_) => put().misfit(&spec).map_or(error, ControlError::State),
            error => error,
        })
    }

    /// The pipeline that `document` describes. What it names is not looked for.
    ///
    /// # Errors
    /// All faults of the document.
    pub fn read_pipeline(&self, document: Map<String, Value>) -> Result<PipelineSpec, Faults> {
        let document = PipelineDocument::read(document, &self.releases.limits);
        document.into_spec().map_err(|faulty| faulty.faults)
    }

    /// Make the deletion `change`. With `cascade`, also delete what uses the thing.
    ///
    /// # Errors
    /// It is not there, or in use; or as for [`Self::change`].
    pub async fn delete(
        &self,
        change: Change,
        cascade: bool,
        options: ChangeOptions,
    ) -> Result<Published, ControlError> {
        self.run(ChangeRequest { cascade, ..ChangeRequest::one(change, options) }).await
    }

    /// Make the change, if the conditions hold for its subject when its release is made.
    ///
    /// # Errors
    /// [`ControlError::Unmet`], the change is refused, or the log cannot be written.
    pub async fn change(
        &self,
        change: impl Into<AskedChange>,
        options: ChangeOptions,
    ) -> Result<Published, ControlError> {
        self.run(ChangeRequest::one(change, options)).await
    }

    /// Check the conditions for a thing that is there now. Its change checks them again.
    ///
    /// # Errors
    /// [`ControlError::Unmet`]
    pub fn check(&self, subject: &Subject, conditions: &Conditions) -> Result<(), ControlError> {
        match self.serving().tag(subject)? {
            Some(current) => Ok(conditions.check(subject, Some(current))?),
            None => Ok(()),
        }
    }

    /// The bytes of an uploaded file, if the store has it.
    pub async fn file_bytes(&self, digest: Digest) -> Option<u64> {
        self.store
            .blob_bytes(digest)
            .boxed()
            .await
            .map_err(|error| ControlError::from(error).logged())
            .ok()
    }

    /// Begin to send an uploaded file.
    ///
    /// # Errors
    /// The store does not have it, or cannot read it.
    pub async fn send(&self, digest: Digest) -> Result<Outgoing, ControlError> {
        let outgoing = self.store.send(digest).boxed().await;
        outgoing.map_err(|error| ControlError::from(error).logged())
    }

    /// The limits on the files that plugins open.
    pub fn asset_limits(&self) -> AssetLimits {
        self.releases.asset_limits
    }

    /// Begin to receive a file of a plugin, an asset or a model.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn receive(&self) -> Result<Incoming, ControlError> {
        self.check_reachable()?;
        let incoming = self.store.receive().boxed().await;
        incoming.map_err(|error| ControlError::from(error).logged())
    }

    /// The tenant, as one that loads files.
    ///
    /// # Errors
    /// There is no such tenant.
    fn payer(&self, tenant: &Name) -> Result<Payer, ControlError> {
        let serving = self.serving();
        let owner = serving.desired.tenants.get(tenant);
        let owner = owner.ok_or_else(|| StateError::not_found("tenant", tenant))?;
        Ok(self.loader.assets.payer((tenant.clone(), owner.since), Some(&serving)))
    }

    async fn run(&self, request: ChangeRequest) -> Result<Published, ControlError> {
        self.check_reachable()?;
        self.releases.run(request).boxed().await.map_err(ControlError::logged)
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
