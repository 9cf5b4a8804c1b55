//! The files of an archive of sources.

use std::collections::BTreeMap;
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

/// The beginning of the paths of files that the plugin opens.
pub(crate) const ASSETS: &str = "assets/";

/// The most bytes of an archive.
const BYTES_MAX: usize = 64 << 20;

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
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let below = format!("{below}{name}");
            let is_left_out =
                LEFT_OUT.contains(&name) || is_top && LEFT_OUT_AT_THE_TOP.contains(&name);
            if kind.is_dir() && !is_left_out && !name.ends_with(ABOUT_PACKAGES) {
                self.add(&entry.path(), &format!("{below}/"), false)?;
            }
            let is_test = name.starts_with("test_") && name.ends_with(".py");
            let is_of_tools = is_test || BUILT.iter().any(|end| name.ends_with(end));
            // A plugin may open any file.
            if !kind.is_file() || is_of_tools && !below.starts_with(ASSETS) {
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
