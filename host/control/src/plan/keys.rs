//! The rules for changing one API key of a tenant. Pure.

use gristmill_core::{Digest, Name};

use crate::desired::{Desired, Tenant};
use crate::error::ControlError;
use crate::fault::Subject;
use crate::key_conflict::KeyConflict;
use crate::release::tenant::KEYS_MAX;

/// Check that the key can be put.
///
/// # Errors
/// [`KeyConflict`]; or it is a key of another tenant, or has another name already.
pub(super) fn check_put(
    desired: &Desired,
    (tenant, owner): (&Name, &Tenant),
    (key, digest): (&Name, &Digest),
) -> Result<(), ControlError> {
    let keys = &owner.spec.keys;
    if owner.spec.open {
        return Err(KeyConflict::Open(tenant.clone()).into());
    }
    if keys.len() >= KEYS_MAX && !keys.contains_key(key) {
        return Err(KeyConflict::TooMany(tenant.clone()).into());
    }
    // Otherwise deleting one of the names would leave the key valid.
    let mut same = keys.iter().filter(|(name, known)| *name != key && *known == digest);
    let fault = match (same.next(), desired.other_owner(tenant, *digest)) {
        (Some((name, _)), _) => format!("it is the tenant's key {:?} already", name.as_str()),
        (None, Some(other)) => format!("it is a key of tenant {:?}, too", other.as_str()),
        (None, None) => return Ok(()),
    };
    let subject = Subject::Key { tenant: tenant.clone(), key: key.clone() };
    Err(ControlError::refused(subject, &[fault]))
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
