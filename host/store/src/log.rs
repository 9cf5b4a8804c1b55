//! The log's documents, the record of its end, and its checkpoint.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{ObjectStore, PutMode, PutOptions, PutPayload};
use tempfile::NamedTempFile;
use tokio::time::Instant;

use crate::incoming::temporary_file;
use crate::{LOG, Store, StoreError};

/// The file that records the log's end, beside the log's folder.
pub const LOG_END: &str = "log-end.json";

/// The file with the state after the releases that were removed. It lies beside the log's folder.
pub const CHECKPOINT: &str = "checkpoint.json";

/// The file with the state that a server of a shared store served last, beside the local copies.
const LAST_STATE: &str = "last-state.json";

/// After this time no further document of a call is sent to a shared store.
const SENDING_TIME: Duration = Duration::from_secs(2);

/// The content of the log's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogListing {
    /// The numbers of the documents, in order.
    pub numbers: Vec<u64>,
    /// Names of files that are not documents.
    pub foreign: Vec<String>,
}

impl Store {
    /// The content of the log's folder.
    ///
    /// # Errors
    /// [`StoreError::Read`] if the storage cannot be read.
    pub async fn log(&self) -> Result<LogListing, StoreError> {
        let mut listing = LogListing::default();
        let mut files = self.objects.list(Some(&Key::from(LOG)));
        while let Some(file) = files.try_next().await.map_err(|error| self.unread(error))? {
            match number_in(LOG, &file.location) {
                Some(number) => listing.numbers.push(number),
                None => listing.foreign.push(file.location.to_string()),
            }
        }
        listing.numbers.sort_unstable();
        listing.foreign.sort_unstable();
        Ok(listing)
    }

    /// The log's document `number`. None if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::Read`] if the storage cannot be read.
    pub async fn document(&self, number: u64) -> Result<Option<Bytes>, StoreError> {
        self.read(&document_key(number)).await
    }

    /// Append `documents`, of which the first gets the number `first`, which the caller found to be
    /// the next. Returns how many of them the log has now, from the first one on. If these are not
    /// all, another writer was first with the next number, the store is slow, or the next document
    /// cannot be written: read on, and make the changes again.
    ///
    /// # Errors
    /// [`StoreError::Write`], [`StoreError::Full`], [`StoreError::ReadOnly`] or
    /// [`StoreError::Unreachable`]. Then it is unknown how many the log has, and whether they are
    /// on stable storage: read the log again.
    pub async fn append(&self, first: u64, documents: Vec<Bytes>) -> Result<usize, StoreError> {
        let appended = match self.is_shared() {
            true => self.append_shared(first, documents).await?,
            false => self.append_local(first, documents).await?,
        };
        self.faults.after_append().map(|()| appended)
    }

    async fn append_shared(&self, first: u64, documents: Vec<Bytes>) -> Result<usize, StoreError> {
        let (mut appended, begun) = (0, Instant::now());
        for (number, document) in (first..).zip(documents) {
            if begun.elapsed() > SENDING_TIME {
                break;
            }
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            let payload = PutPayload::from_bytes(document);
            match self.objects.put_opts(&document_key(number), payload, options).await {
                Ok(_) => appended += 1,
                Err(object_store::Error::AlreadyExists { .. }) => break,
                Err(error) => return Err(self.unwritten(error)),
            }
        }
        Ok(appended)
    }

    /// Each file is on stable storage before it gets its name, so that a log never has a part of a
    /// document. The names are given in order, and the folder is synced once: a killed process
    /// leaves no gap. After a power failure there is none if the file system keeps the order of
    /// names in a folder, as those with a journal do.
    async fn append_local(&self, first: u64, documents: Vec<Bytes>) -> Result<usize, StoreError> {
        let (directory, faults) = (self.directory.clone(), self.faults.clone());
        let appending = move || {
            let log = directory.join(LOG);
            if !log.is_dir() {
                fs::create_dir_all(&log)?;
                File::open(&directory)?.sync_all()?;
            }
            let mut files = Vec::new();
            for (number, document) in (first..).zip(&documents) {
                let staged = faults.before_document(number);
                match staged.and_then(|()| staged_in(&log, number, document)) {
                    Ok(file) => files.push(file),
                    Err(error) if files.is_empty() => return Err(error),
                    // It may have been too large. Those before it need not suffer from that.
                    Err(_) => break,
                }
            }
            let mut appended = 0;
            for (number, file) in (first..).zip(files) {
                match file.persist_noclobber(log.join(document_name(number))) {
                    Ok(_) => appended += 1,
                    Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => break,
                    Err(error) if appended == 0 => return Err(error.error),
                    Err(_) => break,
                }
            }
            File::open(&log)?.sync_all()?;
            Ok(appended)
        };
        let appended = tokio::task::spawn_blocking(appending).await.map_err(StoreError::write)?;
        appended.map_err(StoreError::write)
    }

    /// Sync the log's document `number`, and the folder's entries of all before it, to stable
    /// storage. A shared store has done that.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn sync_document(&self, number: u64) -> Result<(), StoreError> {
        match self.is_shared() {
            true => Ok(()),
            false => self.sync(LOG, document_name(number)).await,
        }
    }

    /// The record of the log's end. None if there is no record. That of a shared log is local: it
    /// says what this server has seen.
    ///
    /// # Errors
    /// [`StoreError::Read`] if the storage cannot be read.
    pub async fn log_end(&self) -> Result<Option<Bytes>, StoreError> {
        self.read_local(LOG_END).await
    }

    /// Record the log's end.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn put_log_end(&self, text: Bytes) -> Result<(), StoreError> {
        self.put_local(LOG_END, text).await
    }

    /// The state that this server of a shared store served last. None if there is no record.
    ///
    /// # Errors
    /// [`StoreError::Read`] if the disk cannot be read.
    pub async fn last_state(&self) -> Result<Option<Bytes>, StoreError> {
        self.read_local(LAST_STATE).await
    }

    /// Record the state that this server serves, on the local disk.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn put_last_state(&self, text: Bytes) -> Result<(), StoreError> {
        self.put_local(LAST_STATE, text).await
    }

    /// The checkpoint. None if there is none.
    ///
    /// # Errors
    /// [`StoreError::Read`] if the storage cannot be read.
    pub async fn checkpoint(&self) -> Result<Option<Bytes>, StoreError> {
        match self.is_shared() {
            true => self.checkpoint_shared().await,
            false => self.read(&Key::from(CHECKPOINT)).await,
        }
    }

    /// Replace the checkpoint by the one that stands for the documents up to `number`. It is on
    /// stable storage when this returns. A newer one of a shared store stays.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn put_checkpoint(&self, number: u64, text: Bytes) -> Result<(), StoreError> {
        match self.is_shared() {
            true => self.put_checkpoint_shared(number, text).await,
            false => self.put(&Key::from(CHECKPOINT), text).await,
        }
    }

    /// Remove the log's document `number`, which a checkpoint stands for. It need not exist.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn remove_document(&self, number: u64) -> Result<(), StoreError> {
        self.delete(&document_key(number)).await.map(drop)
    }
}

/// Documents of this process that were staged.
static STAGED: AtomicU64 = AtomicU64::new(0);

/// A document on stable storage that has not got its name. Its temporary name is of the kind that
/// `object_store` uses, too.
fn staged_in(log: &Path, number: u64, document: &[u8]) -> io::Result<NamedTempFile> {
    let staged = STAGED.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}#{staged}", document_name(number));
    let mut file = temporary_file().prefix(&name).rand_bytes(0).tempfile_in(log)?;
    file.write_all(document)?;
    file.as_file().sync_all()?;
    Ok(file)
}

pub(crate) fn document_key(number: u64) -> Key {
    Key::from(format!("{LOG}/{}", document_name(number)))
}

fn document_name(number: u64) -> String {
    format!("{number:020}.json")
}

/// The number of a document in `folder`.
pub(crate) fn number_in(folder: &str, key: &Key) -> Option<u64> {
    let number = key.filename()?.strip_suffix(".json")?.parse().ok()?;
    (Key::from(format!("{folder}/{}", document_name(number))) == *key).then_some(number)
}
