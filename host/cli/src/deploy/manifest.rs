//! The manifest: what shall be on a server, in files that are kept in git.
//!
//! It names models and tenants with their plugins and pipelines. The documents of tenants and
//! pipelines, and the configurations of models, are passed on as they are: their keys are the
//! server's to know. A manifest never has a key in clear text, only the name of a variable with it.

mod file;
mod keys;
mod parts;
mod text;
mod values;

use std::fs;
use std::path::{Path, PathBuf};

use self::file::Reader;
use self::parts::Variables;
pub(crate) use self::parts::{ContentSource, Key, Manifest, Model, Tenant, TenantFile};
#[cfg(test)]
pub(crate) use self::parts::{Document, Secret};
use super::position::Faults;

/// The manifest that is read if no other is named.
pub(crate) const DEFAULT_FILE: &str = "gristmill.deploy.toml";

/// Read a file, or all files `*.toml` of a folder. `variables` has the keys that are named.
///
/// # Errors
/// All faults of all files.
pub(crate) fn read(path: &Path, variables: Variables<'_>) -> Result<Manifest, Faults> {
    let mut faults = Faults::default();
    let mut reader = Reader::new(variables, &mut faults);
    match files(path) {
        Ok(files) => files.iter().for_each(|file| reader.read(file)),
        Err(fault) => reader.faults.add(fault),
    }
    let manifest = reader.manifest;
    faults.unless_any(manifest)
}

/// The files of a manifest.
fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let shown = path.display();
    let entries = fs::read_dir(path).map_err(|error| format!("{shown}: {error}"))?;
    let is_manifest = |path: &PathBuf| {
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
        path.extension().is_some_and(|ending| ending == "toml") && !is_hidden && path.is_file()
    };
    let files = entries.flatten().map(|entry| entry.path()).filter(is_manifest);
    let mut files: Vec<_> = files.collect();
    files.sort();
    if files.is_empty() {
        return Err(format!("{shown} has no file *.toml"));
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
