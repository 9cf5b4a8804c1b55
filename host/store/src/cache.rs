//! The local copies of blobs of a shared store, in a folder of this server. Copies that were used
//! longest ago make room for new ones.
//!
//! Invariant: a copy that is read has the digest by which it was requested; a damaged one is
//! removed and fetched again.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use gristmill_core::Digest;
use parking_lot::Mutex;

/// The copies.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    bytes_max: u64,
    /// The copies that must not make room, and how many hold each.
    in_use: Arc<Mutex<HashMap<Digest, usize>>>,
}

/// Keeps a copy from making room for others.
pub(crate) struct InUse {
    cache: Cache,
    digest: Digest,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut in_use = self.cache.in_use.lock();
        if let Some(count) = in_use.get_mut(&self.digest) {
            *count -= 1;
            if *count == 0 {
                in_use.remove(&self.digest);
            }
        }
    }
}

impl Cache {
    pub(crate) fn new(folder: PathBuf, bytes_max: u64) -> Self {
        Self { folder, bytes_max, in_use: Arc::default() }
    }

    /// The folder, in which a copy has the hexadecimal digits of its digest as its name.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn path(&self, digest: Digest) -> PathBuf {
        self.folder.join(digest.hex())
    }

    /// Keep the copy of this digest, if there is one or will be one.
    pub(crate) fn hold(&self, digest: Digest) -> InUse {
        *self.in_use.lock().entry(digest).or_default() += 1;
        InUse { cache: self.clone(), digest }
    }

    /// The copy, if there is a whole one.
    pub(crate) fn read(&self, digest: Digest) -> io::Result<Option<Vec<u8>>> {
        let path = self.path(digest);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        if Digest::of(&bytes) != digest {
            tracing::warn!(%digest, "a damaged copy of a blob is fetched again");
            fs::remove_file(&path)?;
            return Ok(None);
        }
        self.note_use(digest);
        Ok(Some(bytes))
    }

    /// Note that the copy is used now.
    pub(crate) fn note_use(&self, digest: Digest) {
        // Only the order in which copies make room depends on it.
        if let Ok(file) = File::open(self.path(digest)) {
            let _ = file.set_modified(SystemTime::now());
        }
    }

    /// Remove the copies that were used longest ago, until the rest is within the bound. The copy
    /// `but` stays, and so do those in use.
    pub(crate) fn make_room(&self, but: Digest) -> io::Result<()> {
        let mut copies = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let about = entry.metadata()?;
            if about.is_file() {
                copies.push((about.modified()?, about.len(), entry.path()));
            }
        }
        copies.sort_unstable();
        let mut bytes: u64 = copies.iter().map(|(_, bytes, _)| bytes).sum();
        let mut spared: HashSet<_> =
            self.in_use.lock().keys().map(|digest| self.path(*digest)).collect();
        spared.insert(self.path(but));
        for (_, copy_bytes, path) in
            copies.into_iter().filter(|(_, _, path)| !spared.contains(path))
        {
            if bytes <= self.bytes_max {
                break;
            }
            fs::remove_file(path)?;
            bytes -= copy_bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_copies_that_were_used_longest_ago_make_room() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().to_owned(), 25);
        let digests = [b"0123456789", b"abcdefghij", b"ABCDEFGHIJ"].map(|blob| {
            let digest = Digest::of(blob);
            fs::write(cache.path(digest), blob).unwrap();
            digest
        });
        for (index, digest) in digests.into_iter().enumerate() {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(index as u64);
            File::open(cache.path(digest)).unwrap().set_modified(at).unwrap();
        }
        assert!(cache.read(digests[0]).unwrap().is_some());
        cache.make_room(digests[1]).unwrap();
        let there = digests.map(|digest| cache.path(digest).exists());
        assert_eq!(there, [true, true, false], "the second one is spared, the first was used last");
        let small = Cache { bytes_max: 0, ..cache.clone() };
        let held = small.hold(digests[0]);
        small.make_room(digests[1]).unwrap();
        assert!(cache.path(digests[0]).exists(), "it is in use");
        drop(held);
        small.make_room(digests[1]).unwrap();
        assert!(!cache.path(digests[0]).exists());
    }

    #[test]
    fn a_damaged_copy_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().to_owned(), 25);
        let digest = Digest::of(b"grain");
        assert!(cache.read(digest).unwrap().is_none());
        fs::write(cache.path(digest), b"chaff").unwrap();
        assert!(cache.read(digest).unwrap().is_none());
        assert!(!cache.path(digest).exists());
    }
}
