//! The one place where releases are made.
//!
//! A change is made under the control plane's lock, from a state that nobody else changes meanwhile.
//! What the new state names must be loaded by then. Where it is not, the lock is left, the missing
//! parts are loaded, and the change is planned anew from the state as it is then.
//!
//! Invariants:
//! - under the lock nothing is compiled, proven or loaded, so that no change waits for what another
//!   one loads;
//! - what is done under the lock is brought to its end, whoever waits for it or leaves: a release in
//!   the log is a release that serves;
//! - where an append fails, the log decides whether the release is there, never the error.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gristmill_core::Name;
use gristmill_store::Appended;

use crate::ControlError;
use crate::at_hand::AtHand;
use crate::build::{Building, Built, build};
use crate::control::{Applied, Control, Published};
use crate::desired::Desired;
use crate::fault::refusing;
use crate::log::Head;
use crate::log_end;
use crate::plan::{plan, subjects};
use crate::release::Change;
use crate::uploads::Upload;

/// How often a change is planned: each time other changes may have brought combinations that are to
/// be loaded first.
const ROUNDS_MAX: usize = 8;

/// What a release is asked to do.
pub(crate) struct Asked {
    pub(crate) changes: Vec<Change>,
    /// Whether what uses a thing may be deleted with it.
    pub(crate) cascade: bool,
    /// Whether a model may be replaced by one that does not fit those who use it.
    pub(crate) force: bool,
    /// Kept until the release is made, whoever waits for it or leaves.
    pub(crate) _upload: Option<Upload>,
}

impl Asked {
    /// These changes, and nothing that they do not say.
    pub(crate) fn of(changes: Vec<Change>) -> Self {
        Self { changes, cascade: false, force: false, _upload: None }
    }
}

/// What planning a change once came to.
enum Step {
    Made(Published),
    /// This state is to be served, and some of what it names is not loaded.
    Load(Desired),
}

/// A release that is about to be appended, and what serves then.
struct Next {
    changes: Vec<Change>,
    desired: Desired,
    built: Built,
}

impl Control {
    /// Make the release that is asked for.
    pub(crate) async fn run(self: &Arc<Self>, asked: Asked) -> Result<Published, ControlError> {
        let asked = Arc::new(asked);
        let mut at_hand = AtHand::default();
        for _ in 0..ROUNDS_MAX {
            let (control, asked) = (self.clone(), asked.clone());
            let stepping = tokio::spawn(async move {
                let step = control.step(&asked, &mut at_hand).await;
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
        Err(ControlError::Unavailable(
            "other changes replace what this change needs faster than it can be loaded: try again"
                .into(),
        ))
    }

    async fn step(&self, asked: &Asked, at_hand: &mut AtHand) -> Result<Step, ControlError> {
        let mut applied = self.applied.lock().await;
        loop {
            self.catch_up(&mut applied).await?;
            self.confirm(&mut applied).await?;
            if !self.serve_log(&mut applied, at_hand) {
                return Ok(Step::Load(applied.desired.clone()));
            }
            let changes = plan(&applied.desired, &asked.changes, asked.cascade)?;
            let mut desired = applied.desired.clone();
            desired.apply(applied.log.number + 1, &changes)?;
            if !at_hand.look_up(&self.loader, &desired) {
                return Ok(Step::Load(desired));
            }
            if desired == applied.desired {
                // Nothing to append; but what failed to load may be whole again.
                if !applied.faulty.is_empty() {
                    let built = self.build(applied.log.number, &desired, at_hand);
                    self.publish(&mut applied, built);
                }
                return Ok(Step::Made(Published { release: applied.log.number }));
            }
            self.check_fit(asked, &desired, at_hand)?;
            let built = self.build(applied.log.number + 1, &desired, at_hand);
            let faults = refusing(built.faults.clone(), &applied.faulty, &subjects(&changes));
            if !faults.is_empty() {
                self.loader.forget_all_but(&applied.desired);
                return Err(ControlError::Refused(faults));
            }
            let next = Next { changes, desired, built };
            if let Some(published) = self.append(&mut applied, next).await? {
                return Ok(Step::Made(published));
            }
        }
    }

    /// Serve what the log says, where that is not served yet; not where something is not at hand.
    pub(crate) fn serve_log(&self, applied: &mut Applied, at_hand: &mut AtHand) -> bool {
        if applied.served == Some(applied.log.number) {
            return true;
        }
        if !at_hand.look_up(&self.loader, &applied.desired) {
            return false;
        }
        let built = self.build(applied.log.number, &applied.desired, at_hand);
        for fault in &built.faults {
            tracing::error!(%fault, "not served");
        }
        self.publish(applied, built);
        true
    }

    /// Refuse models that those who use them could use no more.
    fn check_fit(
        &self,
        asked: &Asked,
        desired: &Desired,
        at_hand: &AtHand,
    ) -> Result<(), ControlError> {
        let put = |change: &Change| match change {
            Change::PutModel { model, .. } => Some(model.clone()),
            _ => None,
        };
        let put: Vec<Name> = asked.changes.iter().filter_map(put).collect();
        for name in put.iter().filter(|_| !asked.force) {
            let new = desired.models.get(name).map(|model| at_hand.model(name, model));
            if let Some(Ok(new)) = new {
                self.check_users(name, &new, desired)?;
            }
        }
        Ok(())
    }

    /// Append the next release and serve it; none where another writer was first.
    async fn append(
        &self,
        applied: &mut Applied,
        next: Next,
    ) -> Result<Option<Published>, ControlError> {
        let number = applied.log.number + 1;
        let written = applied.log.write(now_ms(), next.changes.clone());
        let (document, log) = written.map_err(|error| ControlError::Host(error.to_string()))?;
        match self.loader.store.append(number, document.clone()).await {
            Ok(Appended::Lost) => Ok(None),
            Ok(Appended::Yes) => {
                self.commit(applied, log, next).await;
                log_end::note(&self.loader.store, &applied.log).await;
                Ok(Some(Published { release: number }))
            }
            Err(error) => match self.loader.store.document(number).await {
                Ok(None) => Err(error.into()),
                Ok(Some(there)) if there == document => {
                    self.commit(applied, log, next).await;
                    applied.is_confirmed = false;
                    Err(ControlError::Unconfirmed { number, source: error })
                }
                unknown => {
                    // The next change reads the log anew. Until the next start the files stay that
                    // the release may name.
                    tracing::error!(release = number, there = ?unknown.map(|there| there.is_some()),
                        "it is not known whether the log has this release");
                    self.uploads.name(next.changes.iter().filter_map(Change::blob));
                    Err(ControlError::Unconfirmed { number, source: error })
                }
            },
        }
    }

    /// The log has the release: serve it.
    async fn commit(&self, applied: &mut Applied, log: Head, next: Next) {
        let Next { changes, desired, built } = next;
        self.uploads.name(changes.iter().filter_map(Change::blob));
        let texts: Vec<_> = changes.iter().map(ToString::to_string).collect();
        tracing::info!(release = log.number, changes = texts.join(", "), "published");
        (applied.log, applied.desired) = (log, desired);
        self.publish(applied, built);
        self.loader.forget_all_but(&applied.desired);
        self.loader.collect_compiled(&applied.desired).await;
    }

    /// Apply the releases that the log has beyond `applied`.
    pub(crate) async fn catch_up(&self, applied: &mut Applied) -> Result<(), ControlError> {
        while let Some(document) = self.loader.store.document(applied.log.number + 1).await? {
            let number = applied.log.number + 1;
            let damaged = |why| ControlError::Log { number, why };
            let (release, log) = applied.log.read(&document).map_err(damaged)?;
            let mut desired = applied.desired.clone();
            let outcome = desired.apply(number, &release.changes);
            outcome.map_err(|error| damaged(error.to_string()))?;
            self.uploads.name(release.changes.iter().filter_map(Change::blob));
            (applied.log, applied.desired) = (log, desired);
            applied.is_confirmed = false;
            self.loader.progress.replayed(number);
        }
        Ok(())
    }

    /// See that the log's last release is on stable storage, where that is not known. Before that
    /// nothing is said to be kept that builds on it.
    pub(crate) async fn confirm(&self, applied: &mut Applied) -> Result<(), ControlError> {
        if !applied.is_confirmed {
            let number = applied.log.number;
            let synced = self.loader.store.sync_document(number).await;
            synced.map_err(|source| ControlError::Unconfirmed { number, source })?;
            applied.is_confirmed = true;
            log_end::note(&self.loader.store, &applied.log).await;
        }
        Ok(())
    }

    fn build(&self, release: u64, desired: &Desired, at_hand: &AtHand) -> Built {
        let building = Building { loader: &self.loader, at_hand, host_limits: &self.limits };
        build(&building, release, desired)
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests;
