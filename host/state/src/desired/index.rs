//! What follows from the tenants of a desired state, kept up to date with each change. Pure.
//!
//! Invariant: each answer is that of a search through all tenants. Such a search would make a
//! release take longer the more tenants there are.

use std::collections::BTreeSet;
use std::hash::Hash;

use gristmill_core::{Digest, KeyHash, Name};
use rpds::HashTrieMapSync;

use crate::desired::tenant::{Tenant, TenantFile};
use crate::release::named_version::NamedVersion;
use crate::release::pipeline::PipelineSpec;

/// A model, and the version of it that a pipeline names.
pub(super) type Pin = (Name, u64);

/// Copies share what is the same in both.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// The tenants that have a key.
    key_owners: HashTrieMapSync<KeyHash, BTreeSet<Name>>,
    /// The number of keys whose hash is [`KeyHash::Plain`].
    plain_keys: usize,
    /// The number of versions of plugins that have a file.
    plugins: HashTrieMapSync<Digest, usize>,
    /// The number of times that pipelines name a version of a model.
    pins: HashTrieMapSync<Pin, usize>,
    /// The tenants that have changed since [`Index::settle`], and those that share a key with one.
    touched: BTreeSet<Name>,
}

impl Index {
    /// Follow a change of what a tenant holds.
    pub(super) fn follow(&mut self, name: &Name, before: Held, after: Held) {
        for key in before.keys.difference(&after.keys) {
            self.remove_key(name, *key);
        }
        for key in after.keys.difference(&before.keys) {
            self.add_key(name, *key);
        }
        if before.files != after.files {
            after.files.into_iter().for_each(|file| add(&mut self.plugins, file));
            before.files.into_iter().for_each(|file| remove(&mut self.plugins, &file));
        }
        self.follow_pins(before.pins, after.pins);
        self.touch(name);
    }

    /// Follow a change of the versions of models that pipelines name.
    pub(super) fn follow_pins(&mut self, before: Vec<Pin>, after: Vec<Pin>) {
        if before != after {
            after.into_iter().for_each(|pin| add(&mut self.pins, pin));
            before.into_iter().for_each(|pin| remove(&mut self.pins, &pin));
        }
    }

    /// Note a change of a tenant that leaves its keys and its plugins.
    pub(super) fn touch(&mut self, name: &Name) {
        self.touched.insert(name.clone());
    }

    fn add_key(&mut self, owner: &Name, key: KeyHash) {
        let mut owners = self.key_owners.get(&key).cloned().unwrap_or_default();
        if owners.is_empty() {
            self.plain_keys += usize::from(is_plain(key));
        }
        self.touched.extend(owners.iter().cloned());
        owners.insert(owner.clone());
        self.key_owners.insert_mut(key, owners);
    }

    fn remove_key(&mut self, owner: &Name, key: KeyHash) {
        let mut owners = self.key_owners.get(&key).cloned().unwrap_or_default();
        owners.remove(owner);
        self.touched.extend(owners.iter().cloned());
        if owners.is_empty() {
            self.plain_keys -= usize::from(is_plain(key));
            self.key_owners.remove_mut(&key);
        } else {
            self.key_owners.insert_mut(key, owners);
        }
    }

    /// The tenants that have the key with this hash, in the order of their names.
    pub(super) fn owners(&self, key: KeyHash) -> impl Iterator<Item = &Name> {
        self.key_owners.get(&key).into_iter().flatten()
    }

    pub(super) fn has_plain_keys(&self) -> bool {
        self.plain_keys > 0
    }

    pub(super) fn has_plugin(&self, file: Digest) -> bool {
        self.plugins.contains_key(&file)
    }

    /// Whether a pipeline names this version of the model.
    pub(super) fn is_pinned(&self, model: &Name, version: u64) -> bool {
        // Copying a name takes little, and most models have no earlier versions.
        self.pins.contains_key(&(model.clone(), version))
    }

    pub(super) fn touched(&self) -> &BTreeSet<Name> {
        &self.touched
    }

    /// Count changes from now on.
    pub(super) fn settle(&mut self) {
        self.touched.clear();
    }
}

/// The parts of a tenant that the index has.
#[derive(Default)]
pub(super) struct Held {
    keys: BTreeSet<KeyHash>,
    /// The file of each version of each plugin.
    files: Vec<Digest>,
    /// The versions of models that its pipelines name.
    pins: Vec<Pin>,
}

impl Held {
    /// What the tenant holds; nothing if there is none.
    pub(super) fn of(tenant: Option<&Tenant>) -> Self {
        let Some(entry) = tenant else { return Self::default() };
        let keys = entry.spec.keys.values().copied().collect();
        let files = entry.plugins.values().flat_map(TenantFile::versions).map(|(_, file)| file);
        let pins = entry.pipelines.values().flat_map(|pipeline| pins_of(pipeline));
        Self { keys, files: files.collect(), pins: pins.collect() }
    }
}

/// The versions of models that a pipeline names.
pub(super) fn pins_of(pipeline: &PipelineSpec) -> Vec<Pin> {
    let pin = |named: &NamedVersion| Some((named.name.clone(), named.version?));
    pipeline.models().filter_map(pin).collect()
}

fn add<K: Eq + Hash>(counts: &mut HashTrieMapSync<K, usize>, key: K) {
    let before = counts.get(&key).copied().unwrap_or_default();
    counts.insert_mut(key, before + 1);
}

fn remove<K: Eq + Hash + Clone>(counts: &mut HashTrieMapSync<K, usize>, key: &K) {
    match counts.get(key).copied().unwrap_or_default() {
        0 | 1 => {
            counts.remove_mut(key);
        }
        more => counts.insert_mut(key.clone(), more - 1),
    }
}

fn is_plain(key: KeyHash) -> bool {
    key.hash_key().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{digest, name};

    /// The first plugin has an earlier version, with the file of the last one. Of each plugin there
    /// is a pipeline, which names that version of the model `m`.
    fn tenant(keys: &[u8], plugins: &[u8]) -> Tenant {
        let mut tenant = Tenant::default();
        for key in keys {
            let hash = KeyHash::Plain(digest(*key));
            tenant.spec.keys.insert(name(&format!("k{key}")), hash);
        }
        for (number, file) in plugins.iter().enumerate() {
            let mut plugin = TenantFile::new(digest(*file), 7);
            if let Some(last) = plugins.last().filter(|_| number == 0) {
                plugin.kept.insert(3, digest(*last));
            }
            tenant.plugins.insert(name(&format!("p{number}")), plugin);
            let spec = serde_json::json!({ "pre": "p", "model": format!("m@{file}"), "post": "p" });
            let spec = serde_json::from_value(spec).unwrap();
            tenant.pipelines.insert(name(&format!("p{number}")), spec);
        }
        tenant
    }

    #[test]
    fn the_index_is_that_of_a_search() {
        let mut states: [Option<Tenant>; 3] = [None, None, None];
        let mut index = Index::default();
        // Each of the tenants takes each of the contents after each other one.
        let contents: [Option<(&[u8], &[u8])>; 4] =
            [None, Some((&[1], &[1, 1])), Some((&[1, 2], &[2])), Some((&[2, 3], &[1, 2, 3]))];
        for step in 0..300 {
            let (of, content) = (step % 3, (step * 7 + step / 12) % 4);
            let after = contents[content].map(|(keys, plugins)| tenant(keys, plugins));
            let owner = name(&format!("t{of}"));
            index.follow(&owner, Held::of(states[of].as_ref()), Held::of(after.as_ref()));
            states[of] = after;
            let all =
                || states.iter().enumerate().filter_map(|(of, state)| Some((of, state.as_ref()?)));
            for byte in 1..4 {
                let key = KeyHash::Plain(digest(byte));
                let has = |tenant: &Tenant| tenant.spec.keys.values().any(|hash| *hash == key);
                let owners: Vec<_> = all()
                    .filter(|(_, tenant)| has(tenant))
                    .map(|(of, _)| name(&format!("t{of}")))
                    .collect();
                assert!(index.owners(key).eq(&owners), "key {byte} after {step}");
                let has = |tenant: &Tenant| {
                    let mut files = tenant.plugins.values().flat_map(TenantFile::versions);
                    files.any(|(_, file)| file == digest(byte))
                };
                assert_eq!(index.has_plugin(digest(byte)), all().any(|(_, tenant)| has(tenant)));
                let model = NamedVersion { name: name("m"), version: Some(byte.into()) };
                let has = |tenant: &Tenant| {
                    let mut named = tenant.pipelines.values().flat_map(|one| one.models());
                    named.any(|named| *named == model)
                };
                let is_pinned = index.is_pinned(&name("m"), byte.into());
                assert_eq!(
                    is_pinned,
                    all().any(|(_, tenant)| has(tenant)),
                    "m@{byte} after {step}"
                );
            }
            assert_eq!(
                index.has_plain_keys(),
                all().any(|(_, tenant)| !tenant.spec.keys.is_empty())
            );
        }
    }

    #[test]
    fn tenants_that_share_a_key_are_touched_together() {
        let mut index = Index::default();
        let held = |key: u8| Held::of(Some(&tenant(&[key], &[])));
        index.follow(&name("a"), Held::default(), held(1));
        index.follow(&name("c"), Held::default(), held(2));
        index.settle();
        index.follow(&name("b"), Held::default(), held(1));
        assert_eq!(*index.touched(), [name("a"), name("b")].into());
        index.settle();
        index.follow(&name("b"), held(1), Held::default());
        assert_eq!(*index.touched(), [name("a"), name("b")].into());
    }
}
