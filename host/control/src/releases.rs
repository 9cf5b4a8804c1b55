//! The one place where releases are made.
//!
//! A change is made under a lock, so that the state does not change meanwhile: it is planned, a
//! snapshot is built, the release is appended to the log, and the snapshot is published. For this,
//! everything that the new state names must be loaded. If something is missing, the lock is
//! released, the missing parts are loaded, and the change is planned again from the state at that
//! time.
//!
//! Invariants:
//! - under the lock nothing is compiled, proven or loaded, so that a change never waits for the
//!   loading of another one;
//! - work under the lock runs to its end, even if the client leaves: a release in the log always
//!   serves.

use std::panic::resume_unwind;
use std::sync::Arc;

use gristmill_core::{Digest, Name, PipelineLimits};
use tokio::sync::Mutex;

use crate::accounts::Accounts;
use crate::conditions::Conditions;
use crate::desired::Desired;
use crate::error::ControlError;
use crate::fault::{Subject, refusing};
use crate::load::at_hand::AtHand;
use crate::load::error::LoadError;
use crate::load::loader::Loader;
use crate::plan::signature::check_users;
use crate::plan::tenant::tenant_spec;
use crate::plan::{Plan, plan, subjects};
use crate::publish::{Publisher, Serving};
use crate::release::change::Change;
use crate::release::tenant::TenantDocument;
use crate::release_log::{Append, ReleaseLog, Replayed};
use crate::snapshot_builder::{Built, Inputs, build};
use crate::uploads::Upload;

/// The most times that a change is planned. Each time, other changes may have made it necessary to
/// load more.
const ROUNDS_MAX: usize = 8;

/// Makes releases.
pub(crate) struct Releases {
    pub(crate) log: ReleaseLog,
    pub(crate) loader: Arc<Loader>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) limits: PipelineLimits,
    /// Of one tenant's plugins together.
    pub(crate) compiled_bytes_max: u64,
    pub(crate) publisher: Publisher,
    /// Nothing is loaded, compiled or proven while this is held.
    pub(crate) replayed: Mutex<Replayed>,
}

/// A release that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The number of the release.
    pub release: u64,
    /// The tag that its first change gave to what it changed. None if that was deleted.
    pub tag: Option<Digest>,
}

/// The changes that are asked for.
pub(crate) enum Asked {
    Changes(Vec<Change>),
    /// Put a tenant. The keys that it keeps are those at the time of the release.
    Tenant(Name, TenantDocument),
}

/// The request for a release.
pub(crate) struct ChangeRequest {
    pub(crate) asked: Asked,
    /// They must hold for the subject of the first change.
    pub(crate) conditions: Conditions,
    /// Whether the users of a thing may be deleted with it.
    pub(crate) cascade: bool,
    /// Whether a model may be replaced by one that does not fit its users.
    pub(crate) force: bool,
    /// Kept until the release is made, even if the client leaves.
    pub(crate) _upload: Option<Upload>,
}

impl ChangeRequest {
    /// These changes, without conditions, `cascade` and `force`.
    pub(crate) fn of(asked: Asked) -> Self {
        let conditions = Conditions::default();
        Self { asked, conditions, cascade: false, force: false, _upload: None }
    }

    /// The subject of the first change.
    fn subject(&self) -> Option<Subject> {
        match &self.asked {
            Asked::Changes(changes) => changes.first().map(Change::target),
            Asked::Tenant(tenant, _) => Some(Subject::Tenant(tenant.clone())),
        }
    }

    /// Plan release `number`, which makes the changes to `desired`.
    fn plan(&self, desired: &Desired, number: u64) -> Result<Plan, ControlError> {
        match &self.asked {
            Asked::Changes(changes) => plan(desired, number, changes, self.cascade),
            Asked::Tenant(tenant, document) => {
                let spec = tenant_spec(desired, tenant, document, Vec::new())?;
                let put = Change::PutTenant { tenant: tenant.clone(), spec };
                plan(desired, number, &[put], self.cascade)
            }
        }
    }
}

/// The outcome of planning a change once.
enum Step {
    Made(Published),
    /// This state is to be served, but some plugins or models that it names are not loaded.
    Load(Desired),
}

impl Releases {
    /// Read the whole log, load the resulting state, and serve it. Parts that fail to load are
    /// unavailable.
    ///
    /// # Errors
    /// The log cannot be read, or is not whole.
    pub(crate) async fn start(&self) -> Result<(), ControlError> {
        // No change can come in yet, so the lock may be held while everything is loaded.
        let mut replayed = self.replayed.lock().await;
        *replayed = self.log.replay().await?;
        let mut at_hand = AtHand::default();
        at_hand.load(&self.loader, &replayed.desired).await;
        self.serve_log(&replayed, &mut at_hand);
        self.loader.plugins.collect_compiled(&replayed.desired).await;
        self.loader.models.forget_proofs(&replayed.desired);
        drop(replayed);
        self.log.remove_leftovers().await;
        Ok(())
    }

    /// Make the release that is asked for.
    ///
    /// # Errors
    /// The change is refused, or the log cannot be written. All changes are made or none.
    pub(crate) async fn run(
        self: &Arc<Self>,
        request: ChangeRequest,
    ) -> Result<Published, ControlError> {
        let request = Arc::new(request);
        let mut at_hand = AtHand::default();
        for _ in 0..ROUNDS_MAX {
            let (releases, request) = (self.clone(), request.clone());
            let stepping = tokio::spawn(async move {
                let step = releases.step(&request, &mut at_hand).await;
                (step, at_hand)
            });
            let stepped = stepping.await;
            let (step, brought) = stepped.unwrap_or_else(|panic| resume_unwind(panic.into_panic()));
            at_hand = brought;
            match step? {
                Step::Made(published) => return Ok(published),
                Step::Load(desired) => at_hand.load(&self.loader, &desired).await,
            }
        }
        Err(ControlError::Overtaken)
    }

    async fn step(
        &self,
        request: &ChangeRequest,
        at_hand: &mut AtHand,
    ) -> Result<Step, ControlError> {
        let mut replayed = self.replayed.lock().await;
        loop {
            self.log.read_on(&mut replayed).await?;
            self.log.confirm(&mut replayed).await?;
            if !self.serve_log(&replayed, at_hand) {
                return Ok(Step::Load(replayed.desired.clone()));
            }
            let serves = replayed.head.number;
            let planned = request.plan(&replayed.desired, serves + 1);
            // What is not there is not found, under all conditions.
            if !matches!(planned, Err(ControlError::NotFound { .. })) {
                self.check_conditions(request)?;
            }
            let Plan { changes, desired } = planned?;
            if !at_hand.look_up(&self.loader, &desired) {
                return Ok(Step::Load(desired));
            }
            if desired == replayed.desired {
                // There is nothing to append. But a part that failed to load may be loaded now.
                if !self.publisher.serving().faulty.is_empty() {
                    let built = self.build(serves, &desired, at_hand);
                    self.publish(built, desired);
                }
                return Ok(Step::Made(self.published(request)));
            }
            if !request.force {
                self.check_fit(&changes, &desired, at_hand)?;
            }
            self.check_compiled(&changes, [&replayed.desired, &desired]).await?;
            let built = self.build(serves + 1, &desired, at_hand);
            let known = &self.publisher.serving().faulty;
            let faults = refusing(built.faults.clone(), known, &subjects(&changes));
            if !faults.is_empty() {
                self.retain(&replayed.desired);
                return Err(ControlError::Refused(faults));
            }
            let outcome = self.log.append(&mut replayed, changes, desired).await?;
            if let Append::Lost = outcome {
                continue;
            }
            self.publish(built, replayed.desired.clone());
            self.retain(&replayed.desired);
            self.loader.plugins.collect_compiled(&replayed.desired).await;
            return match outcome {
                Append::Unconfirmed(error) => Err(error),
                _ => Ok(Step::Made(self.published(request))),
            };
        }
    }

    /// Serve the state of the log, unless it is served already. Returns false if something that it
    /// needs is not at hand.
    fn serve_log(&self, replayed: &Replayed, at_hand: &mut AtHand) -> bool {
        let release = replayed.head.number;
        if self.publisher.serving().snapshot.release == release {
            return true;
        }
        if !at_hand.look_up(&self.loader, &replayed.desired) {
            return false;
        }
        let built = self.build(release, &replayed.desired, at_hand);
        for fault in &built.faults {
            tracing::error!(%fault, "not served");
        }
        self.publish(built, replayed.desired.clone());
        true
    }

    /// Check the conditions of the request. What serves is the state of the log.
    fn check_conditions(&self, request: &ChangeRequest) -> Result<(), ControlError> {
        if let Some(subject) = request.subject().filter(|_| !request.conditions.are_none()) {
            let current = self.publisher.serving().tag(&subject)?;
            request.conditions.check(&subject, current)?;
        }
        Ok(())
    }

    /// The outcome of a request whose release serves.
    fn published(&self, request: &ChangeRequest) -> Published {
        let serving = self.publisher.serving();
        let current = request.subject().and_then(|subject| serving.current(&subject).ok());
        let tag = current.map(|current| current.tag);
        Published { release: serving.snapshot.release, tag }
    }

    /// Refuse models that do not fit their users any more.
    fn check_fit(
        &self,
        changes: &[Change],
        desired: &Desired,
        at_hand: &AtHand,
    ) -> Result<(), ControlError> {
        let put = |change: &Change| match change {
            Change::PutModel { model, .. } => Some(model.clone()),
            _ => None,
        };
        let put: Vec<Name> = changes.iter().filter_map(put).collect();
        let serving = self.publisher.serving();
        for name in &put {
            let new = desired.models.get(name).map(|model| at_hand.model(name, model));
            if let Some(Ok(new)) = new {
                check_users(&serving.snapshot, name, &new, desired)?;
            }
        }
        Ok(())
    }

    /// Refuse a plugin if its tenant would have more compiled code on disk, and too much.
    async fn check_compiled(
        &self,
        changes: &[Change],
        [before, after]: [&Desired; 2],
    ) -> Result<(), ControlError> {
        let (plugins, limit) = (&self.loader.plugins, self.compiled_bytes_max);
        for change in changes {
            let Change::PutPlugin { tenant, plugin, .. } = change else { continue };
            let cannot = |error: LoadError| ControlError::plugin(plugin, error.into());
            let wanted = plugins.compiled_bytes(after, tenant).await.map_err(cannot)?;
            if wanted <= limit {
                continue;
            }
            let has = plugins.compiled_bytes(before, tenant).await.map_err(cannot)?;
            if wanted > has {
                let (tenant, plugin) = (tenant.to_string(), plugin.to_string());
                return Err(ControlError::TooMuchCompiled { tenant, plugin, wanted, limit });
            }
        }
        Ok(())
    }

    fn build(&self, release: u64, desired: &Desired, at_hand: &AtHand) -> Built {
        let before = &*self.publisher.serving();
        let inputs = Inputs { at_hand, accounts: &self.accounts, limits: &self.limits, before };
        build(&inputs, release, desired)
    }

    fn publish(&self, built: Built, desired: Desired) {
        let Built { snapshot, faults } = built;
        let faulty = faults.into_iter().map(|fault| fault.subject).collect();
        let (snapshot, desired) = (Arc::new(snapshot), Arc::new(desired));
        self.publisher.publish(Serving { snapshot, desired, faulty });
    }

    /// Forget what `desired` does not name. Requests under way keep what they hold.
    fn retain(&self, desired: &Desired) {
        self.loader.retain(desired);
        self.accounts.retain(desired);
    }
}
