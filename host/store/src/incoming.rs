//! Arriving files: written to a temporary file and hashed piece by piece, so that even a large file
//! takes little memory.

use std::fs::{self, File, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use gristmill_core::Digest;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::StoreError;
use crate::worker::Worker;

/// The bytes that are gathered before they are handed to the thread that writes.
pub(crate) const PART_BYTES: usize = 256 << 10;

/// A file that is arriving. It is removed when this is dropped.
pub struct Incoming {
    worker: Worker,
    begun: Begun,
    gathered: Vec<Bytes>,
    gathered_len: usize,
}

/// The part of a file that has arrived.
struct Begun {
    temporary: Temporary,
    hash: Sha256,
    len: u64,
}

/// A place in an arriving file to which it can go back.
#[derive(Clone)]
pub struct Mark {
    hash: Sha256,
    len: u64,
}

impl Mark {
    /// The bytes before it.
    pub fn bytes(&self) -> u64 {
        self.len
    }
}

/// A file that has arrived. It is removed when this is dropped, unless a store has kept it.
pub struct Received {
    temporary: Temporary,
    digest: Digest,
    len: u64,
}

/// A temporary file. Removing a large one takes time, so the worker does it, not the owner.
struct Temporary {
    worker: Worker,
    /// None once it was moved to its place.
    file: Option<NamedTempFile>,
}

/// Makes temporary files with the permissions of ordinary files. What a killed process leaves of
/// them, the next start removes.
pub(crate) fn temporary_file<'a, 'b>() -> tempfile::Builder<'a, 'b> {
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(0o666));
    builder
}

impl Begun {
    fn new(worker: Worker, folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let file = temporary_file().tempfile_in(folder)?;
        Ok(Self { temporary: Temporary { worker, file: Some(file) }, hash: Sha256::new(), len: 0 })
    }

    fn write(mut self, pieces: &[Bytes]) -> io::Result<Self> {
        let file = self.temporary.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        for piece in pieces {
            file.write_all(piece)?;
            self.hash.update(piece);
            self.len += piece.len() as u64;
        }
        Ok(self)
    }
}

impl Begun {
    fn go_back(mut self, mark: Mark) -> io::Result<Self> {
        let file = self.temporary.file.as_mut().ok_or(io::ErrorKind::NotFound)?.as_file_mut();
        file.set_len(mark.len)?;
        file.seek(io::SeekFrom::Start(mark.len))?;
        Ok(Self { temporary: self.temporary, hash: mark.hash, len: mark.len })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            self.worker.spawn(move || drop(file));
        }
    }
}

impl Incoming {
    pub(crate) async fn begin(worker: Worker, folder: PathBuf) -> io::Result<Self> {
        let writer = worker.clone();
        let begun = worker.run(move || Begun::new(writer, &folder)).await??;
        Ok(Self { worker, begun, gathered: Vec::new(), gathered_len: 0 })
    }

    /// Add a piece.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
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

    /// Write out all pieces, and mark this place.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn mark(self) -> Result<(Self, Mark), StoreError> {
        let written = self.flush().await?;
        let Begun { hash, len, .. } = &written.begun;
        let mark = Mark { hash: hash.clone(), len: *len };
        Ok((written, mark))
    }

    /// Drop all that arrived after the mark.
    ///
    /// # Errors
    /// [`StoreError::Write`]
    pub async fn go_back(self, mark: Mark) -> Result<Self, StoreError> {
        let Self { worker, begun, .. } = self;
        let gone_back = worker.run(move || begun.go_back(mark)).await;
        let begun = gone_back.flatten().map_err(StoreError::write)?;
        Ok(Self { worker, begun, gathered: Vec::new(), gathered_len: 0 })
    }

    /// End the file after its last piece.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn finish(self) -> Result<Received, StoreError> {
        let Begun { temporary, hash, len } = self.flush().await?.begun;
        Ok(Received { temporary, digest: Digest::from_bytes(hash.finalize().into()), len })
    }
}

impl Received {
    /// The SHA-256 of its bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The number of its bytes.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of its bytes.
    ///
    /// # Errors
    /// [`StoreError::Read`] if the storage cannot be read.
    pub async fn read(&self) -> Result<Bytes, StoreError> {
        let path = self.path();
        let read = self.temporary.worker.run(move || fs::read(path)).await;
        read.flatten().map(Bytes::from).map_err(StoreError::read)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.temporary.file.as_ref().map(|file| file.path().to_owned()).unwrap_or_default()
    }

    /// Move it to its place, on stable storage. Blocks the thread.
    pub(crate) fn persist(mut self, folder: &Path) -> io::Result<()> {
        let file = self.temporary.file.take().ok_or(io::ErrorKind::NotFound)?;
        file.as_file().sync_all()?;
        if !folder.is_dir() {
            fs::create_dir_all(folder)?;
            folder.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())?;
        }
        file.persist(folder.join(self.digest.hex())).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    }
}
