//! The documents of the things that serve, as they can be read and put again, and their tags.
//!
//! Invariants:
//! - a document that is put back as it was read changes nothing;
//! - no document has a key or a key's digest.

use std::collections::BTreeMap;

use gristmill_core::{Digest, Name};
use gristmill_snapshot::KeptVersion;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::description::{
    AssetDescription, KeptDescription, KeyDescription, ModelDescription, PluginDescription,
};
use crate::desired::{Model, Tenant, TenantFile, Token};
use crate::error::StateError;
use crate::fault::Subject;
use crate::release::model_config::ModelConfig;
use crate::release::pipeline::PipelineSpec;
use crate::release::tenant::{BatchWith, TenantSpec};
use crate::serving::Serving;

/// The document of a thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Current {
    /// The document. Its keys are sorted.
    pub document: Value,
    /// The digest of the document's JSON. It changes whenever the document does, but for what is up
    /// to others: the versions of a file that stay, and the server's runtime with its imports.
    pub tag: Digest,
    /// The uploaded file of a plugin, an asset or a model.
    pub file: Option<Digest>,
}

impl Serving {
    /// The document of a thing.
    ///
    /// # Errors
    /// [`StateError::NotFound`] names the thing, or its tenant.
    pub fn current(&self, subject: &Subject) -> Result<Current, StateError> {
        let document = match subject {
            Subject::Tenant(tenant) => tenant_document(&self.tenant(tenant)?.spec)?,
            Subject::Key { tenant, key } => {
                let version = self.tenant(tenant)?.key_versions.get(key);
                let version = *version.ok_or_else(|| StateError::not_found("key", key))?;
                serde_json::to_value(KeyDescription { name: key, version })?
            }
            Subject::Plugin { tenant, plugin } => self.plugin_document(tenant, plugin)?,
            Subject::Asset { tenant, asset } => self.asset_document(tenant, asset)?,
            Subject::Pipeline { tenant, pipeline } | Subject::Candidate { tenant, pipeline } => {
                let spec = self.tenant(tenant)?.pipelines.get(pipeline);
                let spec = spec.ok_or_else(|| StateError::not_found("pipeline", pipeline))?;
                pipeline_document(spec)?
            }
            Subject::Model(model) => {
                let Model { digest, version, unloaded, .. } = *self.model(model)?;
                let state = self.snapshot.models.get(model);
                let kept_versions = state.map(|state| kept(&state.kept)).unwrap_or_default();
                let name = model;
                serde_json::to_value(ModelDescription {
                    name,
                    digest,
                    version,
                    unloaded,
                    kept_versions,
                })?
            }
            Subject::ModelConfig(model) => config_document(&self.model(model)?.config)?,
            Subject::Token(token) => {
                let Token { spec, .. } = self.token(token)?;
                spec.document()
            }
        };
        let mut tagged = document.clone();
        // Which versions stay is up to the pipelines of others, too. The runtime of sources is up
        // to the server, and gives them the imports and the contract.
        if let (Subject::Plugin { .. } | Subject::Asset { .. } | Subject::Model(_), Some(keys)) =
            (subject, tagged.as_object_mut())
        {
            for key in ["kept_versions", "runtime", "imports", "contract"] {
                keys.remove(key);
            }
        }
        let tag = Digest::of(&serde_json::to_vec(&tagged)?);
        let file = match subject {
            Subject::Plugin { tenant, plugin } => Some(self.plugin(tenant, plugin)?.digest),
            Subject::Asset { tenant, asset } => Some(self.asset(tenant, asset)?.digest),
            Subject::Model(model) => Some(self.model(model)?.digest),
            _ => None,
        };
        Ok(Current { document, tag, file })
    }

    /// The tag of a thing, if it exists.
    ///
    /// # Errors
    /// Its document cannot be written.
    pub fn tag(&self, subject: &Subject) -> Result<Option<Digest>, StateError> {
        Ok(self.existing(subject)?.map(|current| current.tag))
    }

    /// The document of a thing, if it exists.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn document(&self, subject: &Subject) -> Result<Option<Value>, StateError> {
        Ok(self.existing(subject)?.map(|current| current.document))
    }

    fn existing(&self, subject: &Subject) -> Result<Option<Current>, StateError> {
        match self.current(subject) {
            Ok(current) => Ok(Some(current)),
            Err(StateError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A tenant of the desired state.
    ///
    /// # Errors
    /// [`StateError::NotFound`]
    pub fn tenant(&self, tenant: &Name) -> Result<&Tenant, StateError> {
        let tenants = &self.desired.tenants;
        let entry = tenants.get(tenant).map(|tenant| &**tenant);
        entry.ok_or_else(|| StateError::not_found("tenant", tenant))
    }

    /// A plugin of the desired state.
    ///
    /// # Errors
    /// [`StateError::NotFound`] names the plugin, or its tenant.
    pub fn plugin(&self, tenant: &Name, plugin: &Name) -> Result<&TenantFile, StateError> {
        let plugins = &self.tenant(tenant)?.plugins;
        plugins.get(plugin).ok_or_else(|| StateError::not_found("plugin", plugin))
    }

    /// An asset of the desired state.
    ///
    /// # Errors
    /// [`StateError::NotFound`] names the asset, or its tenant.
    pub fn asset(&self, tenant: &Name, asset: &Name) -> Result<&TenantFile, StateError> {
        let assets = &self.tenant(tenant)?.assets;
        assets.get(asset).ok_or_else(|| StateError::not_found("asset", asset))
    }

    /// A model of the desired state.
    ///
    /// # Errors
    /// [`StateError::NotFound`]
    pub fn model(&self, model: &Name) -> Result<&Model, StateError> {
        let models = &self.desired.models;
        models.get(model).ok_or_else(|| StateError::not_found("model", model))
    }

    /// An admin token of the desired state.
    ///
    /// # Errors
    /// [`StateError::NotFound`]
    pub fn token(&self, token: &Name) -> Result<&Token, StateError> {
        let tokens = &self.desired.tokens;
        tokens.get(token).ok_or_else(|| StateError::not_found("token", token))
    }

    /// A plugin that is not loaded has neither contract nor world.
    fn plugin_document(&self, tenant: &Name, plugin: &Name) -> Result<Value, StateError> {
        let TenantFile { digest, version, .. } = *self.plugin(tenant, plugin)?;
        let state = self.snapshot.tenants.get(tenant).and_then(|tenant| tenant.plugins.get(plugin));
        let loaded = state.and_then(|state| state.newest.as_ref().ok());
        Ok(serde_json::to_value(PluginDescription {
            name: plugin,
            digest,
            version,
            contract: loaded.map(|loaded| loaded.contract()),
            world: loaded.map(|loaded| loaded.roles().world()),
            sources: loaded.and_then(|loaded| loaded.sources()),
            runtime: loaded.and_then(|loaded| loaded.runtime()).map(Into::into),
            imports: loaded.map(|loaded| loaded.imports_with_power().collect()),
            kept_versions: state.map(|state| kept(&state.kept)).unwrap_or_default(),
        })?)
    }

    fn asset_document(&self, tenant: &Name, asset: &Name) -> Result<Value, StateError> {
        let TenantFile { digest, version, .. } = *self.asset(tenant, asset)?;
        let state = self.snapshot.tenants.get(tenant).and_then(|tenant| tenant.assets.get(asset));
        let kept_versions = state.map(|state| kept(&state.kept)).unwrap_or_default();
        Ok(serde_json::to_value(AssetDescription { name: asset, digest, version, kept_versions })?)
    }
}

/// The earlier versions that stay loaded.
fn kept<T>(kept: &BTreeMap<u64, KeptVersion<T>>) -> BTreeMap<u64, KeptDescription<'_>> {
    let described = kept.iter().map(|(version, KeptVersion { digest, loaded })| {
        let reason = loaded.as_ref().err().map(String::as_str);
        let state = if reason.is_some() { "failed" } else { "ready" };
        (*version, KeptDescription { digest: *digest, state, reason })
    });
    described.collect()
}

/// The document of a tenant.
///
/// # Errors
/// A part of it cannot be written as JSON.
pub fn tenant_document(spec: &TenantSpec) -> Result<Value, StateError> {
    let mut document = json!({ "open": spec.open, "weight": spec.weight, "models": spec.models });
    if spec.batch_with != BatchWith::default() {
        document["batch_with"] = serde_json::to_value(spec.batch_with)?;
    }
    if let Some(pipeline) = &spec.default_pipeline {
        document["default_pipeline"] = pipeline.as_str().into();
    }
    if !spec.open {
        let name = |key: &Name| json!({ "name": key });
        document["api_keys"] = spec.keys.keys().map(name).collect();
    }
    if !spec.quota.is_empty() {
        document["quota"] = without_nulls(&spec.quota)?.into();
    }
    if !spec.plugin_version_policy.is_default() {
        document["plugin_version_policy"] = serde_json::to_value(&spec.plugin_version_policy)?;
    }
    if !spec.stores.is_empty() {
        document["stores"] = serde_json::to_value(&spec.stores)?;
    }
    if !spec.http.is_empty() {
        document["http"] = serde_json::to_value(&spec.http)?;
    }
    if let Some(cors) = &spec.cors {
        document["cors"] = serde_json::to_value(cors)?;
    }
    if !spec.redirects.is_empty() {
        document["redirects"] = serde_json::to_value(&spec.redirects)?;
    }
    if !spec.plugin_signers.is_empty() {
        document["plugin_signers"] = serde_json::to_value(&spec.plugin_signers)?;
    }
    if spec.try_page {
        document["try_page"] = true.into();
    }
    Ok(document)
}

/// The document of a pipeline.
pub fn pipeline_document(spec: &PipelineSpec) -> Result<Value, StateError> {
    let mut document = without_nulls(spec)?;
    if let Some(Value::Object(limits)) = document.get_mut("limits") {
        limits.retain(|_, limit| !limit.is_null());
    }
    Ok(document.into())
}

/// The document of a model's configuration.
pub fn config_document(config: &ModelConfig) -> Result<Value, StateError> {
    Ok(without_nulls(config)?.into())
}

/// The document without keys that were not given.
fn without_nulls(document: &impl Serialize) -> Result<Map<String, Value>, StateError> {
    let Value::Object(mut keys) = serde_json::to_value(document)? else { return Ok(Map::new()) };
    keys.retain(|_, value| !value.is_null());
    Ok(keys)
}
