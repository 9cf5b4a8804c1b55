//! The plugins, assets and models that a desired state needs. Pure.

use std::collections::{BTreeMap, BTreeSet};

use gristmill_core::{Digest, Name};

use crate::desired::{Desired, TenantFile};
use crate::release::model_config::ModelConfig;

/// The models that a desired state names, and the plugins and assets of some of its tenants: all
/// versions that stay.
#[derive(Debug, PartialEq)]
pub struct Needs<'a> {
    /// The files of the models that are in service, each with the model's configuration.
    pub models: BTreeMap<(&'a Name, Digest), &'a ModelConfig>,
    /// The files of the plugins, each with the number of names that it has.
    pub plugins: BTreeMap<NeededFile<'a>, usize>,
    /// The files of the assets, likewise.
    pub assets: BTreeMap<NeededFile<'a>, usize>,
}

/// A file that a tenant needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeededFile<'a> {
    /// The tenant.
    pub tenant: &'a Name,
    /// The release that made the tenant.
    pub since: u64,
    /// The file's digest.
    pub digest: Digest,
}

impl<'a> Needs<'a> {
    /// What `desired` needs of models, and of the files of `tenants`.
    pub fn of(desired: &'a Desired, tenants: &BTreeSet<Name>) -> Self {
        let models = desired.models.iter().filter(|(_, model)| !model.unloaded);
        let models = models.flat_map(|(name, model)| {
            model.versions().map(move |(_, digest)| ((name, digest), &model.config))
        });
        let (mut plugins, mut assets) = (BTreeMap::new(), BTreeMap::new());
        for name in tenants {
            let Some((name, tenant)) = desired.tenants.get_key_value(name) else { continue };
            count(&mut plugins, name, tenant.since, &tenant.plugins);
            count(&mut assets, name, tenant.since, &tenant.assets);
        }
        Self { models: models.collect(), plugins, assets }
    }

    /// The number of names of all of them.
    pub fn names(&self) -> usize {
        let files = self.plugins.values().chain(self.assets.values());
        self.models.len() + files.sum::<usize>()
    }
}

/// Count the names of the files of all versions.
fn count<'a>(
    counted: &mut BTreeMap<NeededFile<'a>, usize>,
    tenant: &'a Name,
    since: u64,
    files: &BTreeMap<Name, TenantFile>,
) {
    for (_, digest) in files.values().flat_map(TenantFile::versions) {
        *counted.entry(NeededFile { tenant, since, digest }).or_default() += 1;
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
            Change::PutModel { model: name("served"), digest: digest(1), version: None },
            Change::PutModel { model: name("unloaded"), digest: digest(2), version: None },
            Change::UnloadModel { model: name("unloaded") },
        ];
        for tenant in ["acme", "other"].map(name) {
            changes.push(Change::PutTenant { tenant: tenant.clone(), spec: TenantSpec::default() });
            for plugin in ["same", "again"].map(name) {
                let tenant = tenant.clone();
                changes.push(Change::PutPlugin { tenant, plugin, digest: digest(3) });
            }
        }
        desired.apply(1, &changes).unwrap();
        let needs = Needs::of(&desired, desired.touched());
        let file = |tenant| NeededFile { tenant, since: 1, digest: digest(3) };
        let (acme, other) = (name("acme"), name("other"));
        assert_eq!(needs.plugins, BTreeMap::from([(file(&acme), 2), (file(&other), 2)]));
        assert_eq!(needs.models.keys().collect::<Vec<_>>(), [&(&name("served"), digest(1))]);
        assert_eq!(needs.names(), 5);
    }

    #[test]
    fn every_version_that_stays_is_needed() {
        let name = || "m".parse::<Name>().unwrap();
        let digest = |byte| Digest::from_bytes([byte; 32]);
        let policy = serde_json::json!({ "version_policy": { "latest": { "num_versions": 2 } } });
        let config = serde_json::from_value(policy).unwrap();
        let put = |byte| Change::PutModel { model: name(), digest: digest(byte), version: None };
        let mut desired = Desired::default();
        let first = [put(1), Change::PutModelConfig { model: name(), config }];
        desired.apply(1, &first).unwrap();
        let mut files_after = |number: u64, byte: u8| {
            desired.apply(number, &[put(byte)]).unwrap();
            let needs = Needs::of(&desired, desired.touched());
            needs.models.into_keys().map(|(_, digest)| digest).collect::<Vec<_>>()
        };
        assert_eq!(files_after(2, 2), [digest(1), digest(2)]);
        // Content that comes back is loaded once for both versions.
        assert_eq!(files_after(3, 1), [digest(1), digest(2)]);
        assert_eq!(files_after(4, 2), [digest(1), digest(2)]);
        assert_eq!(files_after(5, 3), [digest(2), digest(3)]);
    }
}
