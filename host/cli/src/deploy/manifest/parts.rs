//! The parts of a manifest.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use gristmill_core::{Digest, Name};
use serde_json::{Map, Value};

use crate::deploy::position::FilePosition;
use crate::oci::Reference;

/// All that shall be on a server.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) models: BTreeMap<Name, Model>,
    pub(crate) tenants: BTreeMap<Name, Tenant>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) source: ContentSource,
    /// The configuration; without it, that of the server stays.
    pub(crate) config: Option<Map<String, Value>>,
    pub(crate) position: FilePosition,
}

/// A tenant. Only what it names is compared with the server.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tenant {
    /// Its document without `api_keys`. None if the manifest has no key of it.
    pub(crate) document: Option<Document>,
    pub(crate) keys: Option<Vec<Key>>,
    pub(crate) plugins: BTreeMap<Name, TenantFile>,
    pub(crate) assets: BTreeMap<Name, TenantFile>,
    pub(crate) pipelines: BTreeMap<Name, Document>,
}

/// A plugin or an asset.
#[derive(Debug, PartialEq)]
pub(crate) struct TenantFile {
    pub(crate) source: ContentSource,
    /// A file with a plugin's signature.
    pub(crate) signature: Option<PathBuf>,
    pub(crate) position: FilePosition,
}

/// A document that is passed on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    pub(crate) keys: Map<String, Value>,
    pub(crate) position: FilePosition,
}

/// An API key of a tenant.
#[derive(Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) name: Name,
    /// The key itself. None for a key that the tenant has already.
    pub(crate) secret: Option<Secret>,
    pub(crate) position: FilePosition,
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The content of a plugin, an asset or a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ContentSource {
    /// A folder of a plugin, which is built.
    Folder(PathBuf),
    File(PathBuf),
    /// A plugin in a registry.
    Artifact(Reference),
    /// A file, a folder or an archive of a model.
    Model(PathBuf),
    /// A file that is on the server.
    Digest(Digest),
}

/// Reads the variables that a manifest names.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;
