//! The rules for changing one API key of a tenant. Pure.

use gristmill_core::{KeyHash, KeyHashes, Name};

use crate::desired::{Desired, Tenant};
use crate::error::ControlError;
use crate::fault::Subject;
use crate::key_conflict::KeyConflict;
use crate::release::tenant::KEYS_MAX;

/// The hash under which the key is kept, if it can be put.
///
/// # Errors
/// [`KeyConflict`]; or it is a key of another tenant, or has another name already.
pub(super) fn put(
    desired: &Desired,
    (tenant, owner): (&Name, &Tenant),
    (key, hashes): (&Name, &KeyHashes),
) -> Result<KeyHash, ControlError> {
    let keys = &owner.spec.keys;
    if owner.spec.open {
        return Err(KeyConflict::Open(tenant.clone()).into());
    }
    if keys.len() >= KEYS_MAX && !keys.contains_key(key) {
        return Err(KeyConflict::TooMany(tenant.clone()).into());
    }
    // Otherwise deleting one of the names would leave the key valid.
    let mut same = keys.iter().filter(|(name, known)| *name != key && hashes.include(known));
    let fault = match (same.next(), other_owner(desired, tenant, hashes)) {
        (Some((name, _)), _) => format!("it is the tenant's key {:?} already", name.as_str()),
        // Not of which one: the author may be able to see this tenant alone.
        (None, Some(_)) => "it is a key of another tenant, too".into(),
        (None, None) => {
            let known = keys.get(key).filter(|known| hashes.include(known));
            return Ok(*known.unwrap_or(&hashes.keyed));
        }
    };
    let subject = Subject::Key { tenant: tenant.clone(), key: key.clone() };
    Err(ControlError::document(subject, "key", fault))
}

/// A tenant other than `tenant` that has this key.
pub(super) fn other_owner<'a>(
    desired: &'a Desired,
    tenant: &Name,
    hashes: &KeyHashes,
) -> Option<&'a Name> {
    let KeyHashes { keyed, plain } = *hashes;
    [Some(keyed), plain].into_iter().flatten().find_map(|hash| desired.other_owner(tenant, hash))
}

/// Check that the key can be deleted.
///
/// # Errors
/// There is no such key, or it is the tenant's only one.
pub(super) fn check_delete(tenant: &Name, owner: &Tenant, key: &Name) -> Result<(), ControlError> {
    let keys = &owner.spec.keys;
    if !keys.contains_key(key) {
        return Err(ControlError::not_found("key", key));
    }
    if keys.len() == 1 && !owner.spec.open {
        let (tenant, key) = (tenant.clone(), key.clone());
        return Err(KeyConflict::Only { tenant, key }.into());
    }
    Ok(())
}
