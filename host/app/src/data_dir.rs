//! The data directory, which one server at a time holds.
//!
//! The lock is the operating system's, on the file `lock`, so it ends with the process in every
//! case. The file names the process that holds it.
//!
//! With a shared store the lock guards the copies of blobs, the compiled code and the server's
//! name.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use gristmill_core::Name;
use tempfile::NamedTempFile;

const LOCK: &str = "lock";

/// The file with the name of this server, if the configuration has none.
const REPLICA_NAME: &str = "replica-name";

/// The lock of a data directory. It must live as long as the server.
#[derive(Debug)]
pub(crate) struct Held {
    _lock: File,
}

/// Make the directory if it is missing, and lock it.
///
/// # Errors
/// Another server holds it, or the directory cannot be made.
pub(crate) fn lock(data_dir: &Path) -> Result<Held> {
    let place = || format!("data_dir {}", data_dir.display());
    fs::create_dir_all(data_dir).with_context(place)?;
    let mut lock = open(data_dir).with_context(place)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => bail!(
            "data_dir {} is in use by {}: stop that server, or choose another directory with \
             --data-dir",
            data_dir.display(),
            holder(&mut lock)
        ),
        Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {
            tracing::warn!(
                %error,
                "the data directory cannot be locked: make sure that only one server uses it"
            );
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(place),
    }
    let write = |lock: &mut File| {
        lock.set_len(0)?;
        lock.rewind()?;
        writeln!(lock, "{}", std::process::id())
    };
    write(&mut lock).with_context(place)?;
    Ok(Held { _lock: lock })
}

/// The name of this server among those that share a store. It is made once.
///
/// # Errors
/// The file with it cannot be read or written, or is damaged.
pub(crate) fn replica_name(data_dir: &Path) -> Result<Name> {
    let path = data_dir.join(REPLICA_NAME);
    let place = || path.display().to_string();
    match fs::read_to_string(&path) {
        Ok(text) => return text.trim().parse().with_context(place),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(place),
    }
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).context("cannot read randomness for the name of the server")?;
    let name = format!("replica-{:08x}", u32::from_le_bytes(bytes));
    keep_secret(data_dir, REPLICA_NAME, &name).with_context(place)?;
    Ok(name.parse()?)
}

/// The process that holds the directory, if one does.
pub(crate) fn held_by(data_dir: &Path) -> Option<String> {
    let mut lock = File::open(data_dir.join(LOCK)).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(holder(&mut lock)),
        _ => None,
    }
}

/// Write a file that only its owner may read, whole or not at all.
pub(crate) fn keep_secret(data_dir: &Path, name: &str, line: &str) -> std::io::Result<()> {
    for leftover in fs::read_dir(data_dir)?.flatten().filter(|entry| is_leftover(entry, name)) {
        let _ = fs::remove_file(leftover.path());
    }
    let mut file = NamedTempFile::with_prefix_in(name, data_dir)?;
    writeln!(file, "{line}")?;
    file.as_file().sync_all()?;
    file.persist(data_dir.join(name))?;
    File::open(data_dir)?.sync_all()
}

/// Whether this file is from a process that was killed while it wrote the secret `name`. It has
/// this name and six letters and digits.
fn is_leftover(entry: &fs::DirEntry, name: &str) -> bool {
    let file = entry.file_name();
    let suffix = file.to_str().and_then(|file| file.strip_prefix(name));
    let is_temporary =
        |suffix: &str| suffix.len() == 6 && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric());
    suffix.is_some_and(is_temporary) && entry.file_type().is_ok_and(|kind| kind.is_file())
}

fn open(data_dir: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true).open(data_dir.join(LOCK))
}

fn holder(lock: &mut File) -> String {
    let mut text = String::new();
    // A process id. Any other content is ignored.
    let _ = lock.take(32).read_to_string(&mut text);
    match text.trim().parse::<u32>() {
        Ok(id) => format!("process {id}"),
        Err(_) => "another process".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_held_once_and_says_by_whom() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().join("data");
        let held = lock(&data_dir).unwrap();
        let process = format!("process {}", std::process::id());
        let error = lock(&data_dir).unwrap_err().to_string();
        assert!(error.contains(&format!("is in use by {process}")), "{error}");
        assert_eq!(held_by(&data_dir), Some(process));
        drop(held);
        assert_eq!(held_by(&data_dir), None);
        lock(&data_dir).unwrap();
    }
}
