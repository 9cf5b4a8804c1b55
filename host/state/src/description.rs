//! What is shown of a key, a plugin, an asset and a model.

use std::collections::BTreeMap;

use gristmill_core::{Digest, Name};
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
    /// The interfaces that it imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imports: Option<&'a [String]>,
    /// The earlier versions that stay loaded, by their numbers.
    #[schema(value_type = Option<BTreeMap<String, KeptDescription>>)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept_versions: BTreeMap<u64, KeptDescription<'a>>,
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
