//! The names of the keys in a tenant's document. Pure.
//!
//! Invariant: a document names the keys that stay, and these are looked up under the lock. So a
//! document does not bring back a key that was replaced meanwhile.

use std::collections::BTreeMap;

use gristmill_core::{KeyHash, KeyHashes, Name};

use crate::desired::Desired;
use crate::plan::keys::{TAKEN, is_taken};
use crate::release::document::Faults;
use crate::release::tenant::{GivenKey, numbered_name};

/// The keys of one document.
struct Keys<'a> {
    desired: &'a Desired,
    tenant: &'a Name,
    named: BTreeMap<Name, KeyHash>,
    unnamed: Vec<KeyHashes>,
}

/// The given keys by their names. Faulty ones are left out, and named in `faults` by their places.
pub(super) fn named(
    desired: &Desired,
    tenant: &Name,
    given_keys: &[GivenKey],
    faults: &mut Faults,
) -> BTreeMap<Name, KeyHash> {
    let mut keys = Keys { desired, tenant, named: BTreeMap::new(), unnamed: Vec::new() };
    for (index, key) in given_keys.iter().enumerate() {
        let at = format!("api_keys[{index}]");
        if let GivenKey::Unnamed(sent) | GivenKey::Named(_, sent) = key
            && is_taken(desired, tenant, sent)
        {
            let text = format!("{at} {TAKEN}");
            faults.add_secret(at, text);
        } else if let Err(fault) = keys.take(key) {
            let text = format!("{at}{fault}");
            faults.add(at, text);
        }
    }
    keys.name_others();
    keys.named
}

impl Keys<'_> {
    /// The keys that the tenant has now.
    fn tenant_keys(&self) -> impl Iterator<Item = (&Name, KeyHash)> {
        let tenant = self.desired.tenants.get(self.tenant);
        tenant.into_iter().flat_map(|tenant| &tenant.spec.keys).map(|(name, hash)| (name, *hash))
    }

    /// The hash under which the key is kept: a key that stays keeps the hash that it has.
    fn kept(&self, name: Option<&Name>, hashes: &KeyHashes) -> KeyHash {
        let mut keys = self.tenant_keys();
        let stays = keys.find(|(name_of_key, hash)| {
            name.is_none_or(|name| name == *name_of_key) && hashes.include(hash)
        });
        stays.map_or(hashes.keyed, |(_, hash)| hash)
    }

    fn take(&mut self, key: &GivenKey) -> Result<(), String> {
        let (name, hash) = match key {
            GivenKey::Unnamed(sent) => {
                self.unnamed.push(sent.hashes);
                return Ok(());
            }
            GivenKey::Named(name, sent) => (name, self.kept(Some(name), &sent.hashes)),
            GivenKey::Kept(name) => {
                let kept = self.tenant_keys().find(|(other, _)| *other == name);
                let missing = || {
                    let name = name.as_str();
                    format!(
                        ": the tenant has no key {name:?} that could stay: give its \"key\", too"
                    )
                };
                kept.map(|(_, hash)| (name, hash)).ok_or_else(missing)?
            }
        };
        if self.named.contains_key(name) {
            return Err(format!(".name is {:?}, for a second key", name.as_str()));
        }
        // Keys that stay may be the same in an older log.
        if let GivenKey::Named(_, sent) = key
            && let Some((other, _)) = self.named.iter().find(|(_, hash)| sent.hashes.include(hash))
        {
            return Err(format!(" is the key {:?}, too", other.as_str()));
        }
        self.named.insert(name.clone(), hash);
        Ok(())
    }

    /// Name the keys that came without names. Those that stay come first and keep their names, so
    /// that these are not given to new ones.
    fn name_others(&mut self) {
        let unnamed = std::mem::take(&mut self.unnamed);
        let (staying, new): (Vec<_>, Vec<_>) = unnamed
            .into_iter()
            .partition(|key| self.tenant_keys().any(|(_, hash)| key.include(&hash)));
        for hashes in staying.into_iter().chain(new) {
            if self.named.values().any(|hash| hashes.include(hash)) {
                continue;
            }
            let hash = self.kept(None, &hashes);
            let name = self.name_of(hash);
            self.named.extend(name.map(|name| (name, hash)));
        }
    }

    /// The name that the tenant's key has, or a free one.
    fn name_of(&self, hash: KeyHash) -> Option<Name> {
        let is_free = |name: &Name| !self.named.contains_key(name);
        let kept = self.tenant_keys().find(|(name, other)| *other == hash && is_free(name));
        let free = || (1..).filter_map(numbered_name).find(is_free);
        kept.map(|(name, _)| name.clone()).or_else(free)
    }
}
