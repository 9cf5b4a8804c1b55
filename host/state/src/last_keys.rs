//! The API keys that the tenants of an earlier state had last. Pure.
//!
//! A tenant that is brought back gets these, and not those of the earlier state, of which some may
//! have been replaced because others knew them.

use std::collections::BTreeMap;

use gristmill_core::{KeyHash, Name};

use crate::desired::Desired;
use crate::error::StateError;
use crate::release::change::Change;

/// The keys of tenants, by tenant and by their names.
pub struct LastKeys(BTreeMap<Name, BTreeMap<Name, KeyHash>>);

impl LastKeys {
    /// The keys of all tenants that have some.
    pub fn of(desired: &Desired) -> Self {
        let keys =
            desired.tenants.iter().map(|(name, tenant)| (name.clone(), tenant.spec.keys.clone()));
        Self(keys.filter(|(_, keys)| !keys.is_empty()).collect())
    }

    /// Follow a change. A tenant that is deleted or opened keeps the keys that it had before.
    pub fn note(&mut self, change: &Change) {
        match change {
            Change::PutTenant { tenant, spec } if !spec.keys.is_empty() => {
                if let Some(keys) = self.0.get_mut(tenant) {
                    keys.clone_from(&spec.keys);
                }
            }
            Change::PutKey { tenant, key, digest } => {
                if let Some(keys) = self.0.get_mut(tenant) {
                    keys.insert(key.clone(), *digest);
                }
            }
            Change::DeleteKey { tenant, key } => {
                if let Some(keys) = self.0.get_mut(tenant) {
                    keys.remove(key);
                }
            }
            _ => {}
        }
    }

    /// Give the tenants of `desired`, a state after release `number`, these keys.
    pub fn put_into(self, desired: &mut Desired, number: u64) -> Result<(), StateError> {
        for (tenant, keys) in self.0 {
            let Some(entry) = desired.tenants.get(&tenant).filter(|entry| entry.spec.keys != keys)
            else {
                continue;
            };
            let mut spec = entry.spec.clone();
            spec.keys = keys;
            desired.apply(number, &[Change::PutTenant { tenant, spec }])?;
        }
        Ok(())
    }
}
