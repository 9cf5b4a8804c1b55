//! What a server has of the things that a manifest names.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use gristmill_core::{Digest, Name};
use serde_json::Value;

use super::manifest::{ContentSource, Manifest, Tenant, TenantFile};
use crate::admin::Admin;

/// The things that are there.
#[derive(Debug, Default)]
pub(crate) struct Current {
    /// The release that serves.
    pub(crate) release: u64,
    pub(crate) models: BTreeMap<Name, CurrentModel>,
    pub(crate) tenants: BTreeMap<Name, CurrentTenant>,
}

#[derive(Debug)]
pub(crate) struct CurrentModel {
    pub(crate) digest: Option<Digest>,
    /// Null if the manifest does not configure it.
    pub(crate) config: Value,
}

#[derive(Debug, Default)]
pub(crate) struct CurrentTenant {
    pub(crate) document: Value,
    /// All of its plugins.
    pub(crate) plugins: BTreeMap<Name, Option<Digest>>,
    /// All of its assets.
    pub(crate) assets: BTreeMap<Name, Option<Digest>>,
    /// All of its pipelines; null for those that the manifest does not name.
    pub(crate) pipelines: BTreeMap<Name, Value>,
}

impl Current {
    /// Ask the server.
    pub(crate) fn read(admin: &Admin, manifest: &Manifest) -> Result<Self> {
        let release = admin.release()?;
        let mut current = Self { release, ..Self::default() };
        for (name, model) in &manifest.models {
            let path = format!("models/{name}");
            let document = admin.find(&path).with_context(|| format!("model {name}"))?;
            let Some(document) = document else { continue };
            let config = match &model.config {
                Some(_) => admin.get(&format!("{path}/config"))?,
                None => Value::Null,
            };
            current.models.insert(name.clone(), CurrentModel { digest: digest(&document), config });
        }
        for (name, tenant) in &manifest.tenants {
            let current_tenant = CurrentTenant::read(admin, name, tenant);
            let current_tenant = current_tenant.with_context(|| format!("tenant {name}"))?;
            current
                .tenants
                .extend(current_tenant.map(|current_tenant| (name.clone(), current_tenant)));
        }
        Ok(current)
    }
}

/// The plugins of the manifest that the server has a build of: the digests of their sources, with
/// those of the files.
pub(crate) fn builds(admin: &Admin, manifest: &Manifest) -> Result<BTreeMap<Digest, Digest>> {
    let mut builds = BTreeMap::new();
    for (name, tenant) in &manifest.tenants {
        let of_folder = |plugin: &&TenantFile| matches!(plugin.source, ContentSource::Folder(_));
        for (plugin, _) in tenant.plugins.iter().filter(|(_, plugin)| of_folder(plugin)) {
            let document = admin.find(&format!("tenants/{name}/plugins/{plugin}"))?;
            let Some(document) = document else { continue };
            let sources = document["sources"].as_str().and_then(|text| text.parse().ok());
            builds.extend(sources.zip(digest(&document)));
        }
    }
    Ok(builds)
}

impl CurrentTenant {
    fn read(admin: &Admin, name: &Name, manifest: &Tenant) -> Result<Option<Self>> {
        let path = format!("tenants/{name}");
        let Some(document) = admin.find(&path)? else { return Ok(None) };
        let mut tenant = Self { document, ..Self::default() };
        for item in admin.items(&format!("{path}/plugins"))? {
            tenant.plugins.insert(name_of(&item)?, digest(&item));
        }
        for item in admin.items(&format!("{path}/assets"))? {
            tenant.assets.insert(name_of(&item)?, digest(&item));
        }
        for item in admin.items(&format!("{path}/pipelines"))? {
            let pipeline = name_of(&item)?;
            let document = match manifest.pipelines.contains_key(&pipeline) {
                true => admin.find(&format!("{path}/pipelines/{pipeline}"))?.unwrap_or_default(),
                false => Value::Null,
            };
            tenant.pipelines.insert(pipeline, document);
        }
        Ok(Some(tenant))
    }

    /// The names of its keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Name> {
        let keys = self.document["api_keys"].as_array().into_iter().flatten();
        keys.filter_map(|key| key["name"].as_str()?.parse().ok())
    }
}

fn name_of(item: &Value) -> Result<Name> {
    let name = item["name"].as_str().unwrap_or_default();
    name.parse().with_context(|| format!("the server's list has the name {name:?}"))
}

fn digest(item: &Value) -> Option<Digest> {
    item["digest"].as_str()?.parse().ok()
}
