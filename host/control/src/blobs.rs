//! Files that are uploaded before the release that names them, at once or in parts.
//!
//! Invariants:
//! - a file that arrived whole stays for [`KEPT`], or for as long as a release names it;
//! - a part of which not all arrived leaves nothing;
//! - at most [`FILES_MAX`] files wait for a release, and [`PARTIAL_MAX`] for more parts; the bytes
//!   of all of them are bounded together (`blob_room`), and tokens have their shares of all three;
//! - a token whose scope is a few tenants has a file only if all of the file came with this token:
//!   it neither sees nor completes the files of others, though both may be the same file;
//! - only a file whose content has the digest in its name becomes a blob.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use gristmill_core::{Digest, Name};
use gristmill_store::{Incoming, Mark, Received, Store, StoreError};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::{Instant, sleep};

use crate::blob_error::BlobError;
use crate::blob_holder::{Holder, Key};
use crate::blob_room::{BlobRoom, HeldRoom, check_count};
use crate::error::ControlError;
use crate::uploads::{Upload, Uploads};

/// How long a file, or the parts of one, wait for the next call that needs them.
const KEPT: Duration = Duration::from_secs(3600);

/// The time between two looks for files that have waited too long.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(60);

/// Maximum files that wait for a release.
const FILES_MAX: usize = 1024;

/// Maximum files that wait for more parts.
const PARTIAL_MAX: usize = 64;

/// The uploaded files that no release needs yet.
pub struct Blobs {
    store: Arc<Store>,
    uploads: Arc<Uploads>,
    room: BlobRoom,
    files: Mutex<Files>,
    partial: Mutex<HashMap<Key, Arc<AsyncMutex<Partial>>>>,
}

/// The files that wait for a release.
#[derive(Default)]
struct Files {
    held: HashMap<Key, Held>,
    /// Those that the store is keeping. They count, too.
    arriving: Vec<Key>,
}

/// The place of a file that the store is keeping.
struct Slot<'a> {
    blobs: &'a Blobs,
    key: Key,
}

/// A whole file.
struct Held {
    since: Instant,
    _upload: Upload,
    _room: HeldRoom,
}

/// A file of which parts have arrived.
struct Partial {
    since: Instant,
    room: HeldRoom,
    /// The parts that have arrived, to the end of the last one. None before the first part, and
    /// while one arrives.
    parts: Option<(Incoming, Mark)>,
}

/// How much of a file has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobState {
    /// The bytes that have arrived.
    pub bytes: u64,
    /// Whether these are all.
    pub is_complete: bool,
}

/// The beginning of a part.
pub enum BeginPart {
    /// The part is to be received.
    Receive(Box<ArrivingPart>),
    /// The whole file is there already.
    Complete(BlobState),
}

/// A part that is arriving. If it is dropped before its end, all parts of its file are lost.
pub struct ArrivingPart {
    blobs: Arc<Blobs>,
    key: Key,
    place: OwnedMutexGuard<Partial>,
    /// None only while a piece is written.
    incoming: Option<Incoming>,
    mark: Mark,
    /// The bytes of this part that have arrived.
    arrived: usize,
}

impl Blobs {
    /// At most `bytes_max` bytes wait.
    pub(crate) fn new(store: Arc<Store>, uploads: Arc<Uploads>, bytes_max: usize) -> Arc<Self> {
        let room = BlobRoom::new(bytes_max);
        let (files, partial) = (Mutex::default(), Mutex::default());
        let blobs = Arc::new(Self { store, uploads, room, files, partial });
        tokio::spawn(sweep(Arc::downgrade(&blobs)));
        blobs
    }

    /// How much of the file has arrived. None if nothing has.
    ///
    /// # Errors
    /// [`BlobError::Busy`], or the store cannot be read.
    pub async fn state(
        &self,
        holder: &Holder,
        digest: Digest,
    ) -> Result<Option<BlobState>, ControlError> {
        let key = holder.key(digest);
        let partial = self.partial.lock().get(&key).cloned();
        if let Some(partial) = partial {
            let partial = partial.try_lock().map_err(|_| BlobError::Busy)?;
            let bytes = partial.parts.as_ref().map_or(0, |(_, mark)| mark.bytes());
            return Ok(Some(BlobState { bytes, is_complete: false }));
        }
        if !holder.sees_others && !self.files.lock().held.contains_key(&key) {
            return Ok(None);
        }
        match self.store.blob_bytes(digest).boxed().await {
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
        &self,
        holder: &Holder,
        digest: Digest,
        file: Received,
    ) -> Result<BlobState, ControlError> {
        check_digest(digest, &file)?;
        let key = holder.key(digest);
        // The same file that waits already counts once.
        let _stays = self.uploads.begin(digest).boxed().await;
        drop(self.files.lock().held.remove(&key));
        let room = self.room.hold(key.0.as_ref(), 0);
        room.try_add(usize::try_from(file.bytes()).unwrap_or(usize::MAX))?;
        self.keep_counted(key, file, room).boxed().await
    }

    /// Keep a whole file whose bytes count already.
    async fn keep_counted(
        &self,
        key: Key,
        file: Received,
        room: HeldRoom,
    ) -> Result<BlobState, ControlError> {
        let state = BlobState { bytes: file.bytes(), is_complete: true };
        let slot = self.slot(&key)?;
        let upload = self.uploads.begin(key.1).await;
        upload.keep(file).await.map_err(ControlError::logged)?;
        upload.settle();
        self.partial.lock().remove(&key);
        if !self.is_done(&key) {
            slot.fill(Held { since: Instant::now(), _upload: upload, _room: room });
        }
        Ok(state)
    }

    /// A place for one more file that waits for a release.
    fn slot(&self, key: &Key) -> Result<Slot<'_>, BlobError> {
        let mut files = self.files.lock();
        if files.held.len() >= FILES_MAX {
            files.held.retain(|key, _| !self.is_done(key));
        }
        let Files { held, arriving } = &mut *files;
        if !held.contains_key(key) && !arriving.contains(key) {
            check_count(held.keys().chain(&*arriving), key, FILES_MAX, "a release")?;
        }
        arriving.push(key.clone());
        Ok(Slot { blobs: self, key: key.clone() })
    }

    /// Whether nothing waits for the file any more. A file that is named by a release may be that
    /// of another tenant, so it says nothing about a token with a few tenants.
    fn is_done(&self, (token, digest): &Key) -> bool {
        token.is_none() && self.uploads.is_named(*digest)
    }

    /// Whether all of the file came with this token.
    pub(crate) fn has(&self, token: Option<&Name>, digest: Digest) -> bool {
        self.files.lock().held.contains_key(&(token.cloned(), digest))
    }

    /// Drop these files of the token: a release names them.
    pub(crate) fn settle(&self, token: Option<&Name>, files: &[Digest]) {
        let mut waiting = self.files.lock();
        for digest in files {
            waiting.held.remove(&(token.cloned(), *digest));
        }
    }

    /// Drop all that came with this token.
    pub fn forget_token(&self, token: &Name) {
        let is_others = |key: &Key| key.0.as_ref() != Some(token);
        self.files.lock().held.retain(|key, _| is_others(key));
        self.partial.lock().retain(|key, _| is_others(key));
    }

    /// Begin to receive a part, which begins after `offset` bytes of the file.
    ///
    /// # Errors
    /// [`BlobError`], or the store cannot be written to.
    pub async fn part(
        self: &Arc<Self>,
        holder: &Holder,
        digest: Digest,
        offset: u64,
    ) -> Result<BeginPart, ControlError> {
        if let Some(state) = self.state(holder, digest).await?.filter(|state| state.is_complete) {
            return Ok(BeginPart::Complete(state));
        }
        let key = holder.key(digest);
        // Refused now rather than when all has come.
        drop(self.slot(&key)?);
        let partial = self.place(&key, offset)?;
        let mut place = partial.try_lock_owned().map_err(|_| BlobError::Busy)?;
        let failed = |error| ControlError::from(error).logged();
        let (incoming, mark) = match place.parts.take() {
            Some(begun) => begun,
            None => {
                let begun = async { self.store.receive().await?.mark().await };
                begun.boxed().await.map_err(|error| self.dropped(&key, failed(error)))?
            }
        };
        if mark.bytes() != offset {
            let bytes = mark.bytes();
            place.parts = Some((incoming, mark));
            return Err(BlobError::Offset { offset, bytes }.into());
        }
        let (blobs, incoming) = (self.clone(), Some(incoming));
        let part = ArrivingPart { blobs, key, place, incoming, mark, arrived: 0 };
        Ok(BeginPart::Receive(Box::new(part)))
    }

    /// The place for the parts of this file.
    fn place(&self, key: &Key, offset: u64) -> Result<Arc<AsyncMutex<Partial>>, BlobError> {
        let mut all = self.partial.lock();
        if let Some(partial) = all.get(key) {
            return Ok(partial.clone());
        }
        if offset > 0 {
            return Err(BlobError::Offset { offset, bytes: 0 });
        }
        check_count(all.keys(), key, PARTIAL_MAX, "more parts")?;
        let (since, room) = (Instant::now(), self.room.hold(key.0.as_ref(), 0));
        let new = Arc::new(AsyncMutex::new(Partial { since, room, parts: None }));
        all.insert(key.clone(), new.clone());
        Ok(new)
    }

    /// Drop the file, whole or in parts, if no release names it. Returns whether it waited.
    pub fn forget(&self, holder: &Holder, digest: Digest) -> bool {
        let key = holder.key(digest);
        let held = self.files.lock().held.remove(&key);
        let partial = self.partial.lock().remove(&key);
        held.is_some() || partial.is_some()
    }

    /// The error, after all parts of the file were dropped because of it.
    fn dropped(&self, key: &Key, error: ControlError) -> ControlError {
        self.partial.lock().remove(key);
        error
    }

    /// Drop what waited too long, and what a release names.
    fn drop_old(&self) {
        let is_old = |since: Instant| since.elapsed() > KEPT;
        let mut files = self.files.lock();
        files.held.retain(|key, held| !is_old(held.since) && !self.is_done(key));
        drop(files);
        // A part that is arriving holds its place.
        self.partial
            .lock()
            .retain(|_, partial| partial.try_lock().map_or(true, |partial| !is_old(partial.since)));
    }
}

impl Slot<'_> {
    /// Put the file that was kept at the place.
    fn fill(self, held: Held) {
        self.blobs.files.lock().held.insert(self.key.clone(), held);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let arriving = &mut self.blobs.files.lock().arriving;
        if let Some(at) = arriving.iter().position(|key| *key == self.key) {
            arriving.swap_remove(at);
        }
    }
}

/// Look for old files until `blobs` is dropped.
async fn sweep(blobs: Weak<Blobs>) {
    loop {
        sleep(BETWEEN_SWEEPS).await;
        let Some(blobs) = blobs.upgrade() else { return };
        blobs.drop_old();
    }
}

fn check_digest(named: Digest, file: &Received) -> Result<(), BlobError> {
    match file.digest() {
        actual if actual == named => Ok(()),
        actual => Err(BlobError::OtherDigest { named, actual }),
    }
}

impl ArrivingPart {
    /// The bytes of the file before this part.
    pub fn offset(&self) -> u64 {
        self.mark.bytes()
    }

    /// Add a piece.
    ///
    /// # Errors
    /// [`BlobError::TooManyBytes`]; or the store cannot be written to: all parts of the file are
    /// lost.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), ControlError> {
        self.place.room.try_add(piece.len())?;
        self.arrived += piece.len();
        if let Some(incoming) = self.incoming.take() {
            let written = incoming.write(piece).boxed().await;
            let lost = |error| self.blobs.dropped(&self.key, ControlError::from(error).logged());
            self.incoming = Some(written.map_err(lost)?);
        }
        Ok(())
    }

    /// Drop what arrived of this part. What arrived before stays.
    pub async fn cancel(mut self) {
        if let Some(incoming) = self.incoming.take()
            && let Ok(incoming) = incoming.go_back(self.mark.clone()).boxed().await
        {
            self.place.room.give_back(self.arrived);
            self.place.parts = Some((incoming, self.mark));
            self.place.since = Instant::now();
        }
    }

    /// End the part. If it is the last one, the file is kept.
    ///
    /// # Errors
    /// [`BlobError::OtherDigest`], or the store cannot keep it: all parts of the file are lost.
    pub async fn end(mut self, is_last: bool) -> Result<BlobState, ControlError> {
        let lost = |error: StoreError| ControlError::from(error).logged();
        let Some(incoming) = self.incoming.take() else {
            return Err(BlobError::Offset { offset: self.offset(), bytes: 0 }.into());
        };
        if !is_last {
            let marked = incoming.mark().boxed().await;
            let marked = marked.map_err(|error| self.blobs.dropped(&self.key, lost(error)));
            let (incoming, mark) = marked?;
            let bytes = mark.bytes();
            self.place.parts = Some((incoming, mark));
            self.place.since = Instant::now();
            return Ok(BlobState { bytes, is_complete: false });
        }
        self.blobs.partial.lock().remove(&self.key);
        let file = incoming.finish().boxed().await.map_err(lost)?;
        check_digest(self.key.1, &file)?;
        // Counted anew: those of the parts are given back with their place.
        let bytes = usize::try_from(file.bytes()).unwrap_or(usize::MAX);
        let room = self.blobs.room.hold(self.key.0.as_ref(), bytes);
        self.blobs.keep_counted(self.key.clone(), file, room).boxed().await
    }
}

#[cfg(test)]
mod tests;
