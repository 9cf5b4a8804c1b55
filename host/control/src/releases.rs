//! The one place where releases are made.
//!
//! A change is made under a lock, so that the state does not change meanwhile: it is planned, a
//! snapshot is built, the release is appended to the log, and the snapshot is published. For this,
//! everything that the new state names must be loaded. If something is missing, the lock is
//! released, the missing parts are loaded, and the change is planned again from the state at that
//! time. The same goes for the golden samples of the pipelines that it touches: they run against
//! the built snapshot while the lock is free, and the release is made only if the pipelines are
//! still the same then.
//!
//! The changes that wait for the lock are in a `queue`. `together` makes them, and `decide`
//! decides about each, with the further checks of `checks`. `follow` serves the releases that other
//! servers have made in a shared log.
//!
//! Invariants:
//! - under the lock nothing is compiled, proven or loaded and no sample runs, so that a change
//!   never waits for what another one does before it is made;
//! - a release is appended only if the samples of all pipelines that it touches passed, unless its
//!   request says that they are skipped;
//! - work under the lock runs to its end, even if the client leaves: a release in the log always
//!   serves.

mod checks;
mod decide;
mod follow;
pub(crate) mod queue;
pub(crate) mod step;
mod together;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use gristmill_core::{Name, PipelineLimits};
use gristmill_metrics::Durations;
use gristmill_sandbox::Language;
use gristmill_state::{Desired, Fault, LoadedPlugin, Power, Powers, Serving, Subject, TenantFile};
use tokio::sync::Mutex;

use crate::accounts::{Accounts, TenantId};
use crate::asset_limits::AssetLimits;
use crate::change_request::ChangeRequest;
use crate::error::ControlError;
use crate::load::assets::Payer;
use crate::load::at_hand::AtHand;
use crate::load::loader::Loader;
use crate::pace::Pace;
use crate::publish::Publisher;
use crate::release_log::{ReleaseLog, Replayed};
use crate::releases::queue::Queue;
use crate::releases::step::{NextStep, Prepared, Published};
use crate::samples::run::SampleRuns;
use crate::snapshot_builder::{Built, Inputs, build};
use crate::turns::Turns;

/// Maximum times that a change is planned. Each time, other changes may have made it necessary to
/// load more, or to run samples again.
const ROUNDS_MAX: usize = 8;

/// Makes releases.
pub(crate) struct Releases {
    pub(crate) log: ReleaseLog,
    pub(crate) loader: Arc<Loader>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) limits: PipelineLimits,
    /// Of one tenant's plugins together.
    pub(crate) compiled_bytes_max: u64,
    pub(crate) asset_limits: AssetLimits,
    pub(crate) publisher: Publisher,
    /// How long it took to build each snapshot.
    pub(crate) builds: Durations,
    pub(crate) samples: SampleRuns,
    /// At loading plugins.
    pub(crate) turns: Turns,
    /// Held while the log is read for what a release lets things do.
    pub(crate) reading_powers: Mutex<()>,
    pub(crate) pace: Pace,
    pub(crate) queue: Queue,
    /// Nothing is loaded, compiled or proven and no sample runs while this is held.
    pub(crate) replayed: Mutex<Replayed>,
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
        let desired = &replayed.desired;
        let payers = self.loader.payers(desired, desired.touched(), None);
        at_hand.load(&self.loader, desired, payers).await;
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
        let (mut prepared, mut samples_time) = (Prepared::default(), self.samples.timeout);
        let token_scope = &request.options.token_scope;
        for _ in 0..ROUNDS_MAX {
            let (step, brought) = self.step(request, prepared).await;
            prepared = brought;
            match step? {
                NextStep::Made(published) => {
                    return Ok(Published { samples: prepared.shown.into_list(), ..published });
                }
                NextStep::Load(desired, unloaded) => {
                    let _turn = self.turns.turn(token_scope).await;
                    let serving = self.publisher.serving();
                    let tenants = serving.may_change(&desired);
                    let payers = self.loader.payers(&desired, &tenants, Some(&serving));
                    drop(serving);
                    prepared.at_hand.load(&self.loader, &desired, payers).await;
                    prepared.at_hand.prove(&self.loader, unloaded).await;
                }
                NextStep::LoadLog(desired) => {
                    let _turn = self.turns.turn(token_scope).await;
                    let payers = self.log_payers(&desired);
                    prepared.at_hand.load(&self.loader, &desired, payers).await;
                }
                NextStep::RunSamples(subjects) => {
                    let shown = request.shows_answers.then_some(&mut prepared.shown);
                    self.samples.run(&subjects, &mut samples_time, shown).await?;
                    prepared.proven.extend(subjects);
                }
                NextStep::Refresh(files) => {
                    for file in files {
                        self.log.refresh(file).await?;
                        prepared.fresh.push(file);
                    }
                }
            }
        }
        Err(ControlError::Overtaken)
    }

    /// The tenants that may change with `desired`, the state of the log, as those that load files.
    /// All that the log names is loaded, whatever it takes.
    fn log_payers(&self, desired: &Desired) -> BTreeMap<Name, Payer> {
        self.loader.payers(desired, &self.publisher.serving().may_change(desired), None)
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
        let built = self.build(&before, release, &replayed.desired, at_hand);
        for fault in &built.faults {
            tracing::error!(%fault, "not served");
        }
        let serving = serving_of(built, replayed.desired.clone());
        self.publish(serving.into(), replayed).await;
        true
    }

    /// Serve the state of the log, and forget what it does not name.
    async fn publish(&self, serving: Arc<Serving>, replayed: &mut Replayed) {
        let before = self.publisher.serving();
        self.publisher.publish(serving);
        replayed.desired.settle();
        let touched = &self.publisher.serving().touched;
        let had = touched.iter().filter_map(|name| before.desired.tenants.get_key_value(name));
        let had: Vec<_> = had.map(|(name, tenant)| (name.clone(), tenant.clone())).collect();
        drop(before);
        let plugins = had.iter().flat_map(|(_, tenant)| tenant.plugins.values());
        let files = plugins.flat_map(TenantFile::versions).map(|(_, file)| file);
        self.loader.plugins.dropped(files.filter(|file| !replayed.desired.has_plugin(*file)));
        let tenants = had.into_iter().map(|(name, tenant)| (name, tenant.since)).collect();
        self.forget(&tenants, &replayed.desired).await;
    }

    /// What may do more or less in the state `after` than in `before`, of these things.
    pub(crate) fn powers<'a>(
        &self,
        before: &Desired,
        after: &Desired,
        subjects: impl Iterator<Item = &'a Subject>,
    ) -> Vec<Power> {
        let loaded = |file| {
            let plugin = self.loader.plugins.known(file)?.ok()?;
            Some(LoadedPlugin {
                imports: plugin.imports().to_vec(),
                world: plugin.roles().world(),
                bytes: plugin.file_bytes(),
                runtime: plugin.language().map(Language::name),
            })
        };
        let powers = Powers { before, after, limits: &self.limits, loaded: &loaded };
        subjects.flat_map(|subject| powers.of(subject)).collect()
    }

    fn build(&self, before: &Serving, release: u64, desired: &Desired, at_hand: &AtHand) -> Built {
        let inputs = Inputs { at_hand, accounts: &self.accounts, limits: &self.limits, before };
        let began = Instant::now();
        let built = build(&inputs, release, desired);
        self.builds.add(began.elapsed());
        built
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
        self.loader.assets.forget(desired);
        self.accounts.forget(tenants, desired);
        self.loader.plugins.forget(desired, &self.log.uploads()).await;
    }
}

fn serving_of(built: Built, desired: Desired) -> Serving {
    let Built { snapshot, faults, touched } = built;
    let faulty = faults.iter().map(Fault::part).collect();
    Serving { snapshot: Arc::new(snapshot), desired: Arc::new(desired), faulty, touched }
}
