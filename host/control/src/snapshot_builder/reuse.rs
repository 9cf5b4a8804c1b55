//! Decides which tenants can be taken from the snapshot before. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gristmill_core::Name;
use gristmill_snapshot::{ModelState, PluginState};

use crate::desired;
use crate::release::pipeline::PipelineSpec;

/// The inputs of a tenant of a snapshot.
pub(super) struct Sources<'a> {
    pub(super) own: &'a desired::Tenant,
    pub(super) plugins: &'a BTreeMap<Name, PluginState>,
    /// All models of the host. Only those that the tenant names are compared.
    pub(super) models: &'a BTreeMap<Name, ModelState>,
}

impl Sources<'_> {
    /// Whether both make the same tenant: the desired state, the loaded plugins and the lanes of
    /// its models are the same. For a plugin or model that is not loaded, the reasons must be
    /// equal.
    pub(super) fn are_the_same(&self, other: &Sources<'_>) -> bool {
        // States share the tenants that a change does not touch, and a comparison costs time for
        // each byte of a tenant. Equal desired states name the same models.
        (std::ptr::eq(self.own, other.own) || self.own == other.own)
            && same_plugins(self.plugins, other.plugins)
            && named_models(self.own).all(|name| {
                match (self.models.get(name), other.models.get(name)) {
                    (Some(old), Some(new)) => is_same_model(old, new),
                    (None, None) => true,
                    _ => false,
                }
            })
    }
}

/// The models that a tenant is granted, and those of its pipelines.
pub(super) fn named_models(own: &desired::Tenant) -> impl Iterator<Item = &Name> {
    let pipelines = own.pipelines.values().flat_map(PipelineSpec::models);
    own.spec.models.iter().chain(pipelines.map(|model| &model.name))
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

fn same_plugins(old: &BTreeMap<Name, PluginState>, new: &BTreeMap<Name, PluginState>) -> bool {
    let is_same = |old: &PluginState, new: &PluginState| {
        same_versions(old.versions(), new.versions(), |old, new| Arc::ptr_eq(old, new))
    };
    old.len() == new.len()
        && old.iter().zip(new).all(|((old_name, old), (new_name, new))| {
            old_name == new_name && old.digest == new.digest && is_same(old, new)
        })
}

fn is_same_model(old: &ModelState, new: &ModelState) -> bool {
    same_versions(old.versions(), new.versions(), |old, new| Arc::ptr_eq(&old.lane, &new.lane))
}

/// Whether both are the same versions, and each is loaded as the `same` thing, or is not loaded for
/// equal reasons.
fn same_versions<'a, T: 'a>(
    mut old: impl Iterator<Item = (u64, &'a Result<T, String>)>,
    mut new: impl Iterator<Item = (u64, &'a Result<T, String>)>,
    same: impl Fn(&T, &T) -> bool,
) -> bool {
    loop {
        match (old.next(), new.next()) {
            (None, None) => return true,
            (Some((old_version, old)), Some((new_version, new))) => {
                let is_same = match (old, new) {
                    (Ok(old), Ok(new)) => same(old, new),
                    (Err(old), Err(new)) => old == new,
                    _ => false,
                };
                if old_version != new_version || !is_same {
                    return false;
                }
            }
            _ => return false,
        }
    }
}
