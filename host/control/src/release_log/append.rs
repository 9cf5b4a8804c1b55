//! Appending releases to the log. Those that are made together go to the store in one call.
//!
//! Invariants:
//! - each of them has a document of its own, and follows the one before it;
//! - if an append fails, the content of the log decides which of them were made, not the error.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use gristmill_state::{Change, Desired, Head, Plan, ReleaseNote};
use gristmill_store::StoreError;

use crate::error::ControlError;
use crate::release_log::end;
use crate::release_log::{ReleaseLog, Replayed};

/// A release that can be appended.
pub(crate) struct Draft {
    /// The end of the log with it.
    head: Head,
    pub(super) document: Bytes,
    changes: Vec<Change>,
    /// The state after it.
    desired: Desired,
}

/// The outcome of appending some drafts.
pub(crate) struct Appended {
    /// The log has so many of them, from the first one on.
    pub(crate) kept: usize,
    /// Why those that the log has may not be on stable storage. They serve, but are not
    /// acknowledged.
    pub(crate) unconfirmed: Option<StoreError>,
    /// The outcome of the others.
    pub(crate) rest: Rest,
}

/// The outcome of drafts that the log is not known to have.
pub(crate) enum Rest {
    /// They are to be made again, if there are any: another writer was first, or the store did not
    /// get so far.
    Again,
    /// The store failed. Of the first `unknown` ones, it is not known whether the log has them. If
    /// there are none, the first one was not taken. The log has none of the others.
    Failed { source: StoreError, unknown: usize },
}

impl Draft {
    /// The release that makes the plan's changes, after the log that ends with `head`.
    ///
    /// # Errors
    /// [`StateError::Encode`]
    pub(crate) fn of(head: &Head, note: ReleaseNote, plan: Plan) -> Result<Self, ControlError> {
        let Plan { changes, desired, .. } = plan;
        let (document, head) = head.write(now_ms(), note, changes.clone())?;
        Ok(Self { head, document, changes, desired })
    }

    /// The end of the log with it.
    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    fn number(&self) -> u64 {
        self.head.number
    }
}

impl ReleaseLog {
    /// Append releases, which follow each other. `replayed` includes those that the log has
    /// afterwards.
    ///
    /// # Errors
    /// It is not known which of them the log has.
    pub(crate) async fn append(
        &self,
        replayed: &mut Replayed,
        mut drafts: Vec<Draft>,
    ) -> Result<Appended, ControlError> {
        let appended = match self.store.is_shared() {
            true => self.append_shared(&drafts).await?,
            false => self.append_local(&drafts).await,
        };
        let rest = drafts.split_off(appended.kept);
        for Draft { head, changes, .. } in &drafts {
            self.note_published(head.number, changes);
        }
        if let Rest::Failed { unknown, .. } = appended.rest {
            for draft in &rest[..unknown] {
                // The next change reads the log again. Files that the release may name stay until
                // the next start.
                let release = draft.number();
                tracing::error!(release, "it is not known whether the log has this release");
                self.uploads.name(release, draft.changes.iter().filter_map(Change::blob));
            }
        }
        if let Some(Draft { head, desired, .. }) = drafts.pop() {
            let is_confirmed = appended.unconfirmed.is_none();
            *replayed = Replayed { head, is_confirmed, desired };
            if is_confirmed {
                end::note(&self.store, &replayed.head).await;
            }
        }
        Ok(appended)
    }

    async fn append_local(&self, drafts: &[Draft]) -> Appended {
        let source = match self.send(drafts).await {
            Ok(kept) => return Appended { kept, unconfirmed: None, rest: Rest::Again },
            Err(source) => source,
        };
        let mut kept = 0;
        let unknown = loop {
            let Some(draft) = drafts.get(kept) else { break 0 };
            match self.store.document(draft.number()).await {
                Ok(Some(there)) if there == draft.document => kept += 1,
                Ok(None) => break 0,
                _ => break drafts.len() - kept,
            }
        };
        let unconfirmed = (kept > 0).then(|| source.clone());
        Appended { kept, unconfirmed, rest: Rest::Failed { source, unknown } }
    }

    async fn append_shared(&self, drafts: &[Draft]) -> Result<Appended, ControlError> {
        let mut kept = 0;
        let rest = loop {
            let sent = self.send(&drafts[kept..]).await;
            kept += sent.as_ref().unwrap_or(&0);
            let Some(next) = drafts.get(kept) else { break Rest::Again };
            // The call may have been repeated because its answer was lost. So what is there now
            // decides, not the answer.
            match (self.store.document(next.number()).await, sent) {
                (Ok(Some(there)), _) if there == next.document => kept += 1,
                (Ok(Some(_)), _) => break Rest::Again,
                // There was one, perhaps this one, and others have removed it since.
                (Ok(None), Ok(_)) => {
                    let source = StoreError::unreachable("the log went far ahead");
                    break Rest::Failed { source, unknown: 1 };
                }
                // It may still arrive. Those behind it were not sent.
                (Ok(None), Err(source)) | (Err(source), _) => {
                    break Rest::Failed { source, unknown: 1 };
                }
            }
        };
        let Some(last) = kept.checked_sub(1).map(|last| &drafts[last]) else {
            return Ok(Appended { kept, unconfirmed: None, rest });
        };
        // If the last one is part of the log, so are those before it.
        let source = match self.is_part(&last.head).await {
            Ok(Some(true)) => return Ok(Appended { kept, unconfirmed: None, rest }),
            Ok(Some(false)) if kept == 1 => {
                return Ok(Appended { kept: 0, unconfirmed: None, rest: Rest::Again });
            }
            Ok(_) => StoreError::unreachable("the log went far ahead"),
            Err(ControlError::Store(source)) => source,
            Err(error) => return Err(error),
        };
        let behind = match rest {
            Rest::Failed { unknown, .. } => unknown,
            Rest::Again => 0,
        };
        let rest = Rest::Failed { source, unknown: kept + behind };
        Ok(Appended { kept: 0, unconfirmed: None, rest })
    }

    /// Send documents to the store.
    async fn send(&self, drafts: &[Draft]) -> Result<usize, StoreError> {
        let Some(first) = drafts.first() else { return Ok(0) };
        let documents = drafts.iter().map(|draft| draft.document.clone()).collect();
        self.store.append(first.number(), documents).await
    }

    fn note_published(&self, release: u64, changes: &[Change]) {
        self.uploads.name(release, changes.iter().filter_map(Change::blob));
        let texts: Vec<_> = changes.iter().map(ToString::to_string).collect();
        tracing::info!(release, changes = texts.join(", "), "published");
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
