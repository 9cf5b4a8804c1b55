//! The changes that bring back an earlier state. Pure.
//!
//! API keys do not come back: a key that was deleted because others know it stays deleted. Only a
//! tenant without any key, which nobody could call, gets those of the earlier state, in which
//! tenants have the keys that they had last (`last_keys`). Admin tokens stay as they are.
//!
//! Content that comes back gets a new version, unless it was replaced in its own. A pipeline or a
//! version policy that names an earlier version gets this one, under its own number, beside the
//! newest one.

use std::collections::{BTreeMap, BTreeSet};

use gristmill_core::{Digest, Name};

use crate::desired::{Desired, Model, Tenant, TenantFile};
use crate::error::StateError;
use crate::release::change::Change;
use crate::release::named_version::NamedVersion;
use crate::release::pipeline::PipelineSpec;
use crate::release::tenant::TenantSpec;

/// The part of the state that is brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All tenants and all models.
    Everything,
    /// One tenant with its plugins, assets and pipelines.
    Tenant(Name),
    /// The plugins, assets and pipelines of a tenant, with its default pipeline. Its other settings
    /// stay as they are, because the operator sets them.
    PartsOf(Name),
    /// One model with its configuration.
    Model(Name),
}

/// The changes from `now` to the state `then` of release `number`, in an order in which each can be
/// made.
///
/// # Errors
/// [`StateError::NotThen`]: the release did not have the tenant or the model.
pub fn restore(
    now: &Desired,
    then: &Desired,
    scope: &Scope,
    number: u64,
) -> Result<Vec<Change>, StateError> {
    let not_then = |what, name: &Name| StateError::NotThen { what, name: name.clone(), number };
    let mut changes = Vec::new();
    match scope {
        Scope::Model(name) => {
            let model = then.models.get(name).ok_or_else(|| not_then("model", name))?;
            put_model(now, name, model, &mut changes);
        }
        Scope::Tenant(name) => {
            let tenant = then.tenants.get(name).ok_or_else(|| not_then("tenant", name))?;
            put_model_versions(now, then, [&**tenant], &mut changes);
            put_tenant(now, name, tenant, &mut changes);
        }
        Scope::PartsOf(name) => {
            // A tenant that had the same name before is another one.
            let current = now.tenants.get(name).filter(|entry| entry.since <= number);
            let (Some(current), Some(tenant)) = (current, then.tenants.get(name)) else {
                return Err(not_then("tenant", name));
            };
            let default_pipeline = tenant.spec.default_pipeline.clone();
            let spec = TenantSpec { default_pipeline, ..current.spec.clone() };
            put_tenant(now, name, &Tenant { spec, ..(**tenant).clone() }, &mut changes);
        }
        Scope::Everything => {
            for (name, model) in &then.models {
                put_model(now, name, model, &mut changes);
            }
            let tenants = then.tenants.values().map(|tenant| &**tenant);
            put_model_versions(now, then, tenants, &mut changes);
            for (name, tenant) in &then.tenants {
                put_tenant(now, name, tenant, &mut changes);
            }
            // Tenants go before the models that they use.
            for (name, tenant) in &now.tenants {
                if !then.tenants.contains_key(name) {
                    delete_tenant(name, tenant, &mut changes);
                }
            }
            let gone = now.models.keys().filter(|name| !then.models.contains_key(*name));
            changes.extend(gone.map(|name| Change::DeleteModel { model: name.clone() }));
        }
    }
    Ok(changes)
}

fn put_model(now: &Desired, name: &Name, then: &Model, changes: &mut Vec<Change>) {
    let current = now.models.get(name);
    let (model, digest, config) = (name.clone(), then.digest, then.config.clone());
    if current.is_none_or(|model| model.digest != digest) {
        // A version whose content was replaced gets the earlier content back.
        let version = current.map(|model| model.version).filter(|version| *version == then.version);
        changes.push(Change::PutModel { model: model.clone(), digest, version });
    }
    for version in config.version_policy.named() {
        let has = |model: &Model| model.file(version);
        if let (None, Some(digest)) = (current.and_then(has), has(then)) {
            changes.push(Change::PutModelVersion { model: model.clone(), version, digest });
        }
    }
    if current.map_or_else(Default::default, |model| model.config.clone()) != config {
        changes.push(Change::PutModelConfig { model: model.clone(), config: config.into() });
    }
    if current.is_some_and(|model| model.unloaded) != then.unloaded {
        changes.push(match then.unloaded {
            true => Change::UnloadModel { model },
            false => Change::LoadModel { model },
        });
    }
}

/// Bring back the versions of models that the pipelines of these tenants name. If a model is gone,
/// or the version was not there, the pipelines have a fault.
fn put_model_versions<'a>(
    now: &Desired,
    then: &Desired,
    tenants: impl IntoIterator<Item = &'a Tenant>,
    changes: &mut Vec<Change>,
) {
    let pipelines = tenants.into_iter().flat_map(|tenant| tenant.pipelines.values());
    let named: BTreeSet<_> = pipelines.flat_map(|pipeline| pipeline.models()).collect();
    for NamedVersion { name, version } in named {
        let Some(version) = version else { continue };
        let find = |state: &Desired| state.models.get(name)?.file(*version);
        let (None, Some(digest)) = (find(now), find(then)) else { continue };
        let puts =
            |change: &Change| matches!(change, Change::PutModel { model, .. } if model == name);
        if !now.models.contains_key(name) && !changes.iter().any(puts) {
            continue;
        }
        let (model, version) = (name.clone(), *version);
        let change = Change::PutModelVersion { model, version, digest };
        // The policy of the model may name it, too.
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
}

/// A kind of files of a tenant.
struct Kind {
    of: fn(&Tenant) -> &BTreeMap<Name, TenantFile>,
    /// The files that a pipeline names.
    named: fn(&PipelineSpec) -> Vec<&NamedVersion>,
    put: fn(Name, Name, Digest) -> Change,
    put_version: fn(Name, Name, u64, Digest) -> Change,
    delete: fn(Name, Name) -> Change,
}

const PLUGINS: Kind = Kind {
    of: |tenant| &tenant.plugins,
    named: |pipeline| pipeline.plugins().collect(),
    put: |tenant, plugin, digest| Change::PutPlugin { tenant, plugin, digest },
    put_version: |tenant, plugin, version, digest| Change::PutPluginVersion {
        tenant,
        plugin,
        version,
        digest,
    },
    delete: |tenant, plugin| Change::DeletePlugin { tenant, plugin },
};

const ASSETS: Kind = Kind {
    of: |tenant| &tenant.assets,
    named: |pipeline| pipeline.assets().collect(),
    put: |tenant, asset, digest| Change::PutAsset { tenant, asset, digest },
    put_version: |tenant, asset, version, digest| Change::PutAssetVersion {
        tenant,
        asset,
        version,
        digest,
    },
    delete: |tenant, asset| Change::DeleteAsset { tenant, asset },
};

impl Kind {
    /// Bring back a tenant's files, and those of their earlier versions that its pipelines or its
    /// policy name.
    fn put_all(&self, now: &Tenant, name: &Name, then: &Tenant, changes: &mut Vec<Change>) {
        let current = (self.of)(now);
        for (file, old) in (self.of)(then) {
            if current.get(file).is_none_or(|file| file.digest != old.digest) {
                changes.push((self.put)(name.clone(), file.clone(), old.digest));
            }
        }
        for (file, old) in (self.of)(then) {
            let named = then.pipelines.values().flat_map(|pipeline| (self.named)(pipeline));
            let named = named.filter(|other| other.name == *file).filter_map(|other| other.version);
            let named: BTreeSet<_> = named.chain(then.spec.plugin_version_policy.named()).collect();
            for version in named {
                let has = |file: &TenantFile| file.file(Some(version));
                let (None, Some(digest)) = (current.get(file).and_then(has), has(old)) else {
                    continue;
                };
                changes.push((self.put_version)(name.clone(), file.clone(), version, digest));
            }
        }
    }

    /// Delete the files of `now` that `then` does not have.
    fn delete_others(&self, now: &Tenant, name: &Name, then: &Tenant, changes: &mut Vec<Change>) {
        let stays = (self.of)(then);
        let gone = (self.of)(now).keys().filter(|file| !stays.contains_key(*file));
        changes.extend(gone.map(|file| (self.delete)(name.clone(), file.clone())));
    }
}

fn put_tenant(now: &Desired, name: &Name, then: &Tenant, changes: &mut Vec<Change>) {
    let none = Tenant::default();
    let current = now.tenants.get(name);
    let mut spec = then.spec.clone();
    match current {
        Some(_) if spec.open => spec.keys.clear(),
        Some(tenant) if !tenant.spec.keys.is_empty() => spec.keys = tenant.spec.keys.clone(),
        _ => {}
    }
    if current.is_none_or(|tenant| tenant.spec != spec) {
        changes.push(Change::PutTenant { tenant: name.clone(), spec });
    }
    let current = current.map_or(&none, |tenant| &**tenant);
    PLUGINS.put_all(current, name, then, changes);
    ASSETS.put_all(current, name, then, changes);
    for (pipeline, spec) in &then.pipelines {
        if current.pipelines.get(pipeline) != Some(spec) {
            let (tenant, pipeline, spec) = (name.clone(), pipeline.clone(), spec.clone());
            changes.push(Change::PutPipeline { tenant, pipeline, spec });
        }
    }
    // Pipelines go before the files that they use.
    let gone = current.pipelines.keys().filter(|pipeline| !then.pipelines.contains_key(*pipeline));
    changes.extend(gone.map(|pipeline| delete_pipeline(name, pipeline)));
    PLUGINS.delete_others(current, name, then, changes);
    ASSETS.delete_others(current, name, then, changes);
}

fn delete_tenant(name: &Name, tenant: &Tenant, changes: &mut Vec<Change>) {
    if tenant.spec.default_pipeline.is_some() {
        let spec = TenantSpec { default_pipeline: None, ..tenant.spec.clone() };
        changes.push(Change::PutTenant { tenant: name.clone(), spec });
    }
    changes.extend(tenant.pipelines.keys().map(|pipeline| delete_pipeline(name, pipeline)));
    PLUGINS.delete_others(tenant, name, &Tenant::default(), changes);
    ASSETS.delete_others(tenant, name, &Tenant::default(), changes);
    changes.push(Change::DeleteTenant { tenant: name.clone() });
}

fn delete_pipeline(tenant: &Name, pipeline: &Name) -> Change {
    Change::DeletePipeline { tenant: tenant.clone(), pipeline: pipeline.clone() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{digest, name};

    fn put_asset(byte: u8) -> Change {
        Change::PutAsset { tenant: name("acme"), asset: name("a"), digest: digest(byte) }
    }

    fn naming(asset: &str) -> Change {
        let spec = json!({ "pre": "p", "model": "m", "post": "p", "assets": { "x": asset } });
        let spec = serde_json::from_value(spec).unwrap();
        Change::PutPipeline { tenant: name("acme"), pipeline: name("main"), spec }
    }

    #[test]
    fn assets_go_back_with_the_versions_that_pipelines_name() {
        let mut then = Desired::default();
        let tenant = Change::PutTenant { tenant: name("acme"), spec: TenantSpec::default() };
        then.apply(1, &[tenant, put_asset(1)]).unwrap();
        then.apply(2, &[naming("a@1")]).unwrap();
        then.apply(3, &[put_asset(2)]).unwrap();
        assert_eq!(then.tenants["acme"].assets["a"].kept, [(1, digest(1))].into());
        let mut now = then.clone();
        now.apply(4, &[naming("a"), put_asset(3)]).unwrap();
        assert!(now.tenants["acme"].assets["a"].kept.is_empty());
        let changes = restore(&now, &then, &Scope::PartsOf(name("acme")), 3).unwrap();
        now.apply(5, &changes).unwrap();
        let asset = &now.tenants["acme"].assets["a"];
        assert_eq!((asset.digest, asset.version), (digest(2), 5));
        assert_eq!(asset.kept, [(1, digest(1))].into());
        assert_eq!(now.tenants["acme"].pipelines, then.tenants["acme"].pipelines);
        // One that came later goes, after the pipelines that name it.
        let none = Desired::default();
        let changes = restore(&now, &none, &Scope::Everything, 0).unwrap();
        now.apply(6, &changes).unwrap();
        assert_eq!(now, none);
    }
}
