//! What a store that several servers share does in another way than a folder of one server.
//!
//! - Files arrive on the local disk and are hashed there; then they are sent, large ones in parts.
//! - A blob that is read is fetched in parts, checked, and kept as a local copy (`cache`).
//! - The record of the log's end is local: it says what this server has seen.
//! - Checkpoints have numbers, each is put once, and the one with the highest number counts, so
//!   that a slow writer never replaces a newer one.
//! - A blob is removed only if it was sent [`UNNAMED_AGE`] ago: one that another server received a
//!   while ago may be named by a release that this server has not read. A release that names an
//!   older one sends it again before ([`Store::refresh`]).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::TryStreamExt;
use gristmill_core::Digest;
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart};

use crate::cache::Cache;
use crate::incoming::{PART_BYTES, Received};
use crate::leftovers::{self, Removed};
use crate::log::{document_key, number_in};
use crate::outgoing::Outgoing;
use crate::{BLOBS, INCOMING, LOG, Store, StoreError, blob_key};

/// How long ago a blob must have been sent, if it is to be removed.
const UNNAMED_AGE: Duration = Duration::from_secs(24 * 3600);

/// A release that names a blob that was sent longer ago than this sends it again.
const REFRESHED_AGE: Duration = Duration::from_secs(12 * 3600);

/// The bytes of a part that is fetched or sent. Larger parts need more memory, smaller ones more
/// calls.
const TRANSFER_BYTES: u64 = 8 << 20;

/// Parts that are sent side by side.
const PARTS_AT_ONCE: usize = 3;

/// The folder of checkpoints.
const CHECKPOINTS: &str = "checkpoints";

impl Store {
    /// Send a file as a blob, also if the store has it: then it counts as sent now.
    pub(crate) async fn keep_shared(
        &self,
        cache: &Cache,
        received: Received,
    ) -> Result<(), StoreError> {
        let digest = received.digest();
        let sending = Outgoing::begin(self.worker.clone(), received.path(), digest).await?;
        self.upload(sending).await?;
        self.add_copy(cache, received).await
    }

    async fn upload(&self, sending: Outgoing) -> Result<(), StoreError> {
        let key = blob_key(sending.digest());
        if sending.bytes() <= TRANSFER_BYTES {
            let (mut parts, mut next) = (Vec::new(), sending.next().await?);
            while let Some((part, rest)) = next {
                parts.push(part);
                next = rest.next().await?;
            }
            let put = self.objects.put(&key, PutPayload::from_iter(parts)).await;
            return put.map(|_| ()).map_err(StoreError::unreachable);
        }
        let upload = self.objects.put_multipart(&key).await.map_err(StoreError::unreachable)?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, TRANSFER_BYTES as usize);
        match send_parts(&mut upload, sending).await {
            Ok(()) => upload.finish().await.map(|_| ()).map_err(StoreError::unreachable),
            Err(error) => {
                // What stays of it, the store's own rules remove.
                let _ = upload.abort().await;
                Err(error)
            }
        }
    }

    /// Make a local copy of a blob.
    async fn add_copy(&self, cache: &Cache, received: Received) -> Result<(), StoreError> {
        let (digest, cache) = (received.digest(), cache.clone());
        let adding = move || {
            received.persist(cache.folder())?;
            cache.make_room(digest)
        };
        self.worker.run(adding).await.flatten().map_err(StoreError::write)
    }

    /// The blob, from its local copy if there is one.
    pub(crate) async fn blob_shared(
        &self,
        cache: &Cache,
        digest: Digest,
    ) -> Result<Bytes, StoreError> {
        if let Some(bytes) = self.copy_of(cache, digest).await? {
            return Ok(bytes);
        }
        let received = self.fetch(digest).await?;
        let bytes = received.read().await?;
        self.add_copy(cache, received).await?;
        Ok(bytes)
    }

    async fn copy_of(&self, cache: &Cache, digest: Digest) -> Result<Option<Bytes>, StoreError> {
        let cache = cache.clone();
        let read = self.worker.run(move || cache.read(digest)).await.flatten();
        Ok(read.map_err(StoreError::read)?.map(Bytes::from))
    }

    /// Begin to send a blob to a client.
    pub(crate) async fn send_shared(
        &self,
        cache: &Cache,
        digest: Digest,
    ) -> Result<Outgoing, StoreError> {
        let begin = || Outgoing::begin(self.worker.clone(), cache.path(digest), digest);
        match begin().await {
            Err(StoreError::Missing(_)) => {}
            begun => return begun,
        }
        let received = self.fetch(digest).await?;
        self.add_copy(cache, received).await?;
        begin().await
    }

    /// Fetch a blob, part by part.
    async fn fetch(&self, digest: Digest) -> Result<Received, StoreError> {
        let key = blob_key(digest);
        let ObjectMeta { size, .. } = self.head(digest).await?;
        let mut incoming = self.receive().await?;
        let mut at = 0;
        while at < size {
            let end = size.min(at + TRANSFER_BYTES);
            let part = self.objects.get_range(&key, at..end).await;
            let mut part = part.map_err(|error| self.no_blob(digest, error))?;
            if part.len() as u64 != end - at {
                return Err(StoreError::Damaged(digest));
            }
            while !part.is_empty() {
                incoming = incoming.write(part.split_to(part.len().min(PART_BYTES))).await?;
            }
            at = end;
        }
        let received = incoming.finish().await?;
        match received.digest() == digest {
            true => Ok(received),
            false => Err(StoreError::Damaged(digest)),
        }
    }

    pub(crate) async fn head(&self, digest: Digest) -> Result<ObjectMeta, StoreError> {
        let meta = self.objects.head(&blob_key(digest)).await;
        meta.map_err(|error| self.no_blob(digest, error))
    }

    /// Make sure that the blob stays in a shared store until a release that names it is read by
    /// all: one that is missing, or was sent long ago, is sent again. In a folder of one server
    /// nothing is to be done.
    ///
    /// # Errors
    /// [`StoreError::Missing`], or the store cannot be reached.
    pub async fn refresh(&self, digest: Digest) -> Result<(), StoreError> {
        let Some(cache) = &self.cache else { return Ok(()) };
        match self.head(digest).await {
            Ok(meta) if age_of(&meta) < REFRESHED_AGE => return Ok(()),
            Ok(_) | Err(StoreError::Missing(_)) => {}
            Err(error) => return Err(error),
        }
        let sending = self.send_shared(cache, digest).await?;
        self.upload(sending).await
    }

    /// Remove the blobs that were sent long ago and that `is_named` does not know, of a shared
    /// store. Uploads may be under way.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`]: some may be left.
    pub async fn remove_unnamed(
        &self,
        is_named: impl Fn(&Digest) -> bool + Send + 'static,
    ) -> Result<Removed, StoreError> {
        let mut removed = Removed::default();
        let mut blobs = self.objects.list(Some(&Key::from(BLOBS)));
        while let Some(blob) = blobs.try_next().await.map_err(StoreError::unreachable)? {
            let name = blob.location.filename().unwrap_or_default();
            let Ok(digest) = format!("sha256:{name}").parse::<Digest>() else { continue };
            if is_named(&digest) || age_of(&blob) < UNNAMED_AGE {
                continue;
            }
            // It may have been sent again since the list was made.
            match self.head(digest).await {
                Ok(meta) if age_of(&meta) >= UNNAMED_AGE => {}
                Ok(_) | Err(StoreError::Missing(_)) => continue,
                Err(error) => return Err(error),
            }
            let deleted = self.objects.delete(&blob_key(digest)).await;
            deleted.map_err(|error| self.no_blob(digest, error))?;
            tracing::info!(%digest, "removed a file that no release names");
            removed = removed.and(Removed { files: 1, bytes: blob.size });
        }
        Ok(removed)
    }

    /// Remove the files that did not arrive to their end before this process began.
    pub(crate) async fn remove_incoming(&self) -> Result<Removed, StoreError> {
        let folder = self.directory.clone();
        let removing = move || {
            let incoming = leftovers::remove_all(&folder.join(INCOMING))?;
            Ok(incoming.and(leftovers::remove_staged(&folder)?))
        };
        let removed: std::io::Result<_> =
            tokio::task::spawn_blocking(removing).await.map_err(StoreError::read)?;
        removed.map_err(StoreError::write)
    }

    /// The number of the first document behind `number`, in a shared store. None if `number` is the
    /// log's end.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`]
    pub async fn next_after(&self, number: u64) -> Result<Option<u64>, StoreError> {
        let (folder, offset) = (Key::from(LOG), document_key(number));
        let mut listed = self.objects.list_with_offset(Some(&folder), &offset);
        // A folder lists its files in any order.
        let mut first = None;
        while let Some(file) = listed.try_next().await.map_err(StoreError::unreachable)? {
            let next = number_in(LOG, &file.location).filter(|next| *next > number);
            first = [first, next].into_iter().flatten().min();
        }
        Ok(first)
    }

    pub(crate) async fn checkpoint_shared(&self) -> Result<Option<Bytes>, StoreError> {
        // It may be removed between the two calls: then there is a newer one.
        for _ in 0..3 {
            let Some(newest) = self.checkpoints().await?.pop() else { return Ok(None) };
            if let Some(checkpoint) = self.read(&checkpoint_key(newest)).await? {
                return Ok(Some(checkpoint));
            }
        }
        Err(StoreError::unreachable(std::io::Error::other("its checkpoints change all the time")))
    }

    /// The numbers of the checkpoints, in order.
    async fn checkpoints(&self) -> Result<Vec<u64>, StoreError> {
        let folder = Key::from(CHECKPOINTS);
        let listed = self.objects.list(Some(&folder));
        let number = |file: ObjectMeta| async move { Ok(number_in(CHECKPOINTS, &file.location)) };
        let numbers = listed.try_filter_map(number).try_collect::<Vec<_>>().await;
        let mut numbers = numbers.map_err(StoreError::unreachable)?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Put the checkpoint that stands for the documents up to `number`, and remove older ones.
    pub(crate) async fn put_checkpoint_shared(
        &self,
        number: u64,
        text: Bytes,
    ) -> Result<(), StoreError> {
        self.put(&checkpoint_key(number), text).await?;
        for old in self.checkpoints().await?.into_iter().filter(|old| *old < number) {
            self.delete(&checkpoint_key(old)).await?;
        }
        Ok(())
    }
}

async fn send_parts(upload: &mut WriteMultipart, sending: Outgoing) -> Result<(), StoreError> {
    let mut next = sending.next().await?;
    while let Some((part, rest)) = next {
        upload.wait_for_capacity(PARTS_AT_ONCE).await.map_err(StoreError::unreachable)?;
        upload.put(part);
        next = rest.next().await?;
    }
    Ok(())
}

fn checkpoint_key(number: u64) -> Key {
    Key::from(format!("{CHECKPOINTS}/{number:020}.json"))
}

/// How long ago an object was put, by this machine's clock. Clocks may differ by some minutes.
fn age_of(object: &ObjectMeta) -> Duration {
    let put = object.last_modified.timestamp_millis();
    let put = UNIX_EPOCH + Duration::from_millis(u64::try_from(put).unwrap_or_default());
    SystemTime::now().duration_since(put).unwrap_or_default()
}

#[cfg(test)]
mod tests;
