//! The control plane: what it is made of, how it starts, and what it can be asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use gristmill_backend::Backends;
use gristmill_core::{Digest, Name, PipelineLimits};
use gristmill_sandbox::{JobStatus, Sandbox};
use gristmill_snapshot::{Cell, Snapshot};
use gristmill_store::{Incoming, Received, Store};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::ControlError;
use crate::at_hand::AtHand;
use crate::build::Built;
use crate::change::Asked;
use crate::desired::{Desired, not_found};
use crate::document::Faults;
use crate::fault::Subject;
use crate::loader::Loader;
use crate::log::{Head, gap_in};
use crate::log_end;
use crate::models::Models;
use crate::plan::{pipeline_fault, refused, tenant_faults};
use crate::progress::Progress;
use crate::prove::ProverConfig;
use crate::put_model::PublishedModel;
use crate::release::{Change, PipelineDocument, TenantSpec};
use crate::uploads::{Upload, Uploads};

/// What [`Control`] works with.
pub struct ControlParts {
    pub store: Arc<Store>,
    pub sandbox: Arc<Sandbox>,
    pub backends: Arc<Backends>,
    /// The defaults of every pipeline's limits, and their upper bounds where memory is concerned.
    pub limits: PipelineLimits,
    /// Of one tenant's requests and answers under way.
    pub tenant_bytes_max: usize,
    pub prover: ProverConfig,
    /// Where [`Control::open`] says how far it is.
    pub progress: Progress,
}

/// The control plane.
pub struct Control {
    pub(crate) loader: Loader,
    pub(crate) limits: PipelineLimits,
    cell: Arc<Cell>,
    /// Nothing is loaded, compiled or proven while this is held.
    pub(crate) applied: Mutex<Applied>,
    /// The desired state that is being served, for whoever only looks.
    serving: ArcSwap<Desired>,
    pub(crate) uploads: Arc<Uploads>,
}

/// How far the log has been applied.
pub(crate) struct Applied {
    pub(crate) log: Head,
    /// Whether its last release is known to be on stable storage.
    pub(crate) is_confirmed: bool,
    pub(crate) desired: Desired,
    /// The release that serves; none before the first snapshot.
    pub(crate) served: Option<u64>,
    /// What of it is not served.
    pub(crate) faulty: Vec<Subject>,
}

impl Applied {
    /// Nothing of the log.
    fn nothing() -> Self {
        Self {
            log: Head::default(),
            is_confirmed: true,
            desired: Desired::default(),
            served: None,
            faulty: Vec::new(),
        }
    }
}

/// A release that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    pub release: u64,
}

impl Control {
    /// Replay the log and publish what it adds up to. What fails to load is unavailable, with the
    /// reason in the log and in the status. A log that has a gap, or that was changed, is refused.
    pub async fn open(parts: ControlParts) -> Result<Self, ControlError> {
        let ControlParts { store, sandbox, backends, limits, tenant_bytes_max, prover, progress } =
            parts;
        let models = Models::new(store.clone(), backends, prover);
        let uploads = Uploads::new(store.clone());
        let mut loader =
            Loader::new(store, sandbox, models, limits.plugin.clone(), tenant_bytes_max);
        loader.progress = progress;
        let cell = Arc::new(Cell::new(Snapshot::default()));
        let control = Self {
            loader,
            limits,
            cell,
            applied: Mutex::new(Applied::nothing()),
            serving: ArcSwap::default(),
            uploads: Arc::new(uploads),
        };
        control.check_log().await?;
        // Nobody else has it yet, so that it is held while everything is loaded.
        let mut applied = control.applied.lock().await;
        control.catch_up(&mut applied).await?;
        log_end::check(&control.loader.store, &applied.log).await?;
        control.confirm(&mut applied).await?;
        let mut at_hand = AtHand::default();
        at_hand.load(&control.loader, &applied.desired).await;
        control.serve_log(&mut applied, &mut at_hand);
        control.loader.collect_compiled(&applied.desired).await;
        control.loader.models.forget_proofs(&applied.desired);
        drop(applied);
        control.remove_leftovers().await;
        Ok(control)
    }

    /// That the log's files are there without a gap.
    async fn check_log(&self) -> Result<(), ControlError> {
        let listing = self.loader.store.log().await?;
        for file in &listing.foreign {
            tracing::warn!(file, "a file in the release log's folder is no release: it is ignored");
        }
        gap_in(&listing).map_or(Ok(()), |gap| Err(ControlError::LogGap(gap)))
    }

    /// Remove what killed processes and refused uploads left in the store.
    async fn remove_leftovers(&self) {
        let named = self.uploads.named();
        let removing = self.loader.store.remove_leftovers(move |digest| named.contains(digest));
        match removing.await {
            Ok(removed) if removed.files == 0 => {}
            Ok(removed) => tracing::info!(
                files = removed.files,
                bytes = removed.bytes,
                "removed what killed writes and refused uploads had left in the store"
            ),
            // The server can do without.
            Err(error) => tracing::warn!(?error, "cannot remove leftovers from the store"),
        }
    }

    /// The cell that the data plane reads.
    pub fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }

    /// The backends that can serve, best first.
    pub fn backends(&self) -> Vec<&'static str> {
        self.loader.models.backends.available()
    }

    /// What is being worked on in child processes, and what waits for it.
    pub fn jobs(&self) -> Vec<JobStatus> {
        let mut jobs = self.loader.sandbox.jobs();
        jobs.extend(self.loader.models.jobs());
        jobs
    }

    /// What the current snapshot was built from. Never waits for a change under way.
    pub fn desired(&self) -> Arc<Desired> {
        self.serving.load_full()
    }

    pub(crate) fn publish(&self, applied: &mut Applied, built: Built) {
        applied.served = Some(applied.log.number);
        let faulty: BTreeSet<_> = built.faults.into_iter().map(|fault| fault.subject).collect();
        applied.faulty = faulty.into_iter().collect();
        self.serving.store(Arc::new(applied.desired.clone()));
        let snapshot = &built.snapshot;
        for served in snapshot.models.values().filter_map(|model| model.served.as_ref().ok()) {
            served.lane.retain_tenants(|tenant| snapshot.tenants.contains_key(tenant));
        }
        self.cell.publish(built.snapshot);
    }

    /// Put a tenant whose document has these `faults`: refused with them and with all else that is
    /// wrong.
    pub async fn put_tenant(
        self: &Arc<Self>,
        tenant: &Name,
        spec: TenantSpec,
        faults: Faults,
    ) -> Result<Published, ControlError> {
        if !faults.is_empty() {
            let mut faults = faults.into_texts();
            faults.extend(tenant_faults(&self.desired(), tenant, &spec));
            return Err(refused(Subject::Tenant(tenant.clone()), &faults));
        }
        self.release(vec![Change::PutTenant { tenant: tenant.clone(), spec }]).await
    }

    /// Put the pipeline that `document` is.
    pub async fn put_pipeline(
        self: &Arc<Self>,
        (tenant, pipeline): (&Name, &Name),
        document: Map<String, Value>,
    ) -> Result<Published, ControlError> {
        if !self.desired().tenants.contains_key(tenant) {
            return Err(not_found("tenant", tenant));
        }
        let document = PipelineDocument::read(document, &self.limits);
        let spec = document.into_spec();
        let spec = spec.map_err(|faulty| {
            let serving = self.cell.load();
            pipeline_fault(&serving, (tenant, pipeline), (*faulty, &self.limits))
        })?;
        let (tenant, pipeline) = (tenant.clone(), pipeline.clone());
        self.release(vec![Change::PutPipeline { tenant, pipeline, spec }]).await
    }

    /// Delete what `change` deletes; with `cascade` also what uses it.
    pub async fn delete(
        self: &Arc<Self>,
        change: Change,
        cascade: bool,
    ) -> Result<Published, ControlError> {
        self.run(Asked { cascade, ..Asked::of(vec![change]) }).await
    }

    /// A file arrives, of a plugin or a model.
    pub async fn receive(&self) -> Result<Incoming, ControlError> {
        Ok(self.loader.store.receive().await?)
    }

    /// Keep a plugin's file, having loaded it once.
    pub async fn put_plugin(
        self: &Arc<Self>,
        tenant: &Name,
        plugin: &Name,
        file: Received,
    ) -> Result<(Digest, Published), ControlError> {
        if !self.desired().tenants.contains_key(tenant) {
            return Err(not_found("tenant", tenant));
        }
        let upload = self.uploads.begin(file.digest()).await;
        let outcome = self.keep_plugin((tenant, plugin), file, &upload).await;
        let digest = upload.digest();
        self.uploads.end(upload).await;
        Ok((digest, outcome?))
    }

    async fn keep_plugin(
        self: &Arc<Self>,
        (tenant, plugin): (&Name, &Name),
        file: Received,
        upload: &Upload,
    ) -> Result<Published, ControlError> {
        let digest = upload.digest();
        // What is no plugin is not even stored. Compiled before the lock is taken: other changes need
        // not wait for it. Held until a release has it.
        let loaded = self.loader.new_plugin(&file).await;
        let _held = loaded.map_err(|fault| ControlError::plugin(plugin, fault))?;
        upload.keep(file).await?;
        let change = Change::PutPlugin { tenant: tenant.clone(), plugin: plugin.clone(), digest };
        self.run(Asked { _upload: Some(upload.clone()), ..Asked::of(vec![change]) }).await
    }

    /// Keep a model's file, having loaded it. One that does not fit those who use it is refused,
    /// unless that is what is wanted (`force`).
    pub async fn put_model(
        self: &Arc<Self>,
        model: &Name,
        file: Received,
        force: bool,
    ) -> Result<PublishedModel, ControlError> {
        if file.is_empty() {
            let why = "the file is empty".to_owned();
            return Err(ControlError::Model { name: model.to_string(), why });
        }
        let upload = self.uploads.begin(file.digest()).await;
        let outcome = self.keep_model((model, force), file, &upload).await;
        self.uploads.end(upload).await;
        outcome
    }

    async fn keep_model(
        self: &Arc<Self>,
        (model, force): (&Name, bool),
        file: Received,
        upload: &Upload,
    ) -> Result<PublishedModel, ControlError> {
        let digest = upload.digest();
        upload.keep(file).await?;
        // Loaded before the lock is taken: other changes need not wait for it.
        let served = self.with_content(model, digest).await?;
        let changes = vec![Change::PutModel { model: model.clone(), digest }];
        let asked = Asked { force, _upload: Some(upload.clone()), ..Asked::of(changes) };
        let published = self.run(asked).await?;
        // Unchanged content makes no release, so that it could be one that still fails to load.
        match self.cell.load().models.get(model).map(|state| state.served.clone()) {
            Some(Err(why)) if !self.is_unloaded(model) => {
                Err(ControlError::Model { name: model.to_string(), why })
            }
            _ => Ok(PublishedModel { digest, published, served }),
        }
    }

    fn is_unloaded(&self, model: &Name) -> bool {
        self.serving.load().models.get(model).is_some_and(|model| model.unloaded)
    }

    /// Make a release of `changes`: all of them or none.
    pub async fn release(
        self: &Arc<Self>,
        changes: Vec<Change>,
    ) -> Result<Published, ControlError> {
        self.run(Asked::of(changes)).await
    }
}
