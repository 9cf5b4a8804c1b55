//! What follows from the tenants of a desired state, kept up to date with each change. Pure.
//!
//! Invariant: each answer is that of a search through all tenants. Such a search would make a
//! release take longer the more tenants there are.

use std::collections::BTreeSet;

use gristmill_core::{Digest, KeyHash, Name};
use rpds::HashTrieMapSync;

use crate::desired::tenant::Tenant;

/// Copies share what is the same in both.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// The tenants that have a key.
    key_owners: HashTrieMapSync<KeyHash, BTreeSet<Name>>,
    /// The number of keys whose hash is [`KeyHash::Plain`].
    plain_keys: usize,
    /// The number of plugins that have a file.
    plugins: HashTrieMapSync<Digest, usize>,
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
            after.files.into_iter().for_each(|file| self.add_plugin(file));
            before.files.into_iter().for_each(|file| self.remove_plugin(file));
        }
        self.touch(name);
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

    fn add_plugin(&mut self, file: Digest) {
        let before = self.plugins.get(&file).copied().unwrap_or_default();
        self.plugins.insert_mut(file, before + 1);
    }

    fn remove_plugin(&mut self, file: Digest) {
        match self.plugins.get(&file).copied().unwrap_or_default() {
            0 | 1 => {
                self.plugins.remove_mut(&file);
            }
            more => self.plugins.insert_mut(file, more - 1),
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
    /// The file of each plugin.
    files: Vec<Digest>,
}

impl Held {
    /// What the tenant holds; nothing if there is none.
    pub(super) fn of(tenant: Option<&Tenant>) -> Self {
        let Some(own) = tenant else { return Self::default() };
        let keys = own.spec.keys.values().copied().collect();
        Self { keys, files: own.plugins.values().map(|own| own.digest).collect() }
    }
}

fn is_plain(key: KeyHash) -> bool {
    key.hash_key().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::tenant::Plugin;
    use crate::testing::{digest, name};

    fn tenant(keys: &[u8], plugins: &[u8]) -> Tenant {
        let mut tenant = Tenant::default();
        for key in keys {
            let hash = KeyHash::Plain(digest(*key));
            tenant.spec.keys.insert(name(&format!("k{key}")), hash);
        }
        for (number, file) in plugins.iter().enumerate() {
            let plugin = Plugin { digest: digest(*file), version: 1 };
            tenant.plugins.insert(name(&format!("p{number}")), plugin);
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
                || states.iter().enumerate().filter_map(|(of, own)| Some((of, own.as_ref()?)));
            for byte in 1..4 {
                let key = KeyHash::Plain(digest(byte));
                let has = |own: &Tenant| own.spec.keys.values().any(|own| *own == key);
                let owners: Vec<_> = all()
                    .filter(|(_, own)| has(own))
                    .map(|(of, _)| name(&format!("t{of}")))
                    .collect();
                assert!(index.owners(key).eq(&owners), "key {byte} after {step}");
                let has = |own: &Tenant| own.plugins.values().any(|own| own.digest == digest(byte));
                assert_eq!(index.has_plugin(digest(byte)), all().any(|(_, own)| has(own)));
            }
            assert_eq!(index.has_plain_keys(), all().any(|(_, own)| !own.spec.keys.is_empty()));
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
