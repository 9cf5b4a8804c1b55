//! Files that a release will name: their digests, and uploading them with progress.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bytes::Bytes;
use gristmill_core::Digest;
use sha2::{Digest as _, Sha256};

use crate::admin::Admin;
use crate::content::Content;
use crate::model_file::ModelContent;
use crate::progress::{Progress, bytes_text};

/// The bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// A file on this machine, by its content.
#[derive(Clone, Debug)]
pub(crate) struct HashedFile {
    pub(crate) path: PathBuf,
    pub(crate) digest: Digest,
    pub(crate) bytes: u64,
    content: Content,
}

impl HashedFile {
    /// Read a file for its digest and its length.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let failed = || path.display().to_string();
        Self::of(path, Content::of_file(path).with_context(failed)?)
    }

    /// A file that was fetched, under the path that shows it.
    pub(crate) fn fetched(path: &Path, bytes: Bytes) -> Result<Self> {
        let mut content = Content::default();
        content.add(bytes.into());
        Self::of(path, content)
    }

    /// Read a model: a file, alone or with those beside it that it names, a folder, or an archive.
    pub(crate) fn read_model(path: &Path) -> Result<Self> {
        let failed = || path.display().to_string();
        Self::of(path, ModelContent::at(path).with_context(failed)?.content)
    }

    /// Read a model that is not an archive.
    pub(crate) fn read_plain_model(path: &Path) -> Result<Self> {
        let failed = || path.display().to_string();
        Self::of(path, ModelContent::plain(path).with_context(failed)?.content)
    }

    fn of(path: &Path, content: Content) -> Result<Self> {
        let failed = || path.display().to_string();
        let mut file = content.reader();
        let progress = Progress::bytes(&format!("reading {}", path.display()), content.bytes());
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        let mut piece = vec![0; PIECE];
        loop {
            let read = file.read(&mut piece).with_context(failed)?;
            if read == 0 {
                break;
            }
            hash.update(&piece[..read]);
            bytes += read as u64;
            progress.set(bytes);
        }
        let digest = Digest::from_bytes(hash.finalize().into());
        Ok(Self { path: path.to_owned(), digest, bytes, content })
    }

    /// Upload it, unless the server has it. Returns whether anything was sent.
    pub(crate) fn upload(&self, admin: &Admin) -> Result<bool> {
        let Self { path, digest, bytes, content } = self;
        let shown = path.display();
        let progress = Progress::bytes(&format!("uploading {shown}"), *bytes);
        let mut file = content.reader();
        let mut is_first = true;
        let sent = admin.upload(&mut file, (*digest, *bytes), |done| {
            match std::mem::take(&mut is_first) {
                // What an earlier run has sent.
                true => progress.begin(done),
                false => progress.set(done),
            }
        });
        drop(progress);
        let is_sent = sent.with_context(|| format!("cannot upload {shown}"))?;
        if is_sent {
            eprintln!("uploaded {shown}, {}", bytes_text(*bytes));
        }
        Ok(is_sent)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_file_has_the_digest_of_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let content: Vec<u8> = (0..PIECE + 7).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let file = HashedFile::read(&path).unwrap();
        assert_eq!((file.digest, file.bytes), (Digest::of(&content), content.len() as u64));
        let error = HashedFile::read(&directory.path().join("none")).unwrap_err().to_string();
        assert!(error.ends_with("/none"), "{error}");
    }
}
