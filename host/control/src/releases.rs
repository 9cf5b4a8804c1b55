//! The one place where releases are made.
//!
//! A change is made under a lock, so that the state does not change meanwhile: it is planned, a
//! snapshot is built, the release is appended to the log, and the snapshot is published. For this,
//! everything that the new state names must be loaded. If something is missing, the lock is
//! released, the missing parts are loaded, and the change is planned again from the state at that
//! time. The same goes for the golden samples of the pipelines that it touches: they run against
//! the built snapshot while the lock is free, and the release is made only if the pipelines are
//! still the same then. `checks` has further checks of a plan; `follow` serves the releases that
//! other servers have made in a shared log.
//!
//! Invariants:
//! - under the lock nothing is compiled, proven or loaded and no sample runs, so that a change
//!   never waits for what another one does before it is made;
//! - a release is appended only if the samples of all pipelines that it touches passed, unless its
//!   request says that they are skipped;
//! - work under the lock runs to its end, even if the client leaves: a release in the log always
//!   serves.

mod checks;
mod follow;

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use gristmill_core::{Digest, Name, PipelineLimits};
use tokio::sync::Mutex;

use crate::accounts::{Accounts, TenantId};
use crate::change_request::ChangeRequest;
use crate::desired::{Desired, Model, Plugin};
use crate::difference::{Difference, differences};
use crate::error::ControlError;
use crate::fault::{Fault, refusing};
use crate::load::at_hand::AtHand;
use crate::load::loader::Loader;
use crate::pace::Pace;
use crate::plan::subjects;
use crate::publish::{Publisher, Serving};
use crate::release::change::Change;
use crate::release_log::{Append, ReleaseLog, Replayed};
use crate::samples::run::SampleRuns;
use crate::samples::subject::{SampleSubject, unproven};
use crate::snapshot_builder::{Built, Inputs, build};
use crate::terms::TokenUse;
use crate::turns::Turns;

/// The most times that a change is planned. Each time, other changes may have made it necessary to
/// load more, or to run samples again.
const ROUNDS_MAX: usize = 8;

/// The most times that a release is appended under the lock. Servers that share the log take its
/// next number from each other; a store that takes nothing must not hold the lock for ever.
const APPENDS_MAX: usize = 200;

/// Makes releases.
pub(crate) struct Releases {
    pub(crate) log: ReleaseLog,
    pub(crate) loader: Arc<Loader>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) limits: PipelineLimits,
    /// Of one tenant's plugins together.
    pub(crate) compiled_bytes_max: u64,
    pub(crate) publisher: Publisher,
    pub(crate) samples: SampleRuns,
    /// At loading plugins.
    pub(crate) turns: Turns,
    pub(crate) pace: Pace,
    /// Nothing is loaded, compiled or proven and no sample runs while this is held.
    pub(crate) replayed: Mutex<Replayed>,
}

/// A release that was made, or would be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// The number of the release.
    pub release: u64,
    /// The tag that the change gave to its subject. None if that was deleted, or if there were
    /// several changes.
    pub tag: Option<Digest>,
    /// The things that differ afterwards, if a list of changes was asked for.
    pub differences: Vec<Difference>,
}

/// The outcome of planning a change once.
enum Step {
    Made(Published),
    /// This state is to be served, but some plugins or models that it names are not loaded, or some
    /// of these unloaded models are not proven.
    Load(Desired, Vec<(Name, Model)>),
    /// The samples of these pipelines have to pass.
    RunSamples(Vec<SampleSubject>),
    /// These files must stay in the shared store until all have read the release.
    Refresh(Vec<Digest>),
}

/// What a change has got ready while the lock was free.
#[derive(Default)]
struct Ready {
    at_hand: AtHand,
    /// The pipelines whose samples passed.
    proven: Vec<SampleSubject>,
    /// The files that stay in the shared store.
    fresh: Vec<Digest>,
}

impl Releases {
    /// Read the whole log, load the resulting state, and serve it. Parts that fail to load are
    /// unavailable. If a shared store cannot be reached and `offline` says so, the state that this
    /// server served last takes the log's place. Returns whether the log was read.
    ///
    /// # Errors
    /// The log cannot be read, is not whole, or has hashes that were made with another secret.
    pub(crate) async fn start(&self, offline: bool) -> Result<bool, ControlError> {
        // No change can come in yet, so the lock may be held while everything is loaded.
        let mut replayed = self.replayed.lock().await;
        let mut is_read = true;
        *replayed = match self.log.replay().await {
            Err(error) if offline && error.is_unreachable() => {
                is_read = false;
                self.log.last_state().await?.ok_or(error)?
            }
            read => read?,
        };
        let mut at_hand = AtHand::default();
        at_hand.load(&self.loader, &replayed.desired, replayed.desired.touched()).await;
        self.serve_log(&mut replayed, &mut at_hand).await;
        self.loader.plugins.remove_leftovers(&replayed.desired).await;
        self.loader.models.forget_proofs(&replayed.desired);
        drop(replayed);
        if is_read {
            self.log.remove_leftovers().await;
        }
        Ok(is_read)
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
        let outcome = self.run_rounds(&request).await;
        if outcome.is_err() || request.is_dry_run {
            self.forget_unnamed().await;
        }
        outcome
    }

    async fn run_rounds(
        self: &Arc<Self>,
        request: &Arc<ChangeRequest>,
    ) -> Result<Published, ControlError> {
        let (mut ready, mut samples_time) = (Ready::default(), self.samples.timeout);
        let reach = &request.terms.reach;
        for _ in 0..ROUNDS_MAX {
            let (releases, request) = (self.clone(), request.clone());
            let stepping = tokio::spawn(async move {
                let step = releases.step(&request, &mut ready).await;
                (step, ready)
            });
            let stepped = stepping.await;
            let (step, brought) = stepped.unwrap_or_else(|panic| resume_unwind(panic.into_panic()));
            ready = brought;
            match step? {
                Step::Made(published) => return Ok(published),
                Step::Load(desired, unloaded) => {
                    let _turn = self.turns.turn(reach).await;
                    let tenants = self.publisher.serving().may_change(&desired);
                    ready.at_hand.load(&self.loader, &desired, &tenants).await;
                    ready.at_hand.prove(&self.loader, unloaded).await;
                }
                Step::RunSamples(subjects) => {
                    self.samples.run(&subjects, &mut samples_time).await?;
                    ready.proven.extend(subjects);
                }
                Step::Refresh(files) => {
                    for file in files {
                        self.log.refresh(file).await?;
                        ready.fresh.push(file);
                    }
                }
            }
        }
        Err(ControlError::Overtaken)
    }

    async fn step(
        self: &Arc<Self>,
        request: &ChangeRequest,
        Ready { at_hand, proven, fresh }: &mut Ready,
    ) -> Result<Step, ControlError> {
        let mut replayed = self.replayed.lock().await;
        for _ in 0..APPENDS_MAX {
            self.log.read_on(&mut replayed).await?;
            self.log.confirm(&mut replayed).await?;
            if !self.serve_log(&mut replayed, at_hand).await {
                return Ok(Step::Load(replayed.desired.clone(), Vec::new()));
            }
            request.terms.check_token(&replayed.desired, SystemTime::now())?;
            let serves = replayed.head.number;
            request.check_expected(serves)?;
            let token = request.terms.token.as_ref();
            let paced = token.filter(|_| !request.terms.reach.is_server() && !request.is_dry_run);
            if let Some(TokenUse { name, version }) = paced {
                self.pace.check(name, *version, Instant::now())?;
            }
            let planned = request.plan(&replayed.desired, serves + 1);
            // What is not there is not found, under all conditions.
            if !matches!(planned, Err(ControlError::NotFound { .. })) {
                self.check_conditions(request)?;
            }
            let plan = planned?;
            let unproven_models = Self::unproven_models(request, &plan, at_hand)?;
            let before = self.publisher.serving();
            let tenants = before.may_change(&plan.desired);
            let is_at_hand = at_hand.look_up(&self.loader, &plan.desired, &tenants);
            if !is_at_hand || !unproven_models.is_empty() {
                return Ok(Step::Load(plan.desired, unproven_models));
            }
            if plan.desired.is_still(&replayed.desired) {
                // There is nothing to append. But a part that failed to load may be loaded now.
                if !before.faulty.is_empty() && !request.is_dry_run {
                    let built = self.build(serves, &plan.desired, at_hand);
                    self.publisher.publish(serving_of(built, plan.desired));
                }
                return self.made(request, &before, &self.publisher.serving());
            }
            if !request.force {
                self.check_fit(&plan, at_hand)?;
            }
            self.check_compiled(&replayed.desired, &plan).await?;
            let built = self.build(serves + 1, &plan.desired, at_hand);
            // A candidate can be taken away from a pipeline that cannot serve.
            let put = if request.is_abort() { Vec::new() } else { subjects(&plan.changes) };
            let mut faults = refusing(built.faults.clone(), &before.faulty, &put);
            faults.retain(|fault| {
                before.served(fault) && request.terms.reach.has_subject(&fault.subject)
            });
            if !faults.is_empty() {
                return Err(ControlError::Refused(faults));
            }
            let serving = serving_of(built, plan.desired.clone());
            if !request.terms.skips_samples {
                let mut unproven = unproven(&before, &serving, proven);
                // What others have is neither run for this author nor named to it.
                unproven.retain(|own| request.terms.reach.has_tenant(own.tenant.as_str()));
                if !unproven.is_empty() {
                    return Ok(Step::RunSamples(unproven));
                }
            }
            if request.is_dry_run {
                return self.made(request, &before, &serving);
            }
            if self.log.is_shared() {
                let mut files: Vec<_> = plan.changes.iter().filter_map(Change::blob).collect();
                files.retain(|file| !fresh.contains(file));
                if !files.is_empty() {
                    return Ok(Step::Refresh(files));
                }
            }
            let note = request.terms.note.clone();
            let outcome = self.log.append(&mut replayed, note, plan).await?;
            if let Append::Lost = outcome {
                continue;
            }
            if let Some(TokenUse { name, version }) = paced {
                self.pace.count(name, *version, Instant::now());
            }
            self.publish(serving, &mut replayed).await;
            let (releases, last) = (self.clone(), replayed.head.number);
            tokio::spawn(async move { releases.log.collect(last).await });
            return match outcome {
                Append::Unconfirmed(error) => Err(error),
                _ => self.made(request, &before, &self.publisher.serving()),
            };
        }
        Err(ControlError::Overtaken)
    }

    /// Serve the state of the log, unless it is served already. Returns false if something that it
    /// needs is not at hand.
    async fn serve_log(&self, replayed: &mut Replayed, at_hand: &mut AtHand) -> bool {
        let release = replayed.head.number;
        let before = self.publisher.serving();
        if before.snapshot.release == release {
            return true;
        }
        let tenants = before.may_change(&replayed.desired);
        if !at_hand.look_up(&self.loader, &replayed.desired, &tenants) {
            return false;
        }
        let built = self.build(release, &replayed.desired, at_hand);
        for fault in &built.faults {
            tracing::error!(%fault, "not served");
        }
        self.publish(serving_of(built, replayed.desired.clone()), replayed).await;
        true
    }

    /// Serve the state of the log, and forget what it does not name.
    async fn publish(&self, serving: Serving, replayed: &mut Replayed) {
        let before = self.publisher.serving();
        self.publisher.publish(serving);
        replayed.desired.settle();
        let touched = &self.publisher.serving().touched;
        let had = touched.iter().filter_map(|name| before.desired.tenants.get_key_value(name));
        let had: Vec<_> = had.map(|(name, own)| (name.clone(), own.clone())).collect();
        drop(before);
        let plugins = had.iter().flat_map(|(_, own)| own.plugins.values());
        let files = plugins.flat_map(Plugin::versions).map(|(_, file)| file);
        self.loader.plugins.dropped(files.filter(|file| !replayed.desired.has_plugin(*file)));
        let tenants = had.into_iter().map(|(name, own)| (name, own.since)).collect();
        self.forget(&tenants, &replayed.desired).await;
    }

    /// Check the conditions of the request. What serves is the state of the log.
    fn check_conditions(&self, request: &ChangeRequest) -> Result<(), ControlError> {
        let conditions = &request.terms.conditions;
        if let Some(subject) = request.subject().filter(|_| !conditions.are_none()) {
            let current = self.publisher.serving().tag(&subject)?;
            conditions.check(&subject, current)?;
        }
        Ok(())
    }

    /// The outcome of a request, whose release is `after`.
    fn made(
        &self,
        request: &ChangeRequest,
        before: &Serving,
        after: &Serving,
    ) -> Result<Step, ControlError> {
        let release = after.snapshot.release;
        let (tag, mut differences) = match request.subject() {
            Some(subject) => (after.tag(&subject)?, Vec::new()),
            None => (None, differences(before, after)?),
        };
        // A version of a model goes when the last pipeline stops to name it.
        differences.retain(|own| request.terms.reach.has_subject(&own.subject));
        Ok(Step::Made(Published { release, tag, differences }))
    }

    fn build(&self, release: u64, desired: &Desired, at_hand: &AtHand) -> Built {
        let before = &*self.publisher.serving();
        let inputs = Inputs { at_hand, accounts: &self.accounts, limits: &self.limits, before };
        build(&inputs, release, desired)
    }

    /// Forget what refused changes and dry runs brought.
    pub(crate) async fn forget_unnamed(&self) {
        let replayed = self.replayed.lock().await;
        self.forget(&BTreeSet::new(), &replayed.desired).await;
    }

    /// Forget what `desired`, the state of the log, does not name: models, plugins with their
    /// compiled code, and of these tenants and those of refused changes what they had. Requests
    /// under way keep what they hold.
    async fn forget(&self, tenants: &BTreeSet<TenantId>, desired: &Desired) {
        self.loader.models.retain(desired);
        self.accounts.forget(tenants, desired);
        self.loader.plugins.forget(desired, &self.log.uploads()).await;
    }
}

fn serving_of(built: Built, desired: Desired) -> Serving {
    let Built { snapshot, faults, touched } = built;
    let faulty = faults.iter().map(Fault::part).collect();
    Serving { snapshot: Arc::new(snapshot), desired: Arc::new(desired), faulty, touched }
}
