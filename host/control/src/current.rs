//! The documents of the things that serve, as they can be read and put again, and their tags.
//!
//! Invariants:
//! - a document that is put back as it was read changes nothing;
//! - no document has a key or a key's digest.

use gristmill_core::{Digest, Name};
use gristmill_store::digest_of;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::desired::{Model, Tenant};
use crate::error::ControlError;
use crate::fault::Subject;
use crate::publish::Serving;

/// The document of a thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Current {
    /// The document. Its keys are sorted.
    pub document: Value,
    /// The digest of the document's JSON. It changes whenever the document does.
    pub tag: Digest,
}

impl Serving {
    /// The document of a thing.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] names the thing, or its tenant.
    pub fn current(&self, subject: &Subject) -> Result<Current, ControlError> {
        let document = match subject {
            Subject::Tenant(tenant) => tenant_document(self.tenant(tenant)?),
            Subject::Key { tenant, key } => {
                let version = self.tenant(tenant)?.key_versions.get(key);
                let version = version.ok_or_else(|| ControlError::not_found("key", key))?;
                json!({ "name": key, "version": version })
            }
            Subject::Plugin { tenant, plugin } => self.plugin_document(tenant, plugin)?,
            Subject::Pipeline { tenant, pipeline } => {
                let spec = self.tenant(tenant)?.pipelines.get(pipeline);
                let spec = spec.ok_or_else(|| ControlError::not_found("pipeline", pipeline))?;
                let mut document = given(spec)?;
                if let Some(Value::Object(limits)) = document.get_mut("limits") {
                    limits.retain(|_, limit| !limit.is_null());
                }
                document.into()
            }
            Subject::Model(model) => {
                let Model { digest, version, unloaded, .. } = self.model(model)?;
                json!({
                    "name": model, "digest": digest, "version": version, "unloaded": unloaded,
                })
            }
            Subject::ModelConfig(model) => given(&self.model(model)?.config)?.into(),
        };
        let tag = digest_of(&serde_json::to_vec(&document)?);
        Ok(Current { document, tag })
    }

    /// The tag of a thing, if it exists.
    ///
    /// # Errors
    /// Its document cannot be written.
    pub(crate) fn tag(&self, subject: &Subject) -> Result<Option<Digest>, ControlError> {
        match self.current(subject) {
            Ok(current) => Ok(Some(current.tag)),
            Err(ControlError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A tenant of the desired state.
    ///
    /// # Errors
    /// [`ControlError::NotFound`]
    pub fn tenant(&self, tenant: &Name) -> Result<&Tenant, ControlError> {
        let tenants = &self.desired.tenants;
        tenants.get(tenant).ok_or_else(|| ControlError::not_found("tenant", tenant))
    }

    /// A model of the desired state.
    ///
    /// # Errors
    /// [`ControlError::NotFound`]
    pub fn model(&self, model: &Name) -> Result<&Model, ControlError> {
        let models = &self.desired.models;
        models.get(model).ok_or_else(|| ControlError::not_found("model", model))
    }

    /// A plugin that is not loaded has neither contract nor world.
    fn plugin_document(&self, tenant: &Name, plugin: &Name) -> Result<Value, ControlError> {
        let own = self.tenant(tenant)?.plugins.get(plugin);
        let own = own.ok_or_else(|| ControlError::not_found("plugin", plugin))?;
        let mut document = json!({ "name": plugin, "digest": own.digest, "version": own.version });
        let state = self.snapshot.tenants.get(tenant).and_then(|own| own.plugins.get(plugin));
        if let Some(Ok(loaded)) = state.map(|state| &state.plugin) {
            document["contract"] = loaded.contract().into();
            document["world"] = loaded.roles().world().into();
            document["imports"] = loaded.imports().into();
        }
        Ok(document)
    }
}

fn tenant_document(tenant: &Tenant) -> Value {
    let spec = &tenant.spec;
    let mut document = json!({ "open": spec.open, "weight": spec.weight, "models": spec.models });
    if let Some(pipeline) = &spec.default_pipeline {
        document["default_pipeline"] = pipeline.as_str().into();
    }
    if !spec.open {
        let name = |key: &Name| json!({ "name": key });
        document["api_keys"] = spec.keys.keys().map(name).collect();
    }
    document
}

/// The document without keys that were not given.
fn given(document: &impl Serialize) -> Result<Map<String, Value>, ControlError> {
    let Value::Object(mut keys) = serde_json::to_value(document)? else { return Ok(Map::new()) };
    keys.retain(|_, value| !value.is_null());
    Ok(keys)
}
