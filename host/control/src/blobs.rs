//! Files that are uploaded before the release that names them, at once or in parts.
//!
//! Invariants:
//! - a file that arrived whole stays for [`KEPT`], or for as long as a release names it;
//! - a part of which not all arrived leaves nothing;
//! - at most [`FILES_MAX`] files wait for a release, and [`PARTIAL_MAX`] for more parts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_core::Digest;
use gristmill_store::{Incoming, Mark, Received, Store, StoreError};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::blob_error::BlobError;
use crate::error::ControlError;
use crate::uploads::{Upload, Uploads};

/// How long a file, or the parts of one, wait for the next call that needs them.
const KEPT: Duration = Duration::from_secs(3600);

/// The most files that wait for a release.
const FILES_MAX: usize = 1024;

/// The most files that wait for more parts.
const PARTIAL_MAX: usize = 64;

/// The uploaded files that no release needs yet.
pub struct Blobs {
    store: Arc<Store>,
    uploads: Arc<Uploads>,
    held: Mutex<HashMap<Digest, Held>>,
    partial: Mutex<HashMap<Digest, Waiting>>,
}

/// A whole file.
struct Held {
    _upload: Upload,
    /// Ends the wait.
    timer: AbortHandle,
}

/// A file of which parts have arrived.
struct Waiting {
    partial: Arc<AsyncMutex<Partial>>,
    /// Ends the wait.
    timer: AbortHandle,
}

/// The parts that have arrived, to the end of the last one.
#[derive(Default)]
struct Partial(Option<(Incoming, Mark)>);

/// How much of a file has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobState {
    /// The bytes that have arrived.
    pub bytes: u64,
    /// Whether these are all.
    pub is_complete: bool,
}

/// A part that is arriving. If it is dropped before its end, it leaves nothing.
pub struct Part {
    blobs: Arc<Blobs>,
    digest: Digest,
    place: OwnedMutexGuard<Partial>,
    /// None only while a piece is written.
    incoming: Option<Incoming>,
    mark: Mark,
}

impl Blobs {
    pub(crate) fn new(store: Arc<Store>, uploads: Arc<Uploads>) -> Self {
        Self { store, uploads, held: Mutex::default(), partial: Mutex::default() }
    }

    /// How much of the file has arrived. None if nothing has.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn state(&self, digest: Digest) -> Result<Option<BlobState>, ControlError> {
        let waiting = self.partial.lock().get(&digest).map(|waiting| waiting.partial.clone());
        if let Some(waiting) = waiting {
            let bytes = match waiting.try_lock() {
                Ok(partial) => partial.bytes(),
                Err(_) => return Err(BlobError::Busy.into()),
            };
            return Ok(Some(BlobState { bytes, is_complete: false }));
        }
        match self.store.blob_bytes(digest).await {
            Ok(bytes) => Ok(Some(BlobState { bytes, is_complete: true })),
            Err(StoreError::Missing(_)) => Ok(None),
            Err(error) => Err(ControlError::from(error).logged()),
        }
    }

    /// Keep a whole file.
    ///
    /// # Errors
    /// [`BlobError`], or the store cannot keep it.
    pub async fn keep(
        self: &Arc<Self>,
        digest: Digest,
        file: Received,
    ) -> Result<BlobState, ControlError> {
        if file.digest() != digest {
            return Err(BlobError::OtherDigest { named: digest, found: file.digest() }.into());
        }
        let bytes = file.bytes();
        let is_room = {
            let held = self.held.lock();
            held.len() < FILES_MAX || held.contains_key(&digest)
        };
        if !is_room {
            return Err(BlobError::TooMany(FILES_MAX, "a release").into());
        }
        let upload = self.uploads.begin(digest).await;
        upload.keep(file).await.map_err(|error| ControlError::from(error).logged())?;
        let blobs = Arc::downgrade(self);
        let timer = tokio::spawn(async move {
            sleep(KEPT).await;
            if let Some(blobs) = blobs.upgrade() {
                blobs.held.lock().remove(&digest);
            }
        });
        let held = Held { _upload: upload, timer: timer.abort_handle() };
        self.held.lock().insert(digest, held);
        self.partial.lock().remove(&digest);
        Ok(BlobState { bytes, is_complete: true })
    }

    /// Begin to receive a part, which begins after `offset` bytes of the file.
    ///
    /// # Errors
    /// [`BlobError`], or the store cannot be written to.
    pub async fn part(self: &Arc<Self>, digest: Digest, offset: u64) -> Result<Part, ControlError> {
        let partial = self.waiting(digest, offset)?;
        let mut place = partial.try_lock_owned().map_err(|_| BlobError::Busy)?;
        let failed = |error| ControlError::from(error).logged();
        let (incoming, mark) = match place.0.take() {
            Some(known) => known,
            None => self.store.receive().await.map_err(failed)?.mark().await.map_err(failed)?,
        };
        if mark.bytes() != offset {
            let bytes = mark.bytes();
            place.0 = Some((incoming, mark));
            return Err(BlobError::Offset { given: offset, bytes }.into());
        }
        Ok(Part { blobs: self.clone(), digest, place, incoming: Some(incoming), mark })
    }

    /// The parts of this file. Its wait begins anew.
    fn waiting(
        self: &Arc<Self>,
        digest: Digest,
        offset: u64,
    ) -> Result<Arc<AsyncMutex<Partial>>, BlobError> {
        let mut all = self.partial.lock();
        if !all.contains_key(&digest) {
            if offset > 0 {
                return Err(BlobError::Offset { given: offset, bytes: 0 });
            }
            if all.len() >= PARTIAL_MAX {
                return Err(BlobError::TooMany(PARTIAL_MAX, "more parts"));
            }
        }
        let blobs = Arc::downgrade(self);
        let timer = tokio::spawn(async move {
            sleep(KEPT).await;
            if let Some(blobs) = blobs.upgrade() {
                blobs.partial.lock().remove(&digest);
            }
        });
        let timer = timer.abort_handle();
        let partial = all.get(&digest).map(|known| known.partial.clone()).unwrap_or_default();
        all.insert(digest, Waiting { partial: partial.clone(), timer });
        Ok(partial)
    }
}

impl Partial {
    fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |(_, mark)| mark.bytes())
    }
}

impl Part {
    /// The bytes of the file before this part.
    pub fn offset(&self) -> u64 {
        self.mark.bytes()
    }

    /// Add a piece.
    ///
    /// # Errors
    /// The store cannot be written to: all parts of the file are lost.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), ControlError> {
        if let Some(incoming) = self.incoming.take() {
            let written = incoming.write(piece).await;
            self.incoming = Some(written.map_err(|error| ControlError::from(error).logged())?);
        }
        Ok(())
    }

    /// Drop what arrived of this part. What arrived before stays.
    pub async fn cancel(mut self) {
        if let Some(incoming) = self.incoming.take()
            && let Ok(incoming) = incoming.go_back(self.mark.clone()).await
        {
            self.place.0 = Some((incoming, self.mark));
        }
    }

    /// End the part. If it is the last one, the file is kept.
    ///
    /// # Errors
    /// [`BlobError::OtherDigest`], or the store cannot keep it: all parts of the file are lost.
    pub async fn end(mut self, is_last: bool) -> Result<BlobState, ControlError> {
        let failed = |error| ControlError::from(error).logged();
        let Some(incoming) = self.incoming.take() else {
            return Err(BlobError::Offset { given: self.offset(), bytes: 0 }.into());
        };
        if is_last {
            self.blobs.partial.lock().remove(&self.digest);
            let file = incoming.finish().await.map_err(failed)?;
            return self.blobs.keep(self.digest, file).await;
        }
        let (incoming, mark) = incoming.mark().await.map_err(failed)?;
        let bytes = mark.bytes();
        self.place.0 = Some((incoming, mark));
        Ok(BlobState { bytes, is_complete: false })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.timer.abort();
    }
}
