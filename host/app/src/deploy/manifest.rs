//! The manifest: what shall be on a server, in files that are kept in git.
//!
//! It names models and tenants with their plugins and pipelines. The documents of tenants and
//! pipelines, and the configurations of models, are passed on as they are: their keys are the
//! server's to know. A manifest never has a key in clear text, only the name of a variable with it.

mod file;
mod keys;
mod text;
mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use gristmill_core::{Digest, Name};
use serde_json::{Map, Value};

use self::file::Reader;
use super::place::{Faults, Place};

/// The manifest that is read if no other is named.
pub(crate) const DEFAULT_FILE: &str = "gristmill.deploy.toml";

/// All that shall be on a server.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) models: BTreeMap<Name, Model>,
    pub(crate) tenants: BTreeMap<Name, Tenant>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) source: Source,
    /// The configuration; without it, that of the server stays.
    pub(crate) config: Option<Map<String, Value>>,
    pub(crate) place: Place,
}

/// A tenant. Only what it names is compared with the server.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tenant {
    /// Its document without `api_keys`. None if the manifest has no key of it.
    pub(crate) document: Option<Document>,
    pub(crate) keys: Option<Vec<Key>>,
    pub(crate) plugins: BTreeMap<Name, Plugin>,
    pub(crate) pipelines: BTreeMap<Name, Document>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Plugin {
    pub(crate) source: Source,
    pub(crate) place: Place,
}

/// A document that is passed on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    pub(crate) keys: Map<String, Value>,
    pub(crate) place: Place,
}

/// An API key of a tenant.
#[derive(Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) name: Name,
    /// The key itself. None for a key that the tenant has already.
    pub(crate) secret: Option<Secret>,
    pub(crate) place: Place,
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The content of a plugin or a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A folder of a plugin, which is built.
    Folder(PathBuf),
    File(PathBuf),
    /// A file that is on the server.
    Digest(Digest),
}

/// Reads the variables that a manifest names.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Manifest {
    /// Read a file, or all files `*.toml` of a folder.
    ///
    /// # Errors
    /// All faults of all files.
    pub(crate) fn read(path: &Path, variables: Variables<'_>) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        let mut reader = Reader::new(variables, &mut faults);
        match files(path) {
            Ok(files) => files.iter().for_each(|file| reader.read(file)),
            Err(fault) => reader.faults.add(fault),
        }
        let manifest = reader.manifest;
        faults.unless_any(manifest)
    }
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
