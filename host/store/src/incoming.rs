//! Files on their way in: written aside and hashed piece by piece, so that one that arrives takes
//! little memory, however large it is.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use gristmill_core::Digest;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::StoreError;
use crate::worker::Worker;

/// How much is gathered before it is handed to the thread that writes.
const PART_BYTES: usize = 256 << 10;

/// A file of which more is to come. Nothing of it stays once this is dropped.
pub struct Incoming {
    worker: Worker,
    begun: Begun,
    gathered: Vec<Bytes>,
    gathered_len: usize,
}

/// What of a file is there.
struct Begun {
    aside: Aside,
    hash: Sha256,
    len: u64,
}

/// A file that has arrived. It is removed once this is dropped, unless a store has kept it.
pub struct Received {
    aside: Aside,
    digest: Digest,
    len: u64,
}

/// A file that has no place yet. To remove a large one takes time, which is not its owner's.
struct Aside {
    worker: Worker,
    /// None once it has its place.
    file: Option<NamedTempFile>,
}

impl Begun {
    fn new(worker: Worker, folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        // Its name is its own, its permissions are those of other files.
        let mut builder = tempfile::Builder::new();
        let file = builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
        Ok(Self { aside: Aside { worker, file: Some(file) }, hash: Sha256::new(), len: 0 })
    }

    fn write(mut self, pieces: &[Bytes]) -> io::Result<Self> {
        let file = self.aside.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        for piece in pieces {
            file.write_all(piece)?;
            self.hash.update(piece);
            self.len += piece.len() as u64;
        }
        Ok(self)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            self.worker.spawn(move || drop(file));
        }
    }
}

impl Incoming {
    pub(crate) async fn begin(worker: Worker, folder: PathBuf) -> io::Result<Self> {
        let own = worker.clone();
        let begun = worker.run(move || Begun::new(own, &folder)).await??;
        Ok(Self { worker, begun, gathered: Vec::new(), gathered_len: 0 })
    }

    /// Add a piece. Not to be called again after an error.
    pub async fn write(mut self, piece: Bytes) -> Result<Self, StoreError> {
        self.gathered_len += piece.len();
        self.gathered.push(piece);
        if self.gathered_len < PART_BYTES { Ok(self) } else { self.flush().await }
    }

    async fn flush(self) -> Result<Self, StoreError> {
        let Self { worker, begun, gathered, .. } = self;
        let written = worker.run(move || begun.write(&gathered)).await;
        let begun = written.flatten().map_err(StoreError::write)?;
        Ok(Self { worker, begun, gathered: Vec::new(), gathered_len: 0 })
    }

    /// All of it is there.
    pub async fn finish(self) -> Result<Received, StoreError> {
        let Begun { aside, hash, len } = self.flush().await?.begun;
        Ok(Received { aside, digest: Digest::from_bytes(hash.finalize().into()), len })
    }
}

impl Received {
    /// The SHA-256 of its bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of its bytes.
    pub async fn read(&self) -> Result<Bytes, StoreError> {
        let path = self.aside.file.as_ref().map(|file| file.path().to_owned()).unwrap_or_default();
        let read = self.aside.worker.run(move || fs::read(path)).await;
        read.flatten().map(Bytes::from).map_err(StoreError::read)
    }

    /// Give it its place, on stable storage. Blocks the thread.
    pub(crate) fn persist(mut self, folder: &Path) -> io::Result<()> {
        let file = self.aside.file.take().ok_or(io::ErrorKind::NotFound)?;
        file.as_file().sync_all()?;
        if !folder.is_dir() {
            fs::create_dir_all(folder)?;
            folder.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())?;
        }
        file.persist(folder.join(self.digest.hex())).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    }
}
