//! Compiled code, cached on disk by the component's digest and the engine's compatibility hash.
//!
//! A cached file is the compiler's answer (`compile`), followed by a keyed checksum over all of it.
//! The key was made in this cache directory. A program that can write to the directory can run
//! native code in the host, so uploaded files are never written there. The checksum protects
//! against damage, files under a wrong name, and files from other machines.
//!
//! Invariants:
//! - a file under its final name is complete: it is written under a unique temporary name, synced
//!   and renamed. It is never written again; another file may be renamed over it;
//! - code is mapped from the open file that was verified, not by its name.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_core::Digest;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use rustix::mm::{Advice, madvise};
use sha2::Sha256;
use tempfile::NamedTempFile;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compile::{About, CompileRequest, compile_config, hash_of, read_answer};
use crate::load_error::LoadError;
use crate::mapped::deserialize;
use crate::rewind::FirstContent;

/// The extension of a cached file.
const EXTENSION: &str = "code";

/// The extension of a file that is being written.
const TEMPORARY: &str = ".tmp";

/// The file that is locked while a directory is in use.
const LOCK: &str = "in-use";

/// The bytes of the checksum, the last ones of a file.
const CHECKSUM_BYTES: u64 = 32;

/// What is read at once.
const READ_BYTES: usize = 256 << 10;

/// The smallest page of the processors that this host runs on.
const PAGE_BYTES: usize = 4096;

/// What is entered into the page table at once: meanwhile no other thread of this process can map
/// or unmap memory.
const POPULATE_BYTES: usize = 256 << 10;

pub(crate) struct ArtifactCache {
    directory: PathBuf,
    /// The hash of the engine that the code is for.
    engine: String,
    key: [u8; 32],
    /// The plugins found that were loaded into a runtime which this server has no more.
    of_other_runtimes: Mutex<HashSet<Digest>>,
    /// Locked shared while this cache is open, so that no other process removes the directory.
    _in_use: File,
}

impl ArtifactCache {
    /// The cache for this engine's code under `root`, without what earlier processes left behind.
    pub(crate) fn open(root: &Path, engine: &Engine) -> io::Result<Self> {
        let engine = hash_of(engine);
        // A child that opens a file by its path has another working directory.
        let root = &std::path::absolute(root)?;
        let directory = root.join(&engine);
        let in_use = use_directory(&directory)?;
        remove_other_engines(root, &directory);
        let key = key_in(root, &directory)?;
        let of_other_runtimes = Mutex::default();
        Ok(Self { directory, engine, key, of_other_runtimes, _in_use: in_use })
    }

    /// The hash of the engine that the code is for.
    pub(crate) fn engine(&self) -> &str {
        &self.engine
    }

    /// The component's code, if it is cached and undamaged.
    pub(crate) fn get(&self, engine: &Engine, wanted: &CompileRequest) -> Option<Cached> {
        let file = match File::open(self.path(wanted.digest)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(digest = %wanted.digest, %error, "compiled code cannot be read");
                return None;
            }
        };
        match self.map(engine, wanted, &file) {
            Ok(cached) => Some(cached),
            Err(LoadError::OtherRuntime) => {
                // Whoever loads it asks again while the runtime is prepared, and after a failure.
                if self.of_other_runtimes.lock().insert(wanted.digest) {
                    let digest = wanted.digest;
                    tracing::info!(%digest, "the runtime is another one, loading anew");
                }
                None
            }
            Err(error) => {
                // A damaged disk, or a file that another host made.
                let why = error.in_full();
                tracing::warn!(digest = %wanted.digest, why, "compiled code unusable, compiling anew");
                None
            }
        }
    }

    /// How many sources [`get`](Self::get) found that were loaded into another runtime.
    pub(crate) fn of_other_runtimes(&self) -> u64 {
        self.of_other_runtimes.lock().len() as u64
    }

    /// A temporary file for an answer. It is removed when it is dropped, unless it is
    /// [kept](Self::keep).
    pub(crate) fn temporary(&self) -> io::Result<NamedTempFile> {
        temporary_in(&self.directory)
    }

    /// Check the answer, give it its checksum and its final name, and map it.
    pub(crate) fn keep(
        &self,
        engine: &Engine,
        wanted: &CompileRequest,
        mut temporary: NamedTempFile,
    ) -> Result<Cached, LoadError> {
        read_answer(temporary.as_file(), 0, wanted)?;
        let len = temporary.as_file().metadata()?.len();
        let checksum = self.checksum(temporary.as_file(), len)?;
        temporary.as_file_mut().seek(io::SeekFrom::End(0))?;
        temporary.as_file_mut().write_all(&checksum.finalize().into_bytes())?;
        temporary.as_file().sync_all()?;
        // Opened again for reading only, so that no open file can write to the mapped code.
        let file = File::open(temporary.path())?;
        temporary.persist(self.path(wanted.digest)).map_err(|error| error.error)?;
        File::open(&self.directory)?.sync_all()?;
        self.map(engine, wanted, &file)
    }

    /// The length of the file with the component's code; 0 if there is none.
    pub(crate) fn bytes_of(&self, digest: Digest) -> u64 {
        fs::metadata(self.path(digest)).map_or(0, |about| about.len())
    }

    /// Remove the code of this component, if there is some.
    pub(crate) fn remove(&self, digest: Digest) {
        remove(&self.path(digest));
    }

    /// Remove the code of all components for which `is_needed` is false.
    pub(crate) fn retain(&self, is_needed: impl Fn(Digest) -> bool) -> io::Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            let is_code = path.extension().is_some_and(|extension| extension == EXTENSION);
            if is_code && !digest_in(&path).is_some_and(&is_needed) {
                remove(&path);
            }
        }
        Ok(())
    }

    /// Where the code of this component is.
    pub(crate) fn path(&self, digest: Digest) -> PathBuf {
        self.directory.join(file_name(digest))
    }

    /// Verify the open file and map it.
    fn map(
        &self,
        engine: &Engine,
        wanted: &CompileRequest,
        mut file: &File,
    ) -> Result<Cached, LoadError> {
        let wrong = |why: &str| LoadError::from(io::Error::other(why.to_owned()));
        let len = file.metadata()?.len().checked_sub(CHECKSUM_BYTES);
        let len = len.ok_or_else(|| wrong("it is too short"))?;
        let checksum = self.checksum(file, len)?;
        let mut noted = [0; CHECKSUM_BYTES as usize];
        file.read_exact(&mut noted)?;
        if checksum.verify_slice(&noted).is_err() {
            return Err(wrong("its checksum does not match"));
        }
        let about = read_answer(file, CHECKSUM_BYTES, wanted)?;
        let component = deserialize(engine, file).map_err(|error| match can_be_mapped(file) {
            true => LoadError::OverLimits(error),
            false => wrong(&format!("it cannot be mapped: {error:#}")),
        })?;
        populate(&component);
        let first_content = match (about.content, about.memory_bytes) {
            (Some(place), Some(bytes)) => FirstContent::of(&component, place, bytes)?,
            _ => None,
        };
        Ok(Cached { component, about, first_content })
    }

    /// The checksum of the first `len` bytes, after which the file stands then.
    fn checksum(&self, mut file: &File, len: u64) -> io::Result<Hmac<Sha256>> {
        file.rewind()?;
        hmac(&self.key, &mut file, len)
    }
}

/// Mapped code, and the properties of its component.
pub(crate) struct Cached {
    pub(crate) component: Component,
    pub(crate) about: About,
    /// For a plugin whose guests can be rewound.
    pub(crate) first_content: Option<Arc<FirstContent>>,
}

/// Enter the pages of the code into the page table now. Otherwise the first call would do it, page
/// by page. The pages are in memory already, because the checksum was just computed; until the
/// kernel evicts them they count as resident in this process.
#[allow(unsafe_code, reason = "the system call takes a pointer")]
fn populate(component: &Component) {
    let code = component.text().as_ptr_range();
    let mut piece = code.start.map_addr(|address| address & !(PAGE_BYTES - 1)).cast_mut();
    while piece.cast_const() < code.end {
        let len = POPULATE_BYTES.min(code.end.addr() - piece.addr());
        // SAFETY: the advice changes no content, and the component keeps the range mapped.
        if let Err(error) = unsafe { madvise(piece.cast(), len, Advice::LinuxPopulateRead) } {
            tracing::debug!(%error, "the pages of a plugin's code are not entered beforehand");
            return;
        }
        piece = piece.wrapping_add(len);
    }
}

/// The key's HMAC-SHA-256 of a message, which has `len` bytes.
fn hmac(key: &[u8; 32], message: &mut impl Read, len: u64) -> io::Result<Hmac<Sha256>> {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).map_err(io::Error::other)?;
    let (mut buffer, mut left) = (vec![0; READ_BYTES], len);
    while left > 0 {
        let part = &mut buffer[..left.min(READ_BYTES as u64) as usize];
        message.read_exact(part)?;
        hmac.update(part);
        left -= part.len() as u64;
    }
    Ok(hmac)
}

/// Whether an engine without limits can map the file.
fn can_be_mapped(file: &File) -> bool {
    Engine::new(&compile_config()).is_ok_and(|engine| deserialize(&engine, file).is_ok())
}

fn file_name(digest: Digest) -> String {
    format!("{}.{EXTENSION}", digest.hex())
}

/// The digest in the name of a file. None if [`file_name`] does not give such a name.
fn digest_in(path: &Path) -> Option<Digest> {
    let digest = format!("sha256:{}", path.file_stem()?.to_str()?).parse().ok()?;
    (path.file_name()?.to_str()? == file_name(digest)).then_some(digest)
}

fn temporary_in(directory: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().suffix(TEMPORARY).tempfile_in(directory)
}

fn lock_file(directory: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(directory.join(LOCK))
}

/// Make the directory and mark it as in use while the returned file is open. The first process that
/// uses it removes the leftovers of processes that were killed.
fn use_directory(directory: &Path) -> io::Result<File> {
    loop {
        fs::create_dir_all(directory)?;
        let lock = match lock_file(directory) {
            // Another process has just removed the directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        if lock.try_lock().is_ok() {
            remove_leftovers(directory);
            lock.unlock()?;
        }
        lock.lock_shared()?;
        let named = fs::metadata(directory.join(LOCK));
        let locked = lock.metadata()?;
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (locked.dev(), locked.ino())) {
            return Ok(lock);
        }
    }
}

/// Remove incomplete files of processes that were killed, and files of earlier versions.
fn remove_leftovers(directory: &Path) {
    for path in entries(directory) {
        let name = path.to_string_lossy();
        if name.ends_with(TEMPORARY) || name.ends_with(".cwasm") {
            remove(&path);
        }
    }
}

/// Remove the directories of engines that no process uses.
fn remove_other_engines(root: &Path, engine_directory: &Path) {
    for path in entries(root) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_engines = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if path == engine_directory || !is_engines || !path.is_dir() {
            continue;
        }
        let Ok(lock) = lock_file(&path) else { continue };
        if lock.try_lock().is_err() {
            continue;
        }
        match fs::remove_dir_all(&path) {
            Ok(()) => tracing::info!(path = %path.display(), "removed another engine's code"),
            Err(error) => tracing::warn!(path = %path.display(), %error, "cannot be removed"),
        }
    }
}

/// The key of the cache under `root`. The first process that needs it makes it, in `directory`.
fn key_in(root: &Path, directory: &Path) -> io::Result<[u8; 32]> {
    let path = root.join("key");
    loop {
        match fs::read(&path) {
            Ok(bytes) => {
                if let Ok(key) = bytes.try_into() {
                    return Ok(key);
                }
                tracing::warn!("the key of the compiled code is damaged: compiling anew");
                fs::remove_file(&path)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        // Only its owner can read it, like all temporary files.
        let mut file = temporary_in(directory)?;
        file.write_all(&key)?;
        file.as_file().sync_all()?;
        match file.persist_noclobber(&path) {
            Ok(_) => return Ok(key),
            // Another process was first, so its key is used.
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.error),
        }
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "cannot be removed");
        }
        _ => tracing::debug!(path = %path.display(), "removed"),
    }
}

#[cfg(test)]
mod tests;
