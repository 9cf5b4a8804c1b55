//! A plugin's sources: an uncompressed tar file, so that its size bounds what it unpacks to.
//!
//! One of its files is the [`Manifest`]. The files have plain relative paths. Links, devices,
//! folders and more files than 10,000 are refused by name. [`Archive::write`] gives the same
//! bytes for the same files on every machine, so their digest names the sources.

use std::collections::BTreeMap;
use std::io::Read;

use serde::{Deserialize, Serialize};
use tar::{EntryType, Header};

use crate::language::Language;

/// The name of the manifest.
const MANIFEST: &str = "gristmill.json";

/// Maximum files of an archive.
const FILES_MAX: usize = 10_000;

/// The mark of a tar file, and where it stands.
const MARK: &[u8] = b"ustar";
const MARK_AT: usize = 257;

/// A tar file ends with as many zeros.
const END_BYTES: usize = 1024;

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is not a tar file, or it is cut.
    #[error("the archive of sources cannot be read: {0}")]
    Damaged(#[from] std::io::Error),
    /// One of its entries is not a file, or is named twice.
    #[error("the archive of sources has {name:?}: {why}")]
    Entry {
        /// The entry's path.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// It has too many files.
    #[error("the archive of sources has more than {FILES_MAX} files")]
    TooManyFiles,
    /// Its manifest is missing or faulty.
    #[error(
        "the archive of sources has no valid {MANIFEST}: {0}; make it with `gristmill plugin build`"
    )]
    Manifest(String),
}

/// The file of an archive that says what the others are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The language, which names the runtime.
    pub language: Language,
    /// What is loaded: in Python the name of a module, in JavaScript a file.
    pub app: String,
}

/// The sources of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The language and the module that is loaded.
    pub manifest: Manifest,
    /// The files by their paths, without the manifest.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Whether a file is an archive of sources. Looks at its first bytes only.
pub fn is_archive(file: &[u8]) -> bool {
    !file.starts_with(b"\0asm") && file.get(MARK_AT..MARK_AT + MARK.len()) == Some(MARK)
}

impl Archive {
    /// Read an archive.
    ///
    /// # Errors
    /// Each names the entry that is refused.
    pub fn read(file: &[u8]) -> Result<Self, ArchiveError> {
        // What is cut after an entry would be an archive with fewer files.
        if !file.ends_with(&[0; END_BYTES]) {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        let mut files = files_of(file)?;
        let manifest = files.remove(MANIFEST);
        let manifest = manifest.ok_or_else(|| ArchiveError::Manifest("it is missing".into()))?;
        let manifest: Manifest = serde_json::from_slice(&manifest)
            .map_err(|error| ArchiveError::Manifest(error.to_string()))?;
        let archive = Self { manifest, files };
        if !archive.has_app() {
            let why = format!("there is no {}, which `app` names", archive.app_file());
            return Err(ArchiveError::Manifest(why));
        }
        Ok(archive)
    }

    /// The file that is loaded, unless it is a package of Python.
    pub fn app_file(&self) -> String {
        match self.manifest.language {
            Language::Python => format!("{}.py", self.manifest.app.replace('.', "/")),
            Language::JavaScript => self.manifest.app.clone(),
        }
    }

    /// Whether what is loaded is there.
    pub fn has_app(&self) -> bool {
        let package = format!("{}/__init__.py", self.manifest.app.replace('.', "/"));
        let is_package = self.manifest.language == Language::Python;
        self.files.contains_key(&self.app_file()) || is_package && self.files.contains_key(&package)
    }

    /// Write the archive: sorted, without times and owners.
    ///
    /// # Errors
    /// [`ArchiveError::Entry`] if a path is too long for the format.
    pub fn write(&self) -> Result<Vec<u8>, ArchiveError> {
        let mut tar = tar::Builder::new(Vec::new());
        let manifest = serde_json::to_vec(&self.manifest).map_err(std::io::Error::other)?;
        let files = self.files.iter().map(|(name, content)| (name.as_str(), content.as_slice()));
        for (name, content) in std::iter::once((MANIFEST, &manifest[..])).chain(files) {
            let mut header = Header::new_ustar();
            header.set_entry_type(EntryType::Regular);
            header.set_mode(0o644);
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, name, content)
                .map_err(|error| refused(name, &error.to_string()))?;
        }
        Ok(tar.into_inner()?)
    }
}

/// The files of a tar file by their paths.
pub(super) fn files_of(file: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, ArchiveError> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(file).entries()? {
        let mut entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match entry.header().entry_type() {
            EntryType::Regular => {}
            EntryType::Symlink | EntryType::Link => {
                return Err(refused(&name, "links are not allowed"));
            }
            other => return Err(refused(&name, &format!("it is no file but {other:?}"))),
        }
        check_path(&name)?;
        if files.len() == FILES_MAX {
            return Err(ArchiveError::TooManyFiles);
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        if files.insert(name.clone(), content).is_some() {
            return Err(refused(&name, "it is there twice"));
        }
    }
    Ok(files)
}

/// The files of a tar file: the path of each, its first byte and its length. [`Archive::read`]
/// checks the same file.
pub(crate) fn places_in(file: &[u8]) -> Result<Vec<(String, u64, u64)>, ArchiveError> {
    let mut places = Vec::new();
    for entry in tar::Archive::new(file).entries()? {
        let entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        places.push((name, entry.raw_file_position(), entry.size()));
    }
    Ok(places)
}

fn check_path(name: &str) -> Result<(), ArchiveError> {
    if name.starts_with('/') {
        return Err(refused(name, "its path is absolute"));
    }
    if name.chars().any(char::is_control) {
        return Err(refused(name, "its path has a control character"));
    }
    if name.split('/').any(|part| matches!(part, "" | "." | "..")) || name.contains('\\') {
        return Err(refused(name, "its path is not plain: no empty part, no `.`, no `..`"));
    }
    Ok(())
}

fn refused(name: &str, why: &str) -> ArchiveError {
    let name = name[..name.floor_char_boundary(256)].to_owned();
    ArchiveError::Entry { name, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn archive() -> Archive {
        let manifest = Manifest { language: Language::Python, app: "app".into() };
        let files = [("app.py".to_owned(), b"x = 1".to_vec()), ("a/b.txt".into(), Vec::new())];
        Archive { manifest, files: files.into() }
    }

    /// A tar file with one entry, whose header is changed by `change`.
    fn with_entry(name: &str, change: impl FnOnce(&mut Header)) -> Vec<u8> {
        let mut header = Header::new_ustar();
        header.set_size(0);
        header.as_ustar_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        change(&mut header);
        header.set_cksum();
        let mut tar = tar::Builder::new(Vec::new());
        tar.append(&header, &[][..]).unwrap();
        tar.into_inner().unwrap()
    }

    #[test]
    fn what_is_written_is_read_and_is_the_same_each_time() {
        let file = archive().write().unwrap();
        assert!(is_archive(&file));
        assert_eq!(Archive::read(&file).unwrap(), archive());
        assert_eq!(archive().write().unwrap(), file);
    }

    #[test]
    fn links_and_paths_that_lead_outside_are_refused_by_name() {
        let refused = |file: &[u8]| Archive::read(file).unwrap_err().to_string();
        for path in ["/etc/passwd", "../x", "a/../b", "a//b", "./a", "a\\b"] {
            let text =
                refused(&with_entry(path, |header| header.set_entry_type(EntryType::Regular)));
            assert!(text.contains(&format!("{path:?}")), "{text}");
        }
        let link = with_entry("data", |header| {
            header.set_entry_type(EntryType::Symlink);
            header.set_link_name("/etc/passwd").unwrap();
        });
        assert!(refused(&link).contains("links are not allowed"), "{}", refused(&link));
        let fifo = with_entry("pipe", |header| header.set_entry_type(EntryType::Fifo));
        assert!(refused(&fifo).contains("\"pipe\""), "{}", refused(&fifo));
    }

    #[test]
    fn a_size_that_is_claimed_takes_no_memory_and_a_cut_file_is_refused() {
        let claimed = with_entry("big", |header| header.set_size(1 << 40));
        assert!(Archive::read(&claimed).is_err());
        let file = archive().write().unwrap();
        for end in [1, 300, 700, 1100] {
            assert!(Archive::read(&file[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn a_manifest_that_is_missing_or_faulty_is_named() {
        let none = with_entry("app.py", |header| header.set_entry_type(EntryType::Regular));
        let text = Archive::read(&none).unwrap_err().to_string();
        assert!(text.contains("gristmill.json: it is missing"), "{text}");
    }
}
