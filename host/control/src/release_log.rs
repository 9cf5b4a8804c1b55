//! The release log in the store: reading it, and appending to it.
//!
//! Refuses to know loaded plugins and models: its result is the desired state.
//!
//! `append` adds releases, `end` records where the log ends, and `gaps` finds missing files. Other
//! servers may append to a shared log, and remove old releases of it: `others` has what that asks
//! for.
//!
//! Invariants:
//! - a log that has a gap, or that was changed, is refused as a whole;
//! - a release is acknowledged only when it is on stable storage;
//! - a release is removed only when a checkpoint behind it is on stable storage.

pub(crate) mod append;
pub(crate) mod end;
pub(crate) mod end_error;
pub(crate) mod gaps;
mod others;

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{Digest, HashKeyId};
use gristmill_state::{Change, Desired, Head, LastKeys, LogError, Release};
use gristmill_store::{LogListing, Store, StoreError};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use crate::checkpoint::Checkpoint;
use crate::error::ControlError;
use crate::hash_key;
use crate::load::progress::Progress;
use crate::release_log::gaps::gap_in;
use crate::task::joined;
use crate::uploads::Uploads;

/// The log of one data directory.
pub(crate) struct ReleaseLog {
    store: Arc<Store>,
    /// Learns which files releases name.
    uploads: Arc<Uploads>,
    progress: Progress,
    /// The releases that are kept at least.
    keep: u64,
    /// The secret that the server has.
    hash_key: Option<HashKeyId>,
    /// The state where the log begins.
    base: Mutex<Arc<Checkpoint>>,
    /// Held while releases are removed.
    collecting: AsyncMutex<()>,
}

/// The position in the log, and the resulting state.
pub(crate) struct Replayed {
    pub(crate) head: Head,
    /// Whether its last release is known to be on stable storage.
    is_confirmed: bool,
    pub(crate) desired: Desired,
}

impl Default for Replayed {
    /// The position before the first release.
    fn default() -> Self {
        Self { head: Head::default(), is_confirmed: true, desired: Desired::default() }
    }
}

impl ReleaseLog {
    pub(crate) fn new(
        store: Arc<Store>,
        uploads: Arc<Uploads>,
        progress: Progress,
        keep: u64,
        hash_key: Option<HashKeyId>,
    ) -> Self {
        let (base, collecting) = (Mutex::default(), AsyncMutex::default());
        Self { store, uploads, progress, keep, hash_key, base, collecting }
    }

    /// The last release that this server of a shared log has recorded, and its state. None if it
    /// has recorded none.
    ///
    /// # Errors
    /// The record cannot be read.
    pub(crate) async fn last_state(&self) -> Result<Option<Replayed>, ControlError> {
        let Some(text) = self.store.last_state().await? else { return Ok(None) };
        let read = Checkpoint::read(&text).map_err(ControlError::Checkpoint)?;
        hash_key::check(read.desired.hash_keys(), self.hash_key)?;
        self.uploads.name(read.head.number, read.desired.files());
        *self.base.lock() = Arc::new(read.clone());
        let Checkpoint { head, desired } = read;
        Ok(Some(Replayed { head, is_confirmed: true, desired }))
    }

    /// Record a release and its state on the local disk.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) async fn note_state(&self, state: Checkpoint) -> Result<(), ControlError> {
        Ok(self.store.put_last_state(text_of(state.into()).await?).await?)
    }

    /// The files that uploads under way need.
    pub(crate) fn uploads(&self) -> Vec<Digest> {
        self.uploads.under_way()
    }

    /// The release before the first one that is kept; 0 if all are.
    pub(crate) fn base(&self) -> u64 {
        self.base.lock().head.number
    }

    /// Read the log from its beginning to its end.
    ///
    /// # Errors
    /// The store cannot be read; or the log has a gap, was changed, or lacks its end.
    pub(crate) async fn replay(&self) -> Result<Replayed, ControlError> {
        let (mut base, listing) = self.begin().await?;
        for file in &listing.foreign {
            tracing::warn!(
                file,
                "a file in the release log's folder is not a release: it is ignored"
            );
        }
        let Checkpoint { head, desired } = base.clone();
        self.uploads.name(head.number, desired.files());
        let mut replayed = Replayed { head, is_confirmed: true, desired };
        base.desired.settle();
        *self.base.lock() = Arc::new(base);
        self.read_on(&mut replayed).await?;
        if let Err(error) = end::check(&self.store, &replayed.head, self.base()).await {
            // Another server may have removed what it looked for, behind a newer checkpoint.
            let before = self.base();
            self.adopt_checkpoint().await?;
            match self.base() > before {
                true => end::check(&self.store, &replayed.head, self.base()).await?,
                false => return Err(error),
            }
        }
        hash_key::check(replayed.desired.hash_keys(), self.hash_key)?;
        self.confirm(&mut replayed).await?;
        Ok(replayed)
    }

    /// The checkpoint, and the content of the log behind it.
    async fn begin(&self) -> Result<(Checkpoint, LogListing), ControlError> {
        let mut base = read_checkpoint(&self.store).await?;
        loop {
            let listing = self.store.log().await?;
            let Some(gap) = gap_in(&listing, base.head.number) else { return Ok((base, listing)) };
            // Another server may have removed releases meanwhile, behind a newer checkpoint.
            let newer = read_checkpoint(&self.store).await?;
            if newer.head.number <= base.head.number {
                return Err(gap.into());
            }
            base = newer;
        }
    }

    /// Read the log from `replayed` to its end. After an error, `replayed` is as it was before.
    ///
    /// # Errors
    /// The store cannot be read, or a document does not follow the one before it.
    pub(crate) async fn read_on(&self, replayed: &mut Replayed) -> Result<(), ControlError> {
        let (mut head, mut desired) = (replayed.head.clone(), replayed.desired.clone());
        let mut given_up = head.number;
        loop {
            match self.read_next(&mut head, &mut desired).await {
                Ok(Some(release)) => {
                    let number = release.number;
                    self.uploads.name(number, release.changes.iter().filter_map(Change::blob));
                    self.progress.replayed(number);
                }
                Ok(None) => {
                    if !self.goes_on(&mut head, &mut desired).await? {
                        break;
                    }
                }
                Err(error) => {
                    self.goes_beyond(given_up, error, &mut head, &mut desired).await?;
                    given_up = head.number;
                }
            }
        }
        if head != replayed.head {
            if self.store.is_shared() {
                hash_key::check(desired.hash_keys(), self.hash_key)?;
            }
            *replayed = Replayed { head, is_confirmed: false, desired };
        }
        Ok(())
    }

    /// Read the release after `head`, if there is one, and apply it to `desired`.
    async fn read_next(
        &self,
        head: &mut Head,
        desired: &mut Desired,
    ) -> Result<Option<Release>, ControlError> {
        let number = head.number + 1;
        let Some(document) = self.store.document(number).await? else { return Ok(None) };
        let damaged = |source| ControlError::Log { number, source };
        let (release, next) = head.read(&document).map_err(damaged)?;
        let applied = desired.apply(number, &release.changes);
        applied.map_err(|error| damaged(LogError::Unfit(error.into())))?;
        *head = next;
        Ok(Some(release))
    }

    /// Release `number`, checked against its own digest.
    ///
    /// # Errors
    /// [`StateError::NotFound`], [`ControlError::NotKept`], the store cannot read it, or it is
    /// damaged.
    pub(crate) async fn release(&self, number: u64) -> Result<Release, ControlError> {
        self.check_kept(number)?;
        let Some(document) = self.store.document(number).await? else {
            // Another server may have removed it.
            self.adopt_checkpoint().await?;
            self.check_kept(number)?;
            return Err(ControlError::no_release(number));
        };
        let read = Head::claimed_by(number, &document).read(&document);
        Ok(read.map_err(|source| ControlError::Log { number, source })?.0)
    }

    /// The state after release `number`, but each of its tenants with the keys that it had last.
    ///
    /// # Errors
    /// As [`Self::release`], for any release.
    pub(crate) async fn state_to_restore(&self, number: u64) -> Result<Desired, ControlError> {
        self.adopt_checkpoint().await?;
        self.check_kept(number)?;
        let Checkpoint { mut head, desired: mut then } = self.checkpoint_at(number).await?;
        let mut last = LastKeys::of(&then);
        let mut now = then.clone();
        while let Some(release) = self.read_next(&mut head, &mut now).await? {
            release.changes.iter().for_each(|change| last.note(change));
        }
        // If another server removed releases meanwhile, the log seemed to end where they began.
        self.adopt_checkpoint().await?;
        self.check_kept(number)?;
        last.put_into(&mut then, number)?;
        Ok(then)
    }

    /// The states before and after release `number`.
    ///
    /// # Errors
    /// As [`Self::release`], for any release before it, too.
    pub(crate) async fn around(&self, number: u64) -> Result<[Desired; 2], ControlError> {
        let earlier = self.checkpoint_at(number.saturating_sub(1)).await?;
        let Checkpoint { mut head, desired: before } = earlier;
        let mut after = before.clone();
        let read = self.read_next(&mut head, &mut after).await?;
        // It may have been removed meanwhile.
        self.check_kept(number)?;
        read.ok_or_else(|| ControlError::no_release(number))?;
        Ok([before, after])
    }

    /// # Errors
    /// [`ControlError::NotKept`]
    pub(crate) fn check_kept(&self, number: u64) -> Result<(), ControlError> {
        match self.base() {
            base if (1..=base).contains(&number) => {
                Err(ControlError::NotKept { number, first: base + 1 })
            }
            _ => Ok(()),
        }
    }

    /// Read the log from its beginning to release `number`.
    async fn checkpoint_at(&self, number: u64) -> Result<Checkpoint, ControlError> {
        let base = self.base.lock().clone();
        let Checkpoint { mut head, mut desired } = (*base).clone();
        while head.number < number {
            let read = self.read_next(&mut head, &mut desired).await?;
            read.ok_or_else(|| ControlError::no_release(number))?;
        }
        Ok(Checkpoint { head, desired })
    }

    /// If there are some more releases than are kept, remove the oldest ones and the files that
    /// only they name. Before, the state that they led to is written as the checkpoint. `last` is
    /// the number of the last release.
    pub(crate) async fn collect(&self, last: u64) {
        let Ok(_collecting) = self.collecting.try_lock() else { return };
        // So that a checkpoint is written once in a while, not at each release.
        let spare = (self.keep / 8).max(1);
        if last.saturating_sub(self.base()) <= self.keep.saturating_add(spare) {
            return;
        }
        let base = last - self.keep;
        let collecting = async {
            self.adopt_checkpoint().await?;
            if self.base() < base {
                self.collect_to(base).await?;
            }
            self.remove_unnamed().await
        };
        match collecting.await {
            Ok(()) => tracing::info!(first_kept = base + 1, "removed old releases"),
            // The next release tries again, or the next start removes what is left.
            Err(error) => tracing::warn!(?error, "cannot remove old releases"),
        }
    }

    async fn collect_to(&self, number: u64) -> Result<(), ControlError> {
        let before = self.base();
        let mut checkpoint = self.checkpoint_at(number).await?;
        checkpoint.desired.settle();
        let checkpoint = Arc::new(checkpoint);
        self.store.put_checkpoint(number, text_of(checkpoint.clone()).await?).await?;
        *self.base.lock() = checkpoint.clone();
        for number in before + 1..=number {
            self.store.remove_document(number).await?;
        }
        self.uploads.forget(number, &checkpoint.desired.files()).await;
        Ok(())
    }

    /// Sync the log's last release, unless it is known to be on stable storage. Later releases are
    /// acknowledged only after that.
    ///
    /// # Errors
    /// [`ControlError::Unconfirmed`]: the store cannot sync it.
    pub(crate) async fn confirm(&self, replayed: &mut Replayed) -> Result<(), ControlError> {
        if !replayed.is_confirmed {
            let number = replayed.head.number;
            let synced = self.store.sync_document(number).await;
            synced.map_err(|source| ControlError::Unconfirmed { number, source })?;
            replayed.is_confirmed = true;
            end::note(&self.store, &replayed.head).await;
        }
        Ok(())
    }

    /// Remove files that killed processes and refused uploads left in the store.
    pub(crate) async fn remove_leftovers(&self) {
        if let Err(error) = self.remove_old_documents().await {
            tracing::warn!(?error, "cannot remove old releases");
        }
        let named = self.uploads.named();
        let removing = self.store.remove_leftovers(move |digest| named.contains(digest));
        match removing.await {
            Ok(removed) if removed.files == 0 => {}
            Ok(removed) => tracing::info!(
                files = removed.files,
                bytes = removed.bytes,
                "removed files of interrupted writes and refused uploads from the store"
            ),
            // The server works in spite of this.
            Err(error) => tracing::warn!(?error, "cannot remove leftovers from the store"),
        }
    }

    /// Remove the releases for which the checkpoint stands: a killed process left them.
    async fn remove_old_documents(&self) -> Result<(), StoreError> {
        let base = self.base();
        for number in self.store.log().await?.numbers {
            if number > base {
                break;
            }
            self.store.remove_document(number).await?;
        }
        Ok(())
    }
}

/// The text of a checkpoint, made off the serving threads: it may have some MiB.
async fn text_of(checkpoint: Arc<Checkpoint>) -> Result<Bytes, ControlError> {
    let text = tokio::task::spawn_blocking(move || checkpoint.write());
    Ok(joined("wrote a checkpoint", text).await??)
}

/// The checkpoint in the store; that before the first release if there is none.
///
/// # Errors
/// [`ControlError::Checkpoint`], or the store cannot be read.
pub(crate) async fn read_checkpoint(store: &Store) -> Result<Checkpoint, ControlError> {
    match store.checkpoint().await? {
        Some(file) => Checkpoint::read(&file).map_err(ControlError::Checkpoint),
        None => Ok(Checkpoint::default()),
    }
}
