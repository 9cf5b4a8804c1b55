//! The files of an archive of sources, and which files of a folder are the plugin's.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Names of folders that are not part of a plugin: of tests, of tools and of versions.
const LEFT_OUT: [&str; 3] = ["__pycache__", "node_modules", "venv"];

/// Those at the top of a plugin's folder: its requests for `plugin test`, and its tests.
const LEFT_OUT_AT_THE_TOP: [&str; 2] = ["requests", "tests"];

/// The end of the names of folders in which pip keeps what it knows of packages.
const ABOUT_PACKAGES: &str = ".dist-info";

/// Ends of names of files that are not part of a plugin: what builds make.
const BUILT: [&str; 3] = [".pyc", ".tar", ".wasm"];

/// The most bytes of an archive.
const BYTES_MAX: usize = 64 << 20;

/// Whether a file or a folder of a plugin's folder is not part of the plugin. `is_top` says whether
/// it lies directly in the plugin's folder.
pub(super) fn is_left_out(name: &OsStr, is_folder: bool, is_top: bool) -> bool {
    let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { return true };
    if is_folder {
        return LEFT_OUT.contains(&name)
            || is_top && LEFT_OUT_AT_THE_TOP.contains(&name)
            || name.ends_with(ABOUT_PACKAGES);
    }
    let is_test = name.starts_with("test_") && name.ends_with(".py");
    is_test || BUILT.iter().any(|end| name.ends_with(end))
}

/// Files by their paths in the archive.
#[derive(Default)]
pub(super) struct Files {
    pub(super) found: BTreeMap<String, Vec<u8>>,
    bytes: usize,
}

impl Files {
    /// Add the files of `folder`, whose paths in the archive begin with `below`. Links are left
    /// out: the archive is the same wherever the folder is.
    pub(super) fn add(&mut self, folder: &Path, below: &str, is_top: bool) -> Result<()> {
        let shown = || folder.display().to_string();
        for entry in fs::read_dir(folder).with_context(shown)? {
            let entry = entry.with_context(shown)?;
            let (name, kind) = (entry.file_name(), entry.file_type().with_context(shown)?);
            if is_left_out(&name, kind.is_dir(), is_top) {
                continue;
            }
            let below = format!("{below}{}", name.to_string_lossy());
            if kind.is_dir() {
                self.add(&entry.path(), &format!("{below}/"), false)?;
            }
            if !kind.is_file() {
                continue;
            }
            let content =
                fs::read(entry.path()).with_context(|| entry.path().display().to_string())?;
            self.bytes += content.len();
            ensure!(self.bytes <= BYTES_MAX, "the plugin's files have more than {BYTES_MAX} bytes");
            self.found.entry(below).or_insert(content);
        }
        Ok(())
    }
}
