//! Blobs that are sent: read and hashed part by part, so that even a large one takes little memory.
//!
//! Invariant: the last part is given out only if all bytes have the blob's digest. So a damaged
//! blob never looks like a whole one.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use bytes::Bytes;
use gristmill_core::Digest;
use sha2::{Digest as _, Sha256};

use crate::StoreError;
use crate::worker::Worker;

/// The bytes of one part.
const PART_BYTES: u64 = 256 << 10;

/// A blob that is being sent.
pub struct Outgoing {
    worker: Worker,
    digest: Digest,
    len: u64,
    /// None after the last part.
    rest: Option<Rest>,
}

/// The part of the blob that was not read yet.
struct Rest {
    file: File,
    hash: Sha256,
    left: u64,
}

impl Outgoing {
    pub(crate) async fn begin(
        worker: Worker,
        path: PathBuf,
        digest: Digest,
    ) -> Result<Self, StoreError> {
        let opening = move || {
            let file = File::open(path)?;
            let len = file.metadata()?.len();
            io::Result::Ok((file, len))
        };
        let (file, len) =
            worker.run(opening).await.flatten().map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => StoreError::Missing(digest),
                _ => StoreError::read(error),
            })?;
        let rest = Some(Rest { file, hash: Sha256::new(), left: len });
        Ok(Self { worker, digest, len, rest })
    }

    /// The blob's digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The bytes of the whole blob.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// The next part, at most 256 KiB, and the rest of the blob. None after the last part.
    ///
    /// # Errors
    /// [`StoreError::Read`], or [`StoreError::Damaged`] in place of the last part.
    pub async fn next(mut self) -> Result<Option<(Bytes, Self)>, StoreError> {
        let Some(rest) = self.rest.take() else { return Ok(None) };
        let read = self.worker.run(move || rest.read()).await.flatten();
        let (part, rest) = read.map_err(StoreError::read)?;
        if rest.left > 0 {
            self.rest = Some(rest);
        } else if Digest::from_bytes(rest.hash.finalize().into()) != self.digest {
            return Err(StoreError::Damaged(self.digest));
        }
        Ok(Some((part, self)))
    }
}

impl Rest {
    /// Read one part. A file that became shorter is an error.
    fn read(mut self) -> io::Result<(Bytes, Self)> {
        let mut part = vec![0; self.left.min(PART_BYTES) as usize];
        self.file.read_exact(&mut part)?;
        self.hash.update(&part);
        self.left -= part.len() as u64;
        Ok((part.into(), self))
    }
}
