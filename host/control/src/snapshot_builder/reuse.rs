//! Decides which tenants can be taken from the snapshot before. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gristmill_core::Name;
use gristmill_snapshot::{AssetState, FileState, ModelState, PluginState, ServedModel};

/// The inputs of a tenant of a snapshot.
pub(super) struct Sources<'a> {
    pub(super) desired_tenant: &'a gristmill_state::Tenant,
    pub(super) plugins: &'a BTreeMap<Name, PluginState>,
    pub(super) assets: &'a BTreeMap<Name, AssetState>,
    /// All models of the host. Only those that the tenant names are compared.
    pub(super) models: &'a BTreeMap<Name, ModelState>,
}

impl Sources<'_> {
    /// Whether both make the same tenant: the desired state, the loaded plugins and assets, and the
    /// lanes of the versions of models that its pipelines name are the same. For what is not
    /// loaded, the reasons must be equal.
    pub(super) fn are_the_same(&self, other: &Sources<'_>) -> bool {
        // States share the tenants that a change does not touch, and a comparison costs time for
        // each byte of a tenant. Equal desired states name the same models.
        (std::ptr::eq(self.desired_tenant, other.desired_tenant)
            || self.desired_tenant == other.desired_tenant)
            && same_files(self.plugins, other.plugins)
            && same_files(self.assets, other.assets)
            && self
                .desired_tenant
                .spec
                .models
                .iter()
                .all(|name| self.models.contains_key(name) == other.models.contains_key(name))
            && self.desired_tenant.pipelines.values().flat_map(|pipeline| pipeline.models()).all(
                |named| {
                    let [old, new] = [self, other].map(|sources| sources.models.get(&named.name));
                    is_same_version(old, new, named.version)
                },
            )
    }
}

/// The models that a tenant is granted, and those of its pipelines.
pub(super) fn named_models(tenant: &gristmill_state::Tenant) -> impl Iterator<Item = &Name> {
    let pipelines = tenant.pipelines.values().flat_map(|pipeline| pipeline.models());
    tenant.spec.models.iter().chain(pipelines.map(|model| &model.name))
}

/// The models that are served in another way, or with other reasons why they are not.
pub(super) fn changed_models<'a>(
    before: &'a BTreeMap<Name, ModelState>,
    after: &'a BTreeMap<Name, ModelState>,
) -> BTreeSet<&'a Name> {
    let is_same = |name: &Name| match (before.get(name), after.get(name)) {
        (Some(before), Some(after)) => is_same_model(before, after),
        _ => false,
    };
    before.keys().chain(after.keys()).filter(|name| !is_same(name)).collect()
}

fn same_files<T>(old: &BTreeMap<Name, FileState<T>>, new: &BTreeMap<Name, FileState<T>>) -> bool {
    let is_same = |old: &FileState<T>, new: &FileState<T>| {
        same_versions(old.versions(), new.versions(), Arc::ptr_eq)
    };
    old.len() == new.len()
        && old.iter().zip(new).all(|((old_name, old), (new_name, new))| {
            old_name == new_name && old.digest == new.digest && is_same(old, new)
        })
}

fn is_same_version(
    old: Option<&ModelState>,
    new: Option<&ModelState>,
    version: Option<u64>,
) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return old.is_none() && new.is_none() };
    match (old.of_version(version), new.of_version(version)) {
        (Some(old), Some(new)) => is_loaded_alike(old, new, is_same_lane),
        // The fault of the pipeline names the versions that are there.
        _ => is_same_model(old, new),
    }
}

fn is_same_model(old: &ModelState, new: &ModelState) -> bool {
    same_versions(old.versions(), new.versions(), is_same_lane)
}

fn is_same_lane(old: &ServedModel, new: &ServedModel) -> bool {
    Arc::ptr_eq(&old.lane, &new.lane)
}

/// Whether both are loaded as the `same` thing, or are not loaded for equal reasons.
fn is_loaded_alike<T>(
    old: &Result<T, String>,
    new: &Result<T, String>,
    same: impl Fn(&T, &T) -> bool,
) -> bool {
    match (old, new) {
        (Ok(old), Ok(new)) => same(old, new),
        (Err(old), Err(new)) => old == new,
        _ => false,
    }
}

/// Whether both are the same versions, and each is the same in both.
fn same_versions<'a, T: 'a>(
    mut old: impl Iterator<Item = (u64, &'a Result<T, String>)>,
    mut new: impl Iterator<Item = (u64, &'a Result<T, String>)>,
    same: impl Fn(&T, &T) -> bool,
) -> bool {
    loop {
        match (old.next(), new.next()) {
            (None, None) => return true,
            (Some((old_version, old)), Some((new_version, new))) => {
                if old_version != new_version || !is_loaded_alike(old, new, &same) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}
