//! Serving the releases that other servers have made in a shared log, and loading what could not be
//! fetched before.

use std::sync::Arc;

use gristmill_store::StoreError;

use crate::checkpoint::Checkpoint;
use crate::error::ControlError;
use crate::load::at_hand::AtHand;
use crate::releases::{ROUNDS_MAX, Releases, serving_of};

impl Releases {
    /// Read the log on, and serve its state. Parts that fail to load are unavailable, as at the
    /// start. If other releases keep coming, the next poll goes on.
    ///
    /// # Errors
    /// The log cannot be read, or has hashes that were made with another secret; or the store does
    /// not give a file, if the caller `is_patient`. What served before serves on.
    pub(crate) async fn follow(&self, is_patient: bool) -> Result<(), ControlError> {
        let mut at_hand = AtHand::retrying(is_patient);
        for _ in 0..ROUNDS_MAX {
            let desired = {
                let mut replayed = self.replayed.lock().await;
                self.log.read_on(&mut replayed).await?;
                self.log.confirm(&mut replayed).await?;
                let before = self.publisher.serving().snapshot.release;
                if self.serve_log(&mut replayed, &mut at_hand).await {
                    let release = replayed.head.number;
                    if before != release {
                        tracing::info!(release, "serving a release of another server");
                    }
                    return Ok(());
                }
                replayed.desired.clone()
            };
            at_hand.load(&self.loader, &desired, self.log_payers(&desired)).await;
            if is_patient && at_hand.lacks_files() {
                let why = "a file of a release cannot be fetched";
                return Err(StoreError::unreachable(why).into());
            }
        }
        Ok(())
    }

    /// Try to load the plugins, assets and models again that may be loaded by now. Returns whether
    /// there were any.
    pub(crate) async fn repair(self: &Arc<Self>) -> bool {
        let serving = self.publisher.serving();
        if serving.faulty.is_empty() {
            return false;
        }
        // What is at hand stays loaded until it is published.
        let mut at_hand = AtHand::retrying(true);
        let tenants = serving.may_change(&serving.desired);
        if at_hand.look_up(&self.loader, &serving.desired, &tenants) {
            return false;
        }
        let (desired, payers) = (serving.desired.clone(), self.log_payers(&serving.desired));
        drop(serving);
        let loaded = at_hand.load(&self.loader, &desired, payers).await;
        if loaded > 0 {
            let replayed = self.replayed.lock().await;
            let (release, before) = (replayed.head.number, self.publisher.serving());
            let is_same = before.snapshot.release == release;
            let tenants = before.may_change(&replayed.desired);
            if is_same && at_hand.look_up(&self.loader, &replayed.desired, &tenants) {
                let built = self.build(&before, release, &replayed.desired, &at_hand);
                self.publisher.publish(serving_of(built, replayed.desired.clone()).into());
                tracing::info!(release, loaded, "serving files that could not be loaded before");
            }
        }
        true
    }

    /// Record the last release and its state on the local disk, for a start without the store.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) async fn note_state(&self) -> Result<(), ControlError> {
        let state = {
            let replayed = self.replayed.lock().await;
            Checkpoint { head: replayed.head.clone(), desired: replayed.desired.clone() }
        };
        self.log.note_state(state).await
    }

    /// Whether other servers have made releases that this one does not serve.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn is_behind(&self) -> Result<bool, ControlError> {
        let serving = self.publisher.serving().snapshot.release;
        self.log.has_after(serving).await
    }
}
