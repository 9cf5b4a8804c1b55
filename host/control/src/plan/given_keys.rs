//! The names of the keys in a tenant's document. Pure.

use std::collections::BTreeMap;

use gristmill_core::{Digest, Name};

use crate::desired::Desired;
use crate::release::tenant::{GivenKey, numbered_name};

/// The keys of one document.
struct Keys<'a> {
    desired: &'a Desired,
    tenant: &'a Name,
    named: BTreeMap<Name, Digest>,
    unnamed: Vec<Digest>,
}

/// The given keys by their names. Faulty ones are left out, and named in `faults` by their places.
pub(super) fn named(
    desired: &Desired,
    tenant: &Name,
    given: &[GivenKey],
    faults: &mut Vec<String>,
) -> BTreeMap<Name, Digest> {
    let mut keys = Keys { desired, tenant, named: BTreeMap::new(), unnamed: Vec::new() };
    for (index, key) in given.iter().enumerate() {
        if let Err(fault) = keys.take(key) {
            faults.push(format!("api_keys[{index}]{fault}"));
        }
    }
    keys.name_others();
    keys.named
}

impl Keys<'_> {
    /// The keys that the tenant has now.
    fn own(&self) -> impl Iterator<Item = (&Name, Digest)> {
        let own = self.desired.tenants.get(self.tenant);
        own.into_iter().flat_map(|own| &own.spec.keys).map(|(name, digest)| (name, *digest))
    }

    fn take(&mut self, key: &GivenKey) -> Result<(), String> {
        if let GivenKey::Unnamed(digest) | GivenKey::Named(_, digest) = key
            && let Some(other) = self.desired.other_owner(self.tenant, *digest)
        {
            return Err(format!(" is a key of tenant {:?}, too", other.as_str()));
        }
        let (name, digest) = match key {
            GivenKey::Unnamed(digest) => {
                self.unnamed.push(*digest);
                return Ok(());
            }
            GivenKey::Named(name, digest) => (name, *digest),
            GivenKey::Kept(name) => {
                let kept = self.own().find(|(own, _)| *own == name);
                let missing = || {
                    let name = name.as_str();
                    format!(
                        ": the tenant has no key {name:?} that could stay: give its \"key\", too"
                    )
                };
                kept.map(|(_, digest)| (name, digest)).ok_or_else(missing)?
            }
        };
        if self.named.contains_key(name) {
            return Err(format!(".name is {:?}, for a second key", name.as_str()));
        }
        // Keys that stay may be the same in an older log.
        let same = self.named.iter().find(|(_, known)| **known == digest);
        if let (GivenKey::Named(..), Some((other, _))) = (key, same) {
            return Err(format!(" is the key {:?}, too", other.as_str()));
        }
        self.named.insert(name.clone(), digest);
        Ok(())
    }

    /// Name the keys that came without names. Those that stay come first and keep their names, so
    /// that these are not given to new ones.
    fn name_others(&mut self) {
        let unnamed = std::mem::take(&mut self.unnamed);
        let (known, new): (Vec<_>, Vec<_>) =
            unnamed.into_iter().partition(|key| self.own().any(|(_, own)| own == *key));
        for digest in known.into_iter().chain(new) {
            if self.named.values().any(|given| *given == digest) {
                continue;
            }
            let name = self.name_of(digest);
            self.named.extend(name.map(|name| (name, digest)));
        }
    }

    /// The name that the tenant's key has, or a free one.
    fn name_of(&self, digest: Digest) -> Option<Name> {
        let is_free = |name: &Name| !self.named.contains_key(name);
        let kept = self.own().find(|(name, own)| *own == digest && is_free(name));
        let free = || (1..).filter_map(numbered_name).find(is_free);
        kept.map(|(name, _)| name.clone()).or_else(free)
    }
}
