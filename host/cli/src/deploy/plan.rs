//! The changes that bring a server to a manifest. Pure.
//!
//! A thing that is equal already gets no change, so that a second deploy changes nothing, and so
//! that a token with few rights can deploy what it may change. Only the server knows whether some
//! documents are equal (defaults of a newer version, keys that are not shown): those get a change,
//! which the server finds to change nothing.
//!
//! Things of the manifest's tenants that the manifest does not name stay, unless they are pruned.

use gristmill_core::{Digest, Name};
use serde_json::{Map, Value, json};

use super::current::{Current, CurrentTenant};
use super::files::Files;
use super::manifest::{ContentSource, Key, Manifest, Model, Tenant};
use super::position::{Faults, FilePosition};
use crate::defaults::Defaults;
use crate::signature;

/// A change, as the admin API takes it. It may have a key in clear text, so it is not shown.
pub(crate) struct Change {
    /// The thing in words.
    pub(crate) label: String,
    /// None for what the manifest does not name.
    pub(crate) position: Option<FilePosition>,
    pub(crate) document: Value,
    /// The content that the server must have.
    pub(crate) content: Option<Digest>,
}

/// All changes.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    /// The things of the manifest's tenants that stay although the manifest does not name them.
    pub(crate) kept: Vec<String>,
}

/// The changes from `current` to `manifest`. With `prune`, what the manifest does not name is
/// deleted.
///
/// # Errors
/// The manifest names keys that the server does not have, without their values.
pub(crate) fn plan(
    manifest: &Manifest,
    files: &Files,
    current: &Current,
    prune: bool,
) -> Result<Plan, Faults> {
    let mut planner = Planner {
        files,
        prune,
        plan: Plan::default(),
        deletions: Vec::new(),
        faults: <_>::default(),
    };
    for (name, model) in &manifest.models {
        planner.model(name, model, current);
    }
    let tenants =
        || manifest.tenants.iter().map(|(name, tenant)| (name, tenant, current.tenants.get(name)));
    // A tenant comes before what it owns. The pipelines and models that it names may come later.
    tenants().for_each(|(name, tenant, now)| planner.tenant(name, tenant, now));
    tenants().for_each(|(name, tenant, now)| planner.files(name, tenant, now));
    tenants().for_each(|(name, tenant, now)| planner.pipelines(name, tenant, now));
    let Planner { mut plan, deletions, faults, .. } = planner;
    plan.changes.extend(deletions);
    faults.unless_any(plan)
}

struct Planner<'a> {
    files: &'a Files,
    prune: bool,
    plan: Plan,
    /// They come last: what uses a thing is changed before.
    deletions: Vec<Change>,
    faults: Faults,
}

impl Planner<'_> {
    fn model(&mut self, name: &Name, model: &Model, current: &Current) {
        let now = current.models.get(name);
        let Model { source, config, position } = model;
        let put = json!({ "kind": "put_model", "model": name });
        let label = format!("model {name}");
        self.content(label, put, (source, position), now.and_then(|now| now.digest));
        if let Some(config) = config
            && !now.is_some_and(|now| Defaults::of("model_config").are_same(config, &now.config))
        {
            let document = json!({ "kind": "put_model_config", "model": name, "document": config });
            self.put(format!("config of model {name}"), position, document);
        }
    }

    /// The document of a tenant, and its keys.
    fn tenant(&mut self, name: &Name, tenant: &Tenant, now: Option<&CurrentTenant>) {
        let Some(document) = &tenant.document else { return };
        let position = &document.position;
        let label = format!("tenant {name}");
        let keys = tenant.keys.as_deref().unwrap_or_default();
        let has = |key: &Key| now.is_some_and(|now| now.keys().any(|name| name == key.name));
        for key in keys.iter().filter(|key| key.secret.is_none() && !has(key)) {
            let key_name = key.name.as_str();
            let text = format!(
                "tenants.{name}.api_keys: the tenant has no key {key_name:?} that could stay: name \
                 the variable with the key in env"
            );
            self.faults.at(&key.position, text);
        }
        let mut wanted = document.keys.clone();
        if let Some(Value::Array(models)) = wanted.get_mut("models") {
            // A set, which the server sorts.
            models.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            models.dedup();
        }
        let is_open = wanted.get("open") == Some(&Value::Bool(true));
        // The tenant's other keys.
        let others = || now.into_iter().flat_map(CurrentTenant::keys);
        let others: Vec<_> = others()
            .filter(|other| keys.iter().all(|key| key.name != *other) && !is_open)
            .collect();
        let others_go = self.prune && tenant.keys.is_some();
        let is_same = now.is_some_and(|now| {
            let mut now = now.document.clone();
            if let Some(now) = now.as_object_mut() {
                now.remove("api_keys");
            }
            Defaults::of("tenant").are_same(&wanted, &now)
        });
        if !others_go && tenant.keys.is_some() {
            let kept = others.iter().map(|key| format!("key {name}/{key}"));
            self.plan.kept.extend(kept);
        }
        if is_same && !is_open {
            for key in keys {
                self.key(name, key);
            }
            for key in others.iter().filter(|_| others_go) {
                self.delete("key", name, key);
            }
        } else if !is_same || !keys.is_empty() {
            let kept = others.into_iter().filter(|_| !others_go);
            let kept = kept.map(|name| json!({ "name": name }));
            let all: Vec<_> = keys.iter().map(document_of).chain(kept).collect();
            if !all.is_empty() {
                wanted.insert("api_keys".into(), all.into());
            }
            let document = json!({ "kind": "put_tenant", "tenant": name, "document": wanted });
            self.put(label, position, document);
        }
    }

    /// A key whose value is given. Only the server knows whether it has this value already.
    fn key(&mut self, tenant: &Name, key: &Key) {
        if let Some(secret) = &key.secret {
            let name = &key.name;
            let document = json!({ "kind": "put_key", "tenant": tenant, "key": name,
                "document": { "key": secret.0 } });
            self.put(format!("key {tenant}/{name}"), &key.position, document);
        }
    }

    /// The plugins and the assets of a tenant.
    fn files(&mut self, name: &Name, tenant: &Tenant, now: Option<&CurrentTenant>) {
        let document = tenant.document.as_ref().map(|document| document.keys.clone().into());
        let document = document.or_else(|| now.map(|now| now.document.clone()));
        let signers = signature::signers(&document.unwrap_or_default());
        for (plugin, plugin_entry) in &tenant.plugins {
            let current = now.and_then(|now| now.plugins.get(plugin).copied()).flatten();
            let mut put = json!({ "kind": "put_plugin", "tenant": name, "plugin": plugin });
            if let Some(signature) = self.files.signature(plugin_entry, &signers) {
                put["signature"] = json!(signature.document());
            }
            let label = format!("plugin {name}/{plugin}");
            self.content(label, put, (&plugin_entry.source, &plugin_entry.position), current);
        }
        for (asset, entry) in &tenant.assets {
            let current = now.and_then(|now| now.assets.get(asset).copied()).flatten();
            let put = json!({ "kind": "put_asset", "tenant": name, "asset": asset });
            let label = format!("asset {name}/{asset}");
            self.content(label, put, (&entry.source, &entry.position), current);
        }
    }

    fn pipelines(&mut self, name: &Name, tenant: &Tenant, now: Option<&CurrentTenant>) {
        for (pipeline, document) in &tenant.pipelines {
            let current = now.and_then(|now| now.pipelines.get(pipeline));
            let is_same = |now| Defaults::of("pipeline").are_same(&document.keys, now);
            if current.is_some_and(is_same) {
                continue;
            }
            let put = json!({ "kind": "put_pipeline", "tenant": name, "pipeline": pipeline,
                "document": document.keys });
            self.put(format!("pipeline {name}/{pipeline}"), &document.position, put);
        }
        let Some(now) = now else { return };
        for pipeline in
            now.pipelines.keys().filter(|pipeline| !tenant.pipelines.contains_key(*pipeline))
        {
            self.unnamed("pipeline", name, pipeline);
        }
        // Plugins and assets that the manifest's pipelines use are named, too, in any version. A
        // candidate has the same keys as its pipeline.
        let programs = || {
            tenant.pipelines.values().flat_map(|pipeline| {
                let candidate = pipeline.keys.get("candidate").and_then(Value::as_object);
                std::iter::once(&pipeline.keys).chain(candidate)
            })
        };
        let plugins =
            programs().flat_map(|keys| ["pre", "post", "handler"].map(|part| keys.get(part)));
        let assets = programs().filter_map(|keys| keys.get("assets").and_then(Value::as_object));
        for (kind, there, in_manifest, used) in [
            ("plugin", &now.plugins, &tenant.plugins, Vec::from_iter(plugins.flatten())),
            ("asset", &now.assets, &tenant.assets, assets.flat_map(Map::values).collect()),
        ] {
            let names = |named: &Value, file: &Name| {
                named.as_str().unwrap_or_default().split('@').next() == Some(file.as_str())
            };
            let is_named = |file: &Name| {
                in_manifest.contains_key(file) || used.iter().any(|named| names(named, file))
            };
            for file in there.keys().filter(|file| !is_named(file)) {
                self.unnamed(kind, name, file);
            }
        }
    }

    /// A plugin, an asset or a model, unless the server has this content under its name.
    fn content(
        &mut self,
        label: String,
        mut put: Value,
        (source, position): (&ContentSource, &FilePosition),
        current: Option<Digest>,
    ) {
        let digest = self.files.digest(source);
        if digest.is_some() && digest != current {
            put["digest"] = digest.map(|digest| digest.to_string()).into();
            let position = Some(position.clone());
            self.plan.changes.push(Change { label, position, document: put, content: digest });
        }
    }

    fn put(&mut self, label: String, position: &FilePosition, document: Value) {
        let position = Some(position.clone());
        self.plan.changes.push(Change { label, position, document, content: None });
    }

    /// A thing that the manifest does not name.
    fn unnamed(&mut self, kind: &str, tenant: &Name, name: &Name) {
        match self.prune {
            true => self.delete(kind, tenant, name),
            false => self.plan.kept.push(format!("{kind} {tenant}/{name}")),
        }
    }

    fn delete(&mut self, kind: &str, tenant: &Name, name: &Name) {
        let mut document = json!({ "kind": format!("delete_{kind}"), "tenant": tenant });
        document[kind] = name.as_str().into();
        let label = format!("{kind} {tenant}/{name}");
        self.deletions.push(Change { label, position: None, document, content: None });
    }
}

/// A key in the document of a tenant.
fn document_of(key: &Key) -> Value {
    match &key.secret {
        Some(secret) => json!({ "name": key.name, "key": secret.0 }),
        None => json!({ "name": key.name }),
    }
}

impl Change {
    /// Whether this change is the cause of a difference in an answer of the admin API.
    pub(crate) fn makes(&self, difference: &Value) -> bool {
        let Self { document, .. } = self;
        let kind = document["kind"].as_str().and_then(|kind| kind.split_once('_'));
        let kind = kind.map_or("", |(_, kind)| kind);
        let same = |name: &str| document[name] == difference[name];
        match kind {
            // Its keys are in its document.
            "tenant" => {
                same("tenant") && ["tenant", "key"].iter().any(|kind| difference["kind"] == *kind)
            }
            _ => {
                difference["kind"] == kind
                    && ["tenant", "model", "key", "plugin", "asset", "pipeline"]
                        .into_iter()
                        .all(same)
            }
        }
    }
}

#[cfg(test)]
mod tests;
