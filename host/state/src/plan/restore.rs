//! The changes that bring back an earlier state. Pure.
//!
//! API keys do not come back: a key that was deleted because others know it stays deleted. Only a
//! tenant without any key, which nobody could call, gets those of the earlier state, in which
//! tenants have the keys that they had last (`last_keys`). Admin tokens stay as they are.
//!
//! Content that comes back gets a new version, unless it was replaced in its own. A pipeline or a
//! version policy that names an earlier version gets this one, under its own number, beside the
//! newest one.

use std::collections::BTreeSet;

use gristmill_core::Name;

use crate::desired::{Desired, Model, Plugin, Tenant};
use crate::error::StateError;
use crate::release::change::Change;
use crate::release::named_version::NamedVersion;
use crate::release::tenant::TenantSpec;

/// The part of the state that is brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All tenants and all models.
    Everything,
    /// One tenant with its plugins and pipelines.
    Tenant(Name),
    /// The plugins and pipelines of a tenant, with its default pipeline. Its other settings stay as
    /// they are, because the operator sets them.
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

/// Bring back the versions of a tenant's plugins that its pipelines or its policy name.
fn put_plugin_versions(now: &Tenant, name: &Name, then: &Tenant, changes: &mut Vec<Change>) {
    for (plugin, old) in &then.plugins {
        let named = then.pipelines.values().flat_map(|pipeline| pipeline.plugins());
        let named = named.filter(|other| other.name == *plugin).filter_map(|other| other.version);
        let named: BTreeSet<_> = named.chain(then.spec.plugin_version_policy.named()).collect();
        for version in named {
            let has = |plugin: &Plugin| plugin.file(Some(version));
            let (None, Some(digest)) = (now.plugins.get(plugin).and_then(has), has(old)) else {
                continue;
            };
            let (tenant, plugin) = (name.clone(), plugin.clone());
            changes.push(Change::PutPluginVersion { tenant, plugin, version, digest });
        }
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
    for (plugin, then) in &then.plugins {
        if current.plugins.get(plugin).is_none_or(|plugin| plugin.digest != then.digest) {
            let (tenant, plugin, digest) = (name.clone(), plugin.clone(), then.digest);
            changes.push(Change::PutPlugin { tenant, plugin, digest });
        }
    }
    put_plugin_versions(current, name, then, changes);
    for (pipeline, spec) in &then.pipelines {
        if current.pipelines.get(pipeline) != Some(spec) {
            let (tenant, pipeline, spec) = (name.clone(), pipeline.clone(), spec.clone());
            changes.push(Change::PutPipeline { tenant, pipeline, spec });
        }
    }
    // Pipelines go before the plugins that they use.
    let gone = current.pipelines.keys().filter(|pipeline| !then.pipelines.contains_key(*pipeline));
    changes.extend(gone.map(|pipeline| delete_pipeline(name, pipeline)));
    let gone = current.plugins.keys().filter(|plugin| !then.plugins.contains_key(*plugin));
    changes.extend(gone.map(|plugin| delete_plugin(name, plugin)));
}

fn delete_tenant(name: &Name, tenant: &Tenant, changes: &mut Vec<Change>) {
    if tenant.spec.default_pipeline.is_some() {
        let spec = TenantSpec { default_pipeline: None, ..tenant.spec.clone() };
        changes.push(Change::PutTenant { tenant: name.clone(), spec });
    }
    changes.extend(tenant.pipelines.keys().map(|pipeline| delete_pipeline(name, pipeline)));
    changes.extend(tenant.plugins.keys().map(|plugin| delete_plugin(name, plugin)));
    changes.push(Change::DeleteTenant { tenant: name.clone() });
}

fn delete_pipeline(tenant: &Name, pipeline: &Name) -> Change {
    Change::DeletePipeline { tenant: tenant.clone(), pipeline: pipeline.clone() }
}

fn delete_plugin(tenant: &Name, plugin: &Name) -> Change {
    Change::DeletePlugin { tenant: tenant.clone(), plugin: plugin.clone() }
}
