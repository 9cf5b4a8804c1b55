//! What is shown of a key, a plugin, an asset and a model.

use std::collections::BTreeMap;

use gristmill_core::{Digest, Name};
use gristmill_sandbox::RuntimeVersion;
use serde::Serialize;
use utoipa::ToSchema;

use crate::schema::{DigestText, ModelNameText, NameText};

/// An API key of a tenant. The key itself is never shown.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Key)]
pub struct KeyDescription<'a> {
    /// Its name.
    #[schema(value_type = NameText)]
    pub name: &'a Name,
    /// The release that brought the key.
    pub version: u64,
}

/// A plugin. One that is not loaded has neither contract nor world nor imports.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Plugin)]
pub struct PluginDescription<'a> {
    /// Its name.
    #[schema(value_type = NameText)]
    pub name: &'a Name,
    /// The digest of its file.
    #[schema(value_type = DigestText)]
    pub digest: Digest,
    /// The release that brought the file.
    pub version: u64,
    /// The version of the contract that it is built for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<&'static str>,
    /// The world that it is of, by its exports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<&'static str>,
    /// The digest of its sources, its SDK and its tools, if its build wrote it into the file.
    #[schema(value_type = Option<DigestText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Digest>,
    /// The runtime of this server that runs it, if it was uploaded as sources. The tag does not
    /// depend on it, because another server can have another one.
    #[schema(value_type = Option<RuntimeDescription>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeDescription>,
    /// The interfaces that it imports, without those of WASI that give no plugin anything outside
    /// of its instance. Of sources, these are the imports of their runtime.
    #[schema(value_type = Option<Vec<String>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imports: Option<Vec<&'a str>>,
    /// The earlier versions that stay loaded, by their numbers.
    #[schema(value_type = Option<BTreeMap<String, KeptDescription>>)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept_versions: BTreeMap<u64, KeptDescription<'a>>,
}

/// A runtime of a language.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = Runtime)]
pub struct RuntimeDescription {
    /// `python` or `javascript`.
    pub language: &'static str,
    /// The digest of its file, which is its version.
    #[schema(value_type = DigestText)]
    pub digest: Digest,
}

impl From<RuntimeVersion> for RuntimeDescription {
    fn from(RuntimeVersion { language, digest }: RuntimeVersion) -> Self {
        Self { language: language.name(), digest }
    }
}

/// An earlier version that stays loaded.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = KeptVersion)]
pub struct KeptDescription<'a> {
    /// The digest of its file.
    #[schema(value_type = DigestText)]
    pub digest: Digest,
    /// `ready` or `failed`.
    pub state: &'static str,
    /// Why it is not loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

/// An asset of a tenant: a file that its plugins read.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Asset)]
pub struct AssetDescription<'a> {
    /// Its name.
    #[schema(value_type = NameText)]
    pub name: &'a Name,
    /// The digest of its file.
    #[schema(value_type = DigestText)]
    pub digest: Digest,
    /// The release that brought the file.
    pub version: u64,
    /// The earlier versions that stay loaded, by their numbers.
    #[schema(value_type = Option<BTreeMap<String, KeptDescription>>)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept_versions: BTreeMap<u64, KeptDescription<'a>>,
}

/// A model.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Model)]
pub struct ModelDescription<'a> {
    /// Its name.
    #[schema(value_type = ModelNameText)]
    pub name: &'a Name,
    /// The digest of its file.
    #[schema(value_type = DigestText)]
    pub digest: Digest,
    /// The release that brought the file.
    pub version: u64,
    /// Whether it is taken out of service.
    pub unloaded: bool,
    /// The earlier versions that stay loaded, by their numbers.
    #[schema(value_type = Option<BTreeMap<String, KeptDescription>>)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept_versions: BTreeMap<u64, KeptDescription<'a>>,
}
