//! Files that killed processes and refused uploads left behind.

use std::fs;
use std::io;
use std::path::Path;

use gristmill_core::Digest;

/// The number of removed files, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The number of files.
    pub files: u64,
    /// Their bytes together.
    pub bytes: u64,
}

impl Removed {
    pub(crate) fn and(self, other: Self) -> Self {
        Self { files: self.files + other.files, bytes: self.bytes + other.bytes }
    }
}

/// Remove the files in `folder` that `object_store` began and did not publish: `NAME#NUMBER`.
pub(crate) fn remove_staged(folder: &Path) -> io::Result<Removed> {
    remove_where(folder, |name| {
        let number = name.rsplit_once('#').map_or("", |(_, number)| number);
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Remove all files in `folder`.
pub(crate) fn remove_all(folder: &Path) -> io::Result<Removed> {
    remove_where(folder, |_| true)
}

/// Remove the blobs in `folder` that `is_named` does not know. Other files stay.
pub(crate) fn remove_unnamed(
    folder: &Path,
    is_named: impl Fn(&Digest) -> bool,
) -> io::Result<Removed> {
    remove_where(folder, |name| {
        let digest = format!("sha256:{name}").parse::<Digest>();
        digest.is_ok_and(|digest| digest.hex() == name && !is_named(&digest))
    })
}

fn remove_where(folder: &Path, unwanted: impl Fn(&str) -> bool) -> io::Result<Removed> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Removed::default()),
        entries => entries?,
    };
    let mut removed = Removed::default();
    for entry in entries {
        let entry = entry?;
        let about = entry.metadata()?;
        if about.is_file() && entry.file_name().to_str().is_some_and(&unwanted) {
            fs::remove_file(entry.path())?;
            removed = removed.and(Removed { files: 1, bytes: about.len() });
        }
    }
    Ok(removed)
}
