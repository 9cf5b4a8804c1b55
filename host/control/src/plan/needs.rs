//! The plugins and models that a desired state needs. Pure.

use std::collections::{BTreeMap, BTreeSet};

use gristmill_core::{Digest, Name};

use crate::desired::{Desired, Model};

/// The models that a desired state names, and the plugins of some of its tenants.
#[derive(Debug, PartialEq)]
pub(crate) struct Needs<'a> {
    /// The models that are in service.
    pub(crate) models: BTreeMap<&'a Name, &'a Model>,
    /// The plugins, each with the number of names that it has.
    pub(crate) plugins: BTreeMap<Digest, usize>,
}

impl<'a> Needs<'a> {
    pub(crate) fn of(desired: &'a Desired, tenants: &BTreeSet<Name>) -> Self {
        let models = desired.models.iter().filter(|(_, model)| !model.unloaded).collect();
        let mut plugins = BTreeMap::new();
        let tenants = tenants.iter().filter_map(|tenant| desired.tenants.get(tenant));
        for plugin in tenants.flat_map(|tenant| tenant.plugins.values()) {
            *plugins.entry(plugin.digest).or_default() += 1;
        }
        Self { models, plugins }
    }

    /// The most names that a message lists.
    pub(crate) fn names(&self) -> usize {
        self.models.len() + self.plugins.values().sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::change::Change;
    use crate::release::tenant::TenantSpec;

    #[test]
    fn a_file_is_needed_once_and_an_unloaded_model_is_not() {
        let digest = |byte| Digest::from_bytes([byte; 32]);
        let name = |text: &str| text.parse::<Name>().unwrap();
        let mut desired = Desired::default();
        let mut changes = vec![
            Change::PutModel { model: name("served"), digest: digest(1) },
            Change::PutModel { model: name("unloaded"), digest: digest(2) },
            Change::UnloadModel { model: name("unloaded") },
        ];
        for tenant in ["acme", "other"].map(name) {
            changes.push(Change::PutTenant { tenant: tenant.clone(), spec: TenantSpec::default() });
            let plugin = name("same");
            changes.push(Change::PutPlugin { tenant, plugin, digest: digest(3) });
        }
        desired.apply(1, &changes).unwrap();
        let needs = Needs::of(&desired, desired.touched());
        assert_eq!(needs.plugins, BTreeMap::from([(digest(3), 2)]));
        assert_eq!(needs.models.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["served"]);
        assert_eq!(needs.names(), 3);
    }
}
