//! The other servers of a shared log: they append releases, and remove old ones behind a newer
//! checkpoint, at any time.
//!
//! Invariants:
//! - that the next document is missing means the log's end only if no document is behind it;
//! - a release counts as made only if it is part of the chain: one that a slow server appends in a
//!   place from which releases were removed is not.

use gristmill_core::Digest;
use gristmill_state::{Desired, Head};
use gristmill_store::StoreError;

use crate::checkpoint::Checkpoint;
use crate::error::ControlError;
use crate::release_log::end_error::{LogEndError, LogEndFault};
use crate::release_log::gaps::LogGap;
use crate::release_log::{ReleaseLog, read_checkpoint};

/// How often a log that changes meanwhile is looked at.
const LOOKS_MAX: usize = 5;

impl ReleaseLog {
    /// Whether a shared log goes on behind `head`, although its next document was not there. If a
    /// checkpoint stands for what comes next, `head` and `desired` are the checkpoint's then.
    pub(super) async fn goes_on(
        &self,
        head: &mut Head,
        desired: &mut Desired,
    ) -> Result<bool, ControlError> {
        if !self.store.is_shared() {
            return Ok(false);
        }
        let mut gap = None;
        for _ in 0..LOOKS_MAX {
            let Some(next) = self.store.next_after(head.number).await? else {
                self.check_ends_at(head).await?;
                return Ok(false);
            };
            if next == head.number + 1 && self.store.document(next).await?.is_some() {
                return Ok(true);
            }
            if self.takes_checkpoint(head.number, head, desired).await? {
                return Ok(true);
            }
            let whole = head.number;
            gap = Some(LogGap {
                whole,
                missing: vec![whole + 1..=next - 1],
                present: vec![next..=next],
            });
        }
        gap.map_or(Ok(false), |gap| Err(gap.into()))
    }

    /// Check that a shared log that has nothing behind `head` has `head` itself: a release that is
    /// appended behind a gap would let no server start.
    ///
    /// # Errors
    /// [`ControlError::LogEnd`]
    async fn check_ends_at(&self, head: &Head) -> Result<(), ControlError> {
        let number = head.number;
        if number <= self.base() || self.store.document(number).await?.is_some() {
            return Ok(());
        }
        self.adopt_checkpoint().await?;
        match number <= self.base() {
            true => Ok(()),
            false => Err(LogEndError { last: number, fault: LogEndFault::Replaced(number) }.into()),
        }
    }

    /// Read on elsewhere if a document behind release `number` cannot be used: a checkpoint may
    /// stand for it, and then `head` and `desired` are the checkpoint's. A slow server may have put
    /// the document in the place of one that was removed.
    ///
    /// # Errors
    /// `error`, if no checkpoint stands for it.
    pub(super) async fn goes_beyond(
        &self,
        number: u64,
        error: ControlError,
        head: &mut Head,
        desired: &mut Desired,
    ) -> Result<(), ControlError> {
        match self.takes_checkpoint(number, head, desired).await? {
            true => Ok(()),
            false => Err(error),
        }
    }

    /// Take the newest checkpoint in place of `head` and `desired`, if it is behind release
    /// `number`.
    async fn takes_checkpoint(
        &self,
        number: u64,
        head: &mut Head,
        desired: &mut Desired,
    ) -> Result<bool, ControlError> {
        self.adopt_checkpoint().await?;
        let base = self.base.lock().clone();
        let is_behind = base.head.number > number;
        if is_behind {
            *head = base.head.clone();
            *desired = base.desired.clone().in_place_of(desired);
        }
        Ok(is_behind)
    }

    /// Take the newest checkpoint of a shared log, which another server may have written.
    pub(super) async fn adopt_checkpoint(&self) -> Result<(), ControlError> {
        if !self.store.is_shared() {
            return Ok(());
        }
        let newest = read_checkpoint(&self.store).await?;
        if newest.head.number > self.base() {
            self.uploads.name(newest.head.number, newest.desired.files());
            *self.base.lock() = newest.into();
        }
        Ok(())
    }

    /// Whether the release at `head`, whose document is in the log's folder, is part of the log.
    /// None if that cannot be told any more.
    pub(super) async fn is_part(&self, head: &Head) -> Result<Option<bool>, ControlError> {
        let number = head.number;
        let Some(next) = self.store.next_after(number).await? else { return Ok(Some(true)) };
        if next == number + 1
            && let Some(document) = self.store.document(next).await?
        {
            return Ok(Some(Head::claimed_by(next, &document).digest() == head.digest()));
        }
        let Checkpoint { head: base, .. } = read_checkpoint(&self.store).await?;
        Ok((base.number == number).then(|| base.digest() == head.digest()))
    }

    /// Send a file that a release is about to name to a shared store again, unless it is sure that
    /// the file stays there.
    ///
    /// # Errors
    /// [`ControlError::NoFile`], or the store cannot be reached.
    pub(crate) async fn refresh(&self, digest: Digest) -> Result<(), ControlError> {
        self.store.refresh(digest).await.map_err(|error| match error {
            StoreError::Missing(digest) => ControlError::NoFile(digest),
            error => error.into(),
        })
    }

    /// Whether a shared log has releases behind this one.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn has_after(&self, number: u64) -> Result<bool, ControlError> {
        Ok(self.store.next_after(number).await?.is_some())
    }

    /// Whether other servers may append to it.
    pub(crate) fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    /// Remove the files of a shared store that were sent long ago and that no release names.
    pub(super) async fn remove_unnamed(&self) -> Result<(), ControlError> {
        if self.store.is_shared() {
            let named = self.uploads.named();
            self.store.remove_unnamed(move |digest| named.contains(digest)).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
