//! Blobs as files of this machine, for what maps them into memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gristmill_core::Digest;

use crate::cache::InUse;
use crate::outgoing::Outgoing;
use crate::{BLOBS, Store, StoreError};

/// A blob as a file of this machine. While this is held, a copy of a shared store's blob does not
/// make room for others.
pub struct BlobFile {
    path: PathBuf,
    digest: Digest,
    bytes: u64,
    _in_use: Option<InUse>,
}

impl BlobFile {
    /// Its absolute path. Nothing writes to the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Store {
    /// The blob of this name, fetched if the store is shared and this machine has no copy. Its
    /// content is not [checked](Self::check).
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Read`], or the store cannot be reached.
    pub async fn file(&self, digest: Digest) -> Result<BlobFile, StoreError> {
        let (in_use, bytes, path) = match &self.cache {
            Some(cache) => {
                let in_use = cache.hold(digest);
                let bytes = self.send_shared(cache, digest).await?.bytes();
                (Some(in_use), bytes, cache.path(digest))
            }
            None => (None, self.blob_bytes(digest).await?, self.blob_path(digest)),
        };
        let path = std::path::absolute(path).map_err(StoreError::read)?;
        Ok(BlobFile { path, digest, bytes, _in_use: in_use })
    }

    /// The first `len` bytes of the file, or all if it is shorter.
    ///
    /// # Errors
    /// [`StoreError::Read`]
    pub async fn start_of(&self, file: &BlobFile, len: usize) -> Result<Vec<u8>, StoreError> {
        let path = file.path.clone();
        let reading = move || {
            let mut start = Vec::new();
            File::open(path)?.take(len as u64).read_to_end(&mut start)?;
            io::Result::Ok(start)
        };
        self.worker.run(reading).await.flatten().map_err(StoreError::read)
    }

    /// Check that the blob of this name is there and whole, without reading it into memory. Returns
    /// its length.
    ///
    /// # Errors
    /// As for [`Self::file`] and [`Self::check`].
    pub async fn check_blob(&self, digest: Digest) -> Result<u64, StoreError> {
        let file = self.file(digest).await?;
        self.check(&file).await?;
        Ok(file.bytes())
    }

    /// Check that the file has the content of its digest. A damaged copy of a shared store's blob
    /// is replaced.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Read`], or the store cannot be reached.
    pub async fn check(&self, file: &BlobFile) -> Result<(), StoreError> {
        match (self.read_through(file).await, &self.cache) {
            (Err(StoreError::Damaged(digest)), Some(cache)) => {
                tracing::warn!(%digest, "a damaged copy of a blob is fetched again");
                let path = cache.path(digest);
                let removing = move || std::fs::remove_file(path);
                self.worker.run(removing).await.flatten().map_err(StoreError::read)?;
                self.send_shared(cache, digest).await.map(drop)
            }
            (read, _) => read,
        }
    }

    /// Read the file part by part, so that other work on files comes in between.
    async fn read_through(&self, file: &BlobFile) -> Result<(), StoreError> {
        let reading = Outgoing::begin(self.worker.clone(), file.path.clone(), file.digest);
        let mut next = reading.await?.next().await?;
        while let Some((_, rest)) = next {
            next = rest.next().await?;
        }
        Ok(())
    }

    pub(crate) fn blob_path(&self, digest: Digest) -> PathBuf {
        self.directory.join(BLOBS).join(digest.hex())
    }
}
