//! The rules for the versions of a plugin, an asset or a model that stay loaded. Pure.
//!
//! Invariant: a model has at most [`MODEL_VERSIONS_MAX`] versions loaded, a tenant's plugin or
//! asset [`PLUGIN_VERSIONS_MAX`]. An earlier version that cannot be loaded is a fault of its own,
//! and takes nothing else down.

use std::collections::BTreeSet;

use gristmill_core::Name;
use gristmill_snapshot::loaded_versions;

use crate::asked::AskedChange;
use crate::desired::{Desired, Model, Tenant, TenantFile};
use crate::error::StateError;
use crate::fault::Subject;
use crate::release::change::Change;
use crate::release::named_version::NamedVersion;
use crate::release::pipeline::PipelineSpec;
use crate::release::version_policy::{MODEL_VERSIONS_MAX, PLUGIN_VERSIONS_MAX};
use crate::too_many_versions::TooManyVersions;

/// The highest number of a version: clients read signed numbers.
pub const VERSION_MAX: u64 = i64::MAX as u64 / 2;

/// Check the versions that stay in `after` because of a change of its release.
///
/// # Errors
/// [`TooManyVersions`]; or a policy names a version whose content is not there. What it named in
/// `before` may have gone since.
pub(super) fn check(
    before: &Desired,
    after: &Desired,
    change: &AskedChange,
) -> Result<(), StateError> {
    match change {
        AskedChange::PutPlugin { tenant, plugin, .. }
        | AskedChange::Known(
            Change::PutPlugin { tenant, plugin, .. }
            | Change::PutPluginVersion { tenant, plugin, .. },
        ) => after.tenants.get(tenant).map_or(Ok(()), |entry| {
            let file = entry.plugins.get(plugin);
            check_file((tenant, &**entry), ("plugin", plugin), file, |spec| {
                spec.plugins().collect()
            })
        }),
        AskedChange::Known(
            Change::PutAsset { tenant, asset, .. } | Change::PutAssetVersion { tenant, asset, .. },
        ) => after.tenants.get(tenant).map_or(Ok(()), |entry| {
            let file = entry.assets.get(asset);
            check_file((tenant, &**entry), ("asset", asset), file, |spec| spec.assets().collect())
        }),
        AskedChange::Known(
            Change::PutModel { model, .. } | Change::PutModelVersion { model, .. },
        ) => check_model(after, model),
        AskedChange::Known(Change::PutModelConfig { model, .. }) => match after.models.get(model) {
            Some(entry) => check_model_policy(model, entry),
            None => Ok(()),
        },
        // Going back brings back a policy whose versions may have gone with their plugin.
        AskedChange::PutTenant { tenant, .. } => check_plugin_policy(before, after, tenant),
        _ => Ok(()),
    }
}

/// Check the number that is chosen for a new version of a model.
///
/// # Errors
/// It is lower than that of the newest version in `before`, or is not a version's number.
pub(super) fn check_chosen(before: &Desired, change: &Change) -> Result<(), StateError> {
    let Change::PutModel { model, version: Some(version), .. } = change else { return Ok(()) };
    let newest = before.models.get(model).map_or(1, |entry| entry.version);
    if (newest..=VERSION_MAX).contains(version) {
        return Ok(());
    }
    let fault = match before.models.get(model) {
        Some(_) => format!(
            "version is {version}: the newest version of model {:?} is {newest}; choose a higher \
             one, or {newest} to replace its content",
            model.as_str()
        ),
        None => format!("version is {version}: must be 1 to {VERSION_MAX}"),
    };
    Err(StateError::document(Subject::Model(model.clone()), "version", fault))
}

/// Check one of a tenant's files. `named` has those of its kind that a pipeline names.
fn check_file(
    (tenant, entry): (&Name, &Tenant),
    (what, name): (&'static str, &Name),
    file: Option<&TenantFile>,
    named: fn(&PipelineSpec) -> Vec<&NamedVersion>,
) -> Result<(), StateError> {
    let count = file.map_or(0, |file| file.kept.len() + 1);
    if count <= PLUGIN_VERSIONS_MAX {
        return Ok(());
    }
    let pipelines = entry.pipelines.iter().map(|(name, spec)| (tenant, name, &**spec));
    Err(TooManyVersions {
        what,
        name: name.to_string(),
        count,
        limit: PLUGIN_VERSIONS_MAX,
        policy: "the tenant's plugin_version_policy",
        pins: pins(pipelines, |spec| {
            named(spec).into_iter().filter(|named| is_pin(named, name)).collect()
        }),
    }
    .into())
}

fn check_model(after: &Desired, model: &Name) -> Result<(), StateError> {
    let count = after.models.get(model).map_or(0, |model| model.kept.len() + 1);
    if count <= MODEL_VERSIONS_MAX {
        return Ok(());
    }
    let pipelines = after.tenants.iter().flat_map(|(tenant, entry)| {
        entry.pipelines.iter().map(move |(name, spec)| (tenant, name, &**spec))
    });
    Err(TooManyVersions {
        what: "model",
        name: model.to_string(),
        count,
        limit: MODEL_VERSIONS_MAX,
        policy: "its version_policy",
        pins: pins(pipelines, |spec| spec.models().filter(|named| is_pin(named, model)).collect()),
    }
    .into())
}

fn is_pin(named: &NamedVersion, name: &Name) -> bool {
    named.name == *name && named.version.is_some()
}

/// "acme/main (cnn@14, cnn@15)" for each pipeline that has pins.
fn pins<'a>(
    pipelines: impl Iterator<Item = (&'a Name, &'a Name, &'a PipelineSpec)>,
    pins: impl Fn(&'a PipelineSpec) -> BTreeSet<&'a NamedVersion>,
) -> Vec<String> {
    let text = |(tenant, pipeline, spec)| {
        let named: Vec<_> = pins(spec).into_iter().map(ToString::to_string).collect();
        (!named.is_empty()).then(|| format!("{tenant}/{pipeline} ({})", named.join(", ")))
    };
    pipelines.filter_map(text).collect()
}

fn check_model_policy(name: &Name, model: &Model) -> Result<(), StateError> {
    let has = |asked: &u64| model.versions().any(|(version, _)| version == *asked);
    let missing = model.config.version_policy.named().find(|version| !has(version));
    missing.map_or(Ok(()), |version| {
        let loaded = loaded_versions(model.versions().map(|(version, _)| version));
        let fault = format!("version_policy: version {version} is not there any more: {loaded}");
        Err(StateError::document(Subject::ModelConfig(name.clone()), "version_policy", fault))
    })
}

fn check_plugin_policy(before: &Desired, after: &Desired, tenant: &Name) -> Result<(), StateError> {
    let Some(entry) = after.tenants.get(tenant) else { return Ok(()) };
    let named_before = before.tenants.get(tenant).map(|before| &before.spec.plugin_version_policy);
    let is_known =
        |asked: u64| named_before.is_some_and(|policy| policy.named().any(|named| named == asked));
    let versions = || entry.files().flat_map(TenantFile::versions).map(|(version, _)| version);
    let is_missing =
        |asked: &u64| !is_known(*asked) && !versions().any(|version| version == *asked);
    let missing = entry.spec.plugin_version_policy.named().find(is_missing);
    missing.map_or(Ok(()), |version| {
        let fault = format!(
            "plugin_version_policy: no plugin or asset of the tenant has a version {version} any \
             more"
        );
        let subject = Subject::Tenant(tenant.clone());
        Err(StateError::document(subject, "plugin_version_policy", fault))
    })
}

#[cfg(test)]
mod tests;
