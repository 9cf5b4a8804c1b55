//! The release log in the store: reading it, and appending to it.
//!
//! Refuses to know loaded plugins and models: its result is the desired state.
//!
//! Invariants:
//! - a log that has a gap, or that was changed, is refused as a whole;
//! - if an append fails, the content of the log decides whether the release was made, not the
//!   error;
//! - a release is acknowledged only when it is on stable storage.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gristmill_store::{Appended, Store};

use crate::desired::Desired;
use crate::error::ControlError;
use crate::load::progress::Progress;
use crate::plan::Plan;
use crate::release::change::{Change, Release, ReleaseNote};
use crate::release::format::Head;
use crate::release::gaps::gap_in;
use crate::release::log_end;
use crate::release::log_error::LogError;
use crate::uploads::Uploads;

/// The log of one data directory.
pub(crate) struct ReleaseLog {
    pub(crate) store: Arc<Store>,
    /// Learns which files releases name.
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) progress: Progress,
}

/// The position in the log, and the resulting state.
pub(crate) struct Replayed {
    pub(crate) head: Head,
    /// Whether its last release is known to be on stable storage.
    is_confirmed: bool,
    pub(crate) desired: Desired,
}

/// The outcome of appending a release.
pub(crate) enum Append {
    /// It is on stable storage.
    Kept,
    /// Another writer was first.
    Lost,
    /// The log has the release, but it may not be on stable storage: it serves, but is not
    /// acknowledged.
    Unconfirmed(ControlError),
}

impl Default for Replayed {
    /// The position before the first release.
    fn default() -> Self {
        Self { head: Head::default(), is_confirmed: true, desired: Desired::default() }
    }
}

impl ReleaseLog {
    /// Read the log from its beginning to its end.
    ///
    /// # Errors
    /// The store cannot be read; or the log has a gap, was changed, or lacks its end.
    pub(crate) async fn replay(&self) -> Result<Replayed, ControlError> {
        let listing = self.store.log().await?;
        for file in &listing.foreign {
            tracing::warn!(
                file,
                "a file in the release log's folder is not a release: it is ignored"
            );
        }
        if let Some(gap) = gap_in(&listing) {
            return Err(gap.into());
        }
        let mut replayed = Replayed::default();
        self.read_on(&mut replayed).await?;
        log_end::check(&self.store, &replayed.head).await?;
        self.confirm(&mut replayed).await?;
        Ok(replayed)
    }

    /// Read the log from `replayed` to its end. After an error, `replayed` is at the last document
    /// that could be read.
    ///
    /// # Errors
    /// The store cannot be read, or a document does not follow the one before it.
    pub(crate) async fn read_on(&self, replayed: &mut Replayed) -> Result<(), ControlError> {
        loop {
            let number = replayed.head.number + 1;
            let Some(document) = self.store.document(number).await? else { return Ok(()) };
            let damaged = |source| ControlError::Log { number, source };
            let (release, head) = replayed.head.read(&document).map_err(damaged)?;
            let mut desired = replayed.desired.clone();
            let applied = desired.apply(number, &release.changes);
            applied.map_err(|error| damaged(LogError::Unfit(error.into())))?;
            self.uploads.name(release.changes.iter().filter_map(Change::blob));
            *replayed = Replayed { head, is_confirmed: false, desired };
            self.progress.replayed(number);
        }
    }

    /// Release `number`, checked against its own digest.
    ///
    /// # Errors
    /// [`ControlError::NotFound`], the store cannot read it, or it is damaged.
    pub(crate) async fn release(&self, number: u64) -> Result<Release, ControlError> {
        let document = self.store.document(number).await?;
        let document = document.ok_or_else(|| ControlError::no_release(number))?;
        let read = Head::claimed_by(number, &document).read(&document);
        Ok(read.map_err(|source| ControlError::Log { number, source })?.0)
    }

    /// The state after release `number`.
    ///
    /// # Errors
    /// As [`Self::release`], for any release up to this one.
    pub(crate) async fn state_after(&self, number: u64) -> Result<Desired, ControlError> {
        let (mut head, mut desired) = (Head::default(), Desired::default());
        while head.number < number {
            let next = head.number + 1;
            let document = self.store.document(next).await?;
            let document = document.ok_or_else(|| ControlError::no_release(number))?;
            let damaged = |source| ControlError::Log { number: next, source };
            let (release, read) = head.read(&document).map_err(damaged)?;
            let applied = desired.apply(next, &release.changes);
            applied.map_err(|error| damaged(LogError::Unfit(error.into())))?;
            head = read;
        }
        Ok(desired)
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
            log_end::note(&self.store, &replayed.head).await;
        }
        Ok(())
    }

    /// Append a release of the plan's changes. If the log has it afterwards, `replayed` includes
    /// it.
    ///
    /// # Errors
    /// [`ControlError::Store`] if the log does not have the release, [`ControlError::Unconfirmed`]
    /// if that is not known.
    pub(crate) async fn append(
        &self,
        replayed: &mut Replayed,
        note: ReleaseNote,
        Plan { changes, desired }: Plan,
    ) -> Result<Append, ControlError> {
        let (document, head) = replayed.head.write(now_ms(), note, changes.clone())?;
        let number = head.number;
        match self.store.append(number, document.clone()).await {
            Ok(Appended::Lost) => Ok(Append::Lost),
            Ok(Appended::Yes) => {
                self.note_published(number, &changes);
                *replayed = Replayed { head, is_confirmed: true, desired };
                log_end::note(&self.store, &replayed.head).await;
                Ok(Append::Kept)
            }
            Err(source) => match self.store.document(number).await {
                Ok(None) => Err(source.into()),
                Ok(Some(there)) if there == document => {
                    self.note_published(number, &changes);
                    *replayed = Replayed { head, is_confirmed: false, desired };
                    Ok(Append::Unconfirmed(ControlError::Unconfirmed { number, source }))
                }
                unknown => {
                    // The next change reads the log again. Files that the release may name stay
                    // until the next start.
                    tracing::error!(release = number, there = ?unknown.map(|there| there.is_some()),
                        "it is not known whether the log has this release");
                    self.uploads.name(changes.iter().filter_map(Change::blob));
                    Err(ControlError::Unconfirmed { number, source })
                }
            },
        }
    }

    fn note_published(&self, release: u64, changes: &[Change]) {
        self.uploads.name(changes.iter().filter_map(Change::blob));
        let texts: Vec<_> = changes.iter().map(ToString::to_string).collect();
        tracing::info!(release, changes = texts.join(", "), "published");
    }

    /// Remove files that killed processes and refused uploads left in the store.
    pub(crate) async fn remove_leftovers(&self) {
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
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
