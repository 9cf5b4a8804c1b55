//! The rules for changing one API key of a tenant. Pure.

use gristmill_core::{KeyHash, KeyHashes, Name};

use crate::desired::{Desired, Tenant};
use crate::error::StateError;
use crate::fault::Subject;
use crate::key_conflict::KeyConflict;
use crate::release::document::Faults;
use crate::release::tenant::{KEYS_MAX, SentKey};

/// What is said of a key that is an admin token or a key of another tenant. It is the same for
/// both, and does not name the tenant: the author may be guessing.
pub(super) const TAKEN: &str = "is in use elsewhere: choose another key";

/// The hash under which the key is kept, if it can be put.
///
/// # Errors
/// [`KeyConflict`]; or it is in use elsewhere, or has another name already.
pub(super) fn put(
    desired: &Desired,
    (tenant, owner): (&Name, &Tenant),
    (key, sent): (&Name, &SentKey),
) -> Result<KeyHash, StateError> {
    let hashes = &sent.hashes;
    let keys = &owner.spec.keys;
    if owner.spec.open {
        return Err(KeyConflict::Open(tenant.clone()).into());
    }
    if keys.len() >= KEYS_MAX && !keys.contains_key(key) {
        return Err(KeyConflict::TooMany(tenant.clone()).into());
    }
    // Otherwise deleting one of the names would leave the key valid.
    let mut same = keys.iter().filter(|(name, hash)| *name != key && hashes.include(hash));
    let subject = Subject::Key { tenant: tenant.clone(), key: key.clone() };
    let mut faults = Faults::default();
    if let Some((name, _)) = same.next() {
        let text = format!("it is the tenant's key {:?} already", name.as_str());
        faults.add("key", text);
    } else if is_taken(desired, tenant, sent) {
        faults.add_secret("key", format!("it {TAKEN}"));
    } else {
        let kept = keys.get(key).filter(|hash| hashes.include(hash));
        return Ok(*kept.unwrap_or(&hashes.keyed));
    }
    Err(StateError::Document { subject, faults })
}

/// Whether the key is an admin token, or a key of a tenant other than `tenant`.
pub(super) fn is_taken(desired: &Desired, tenant: &Name, sent: &SentKey) -> bool {
    let KeyHashes { keyed, plain } = sent.hashes;
    let mut hashes = [Some(keyed), plain].into_iter().flatten();
    sent.is_token || hashes.any(|hash| desired.other_owner(tenant, hash).is_some())
}

/// Check that the key can be deleted.
///
/// # Errors
/// There is no such key, or it is the tenant's only one.
pub(super) fn check_delete(tenant: &Name, owner: &Tenant, key: &Name) -> Result<(), StateError> {
    let keys = &owner.spec.keys;
    if !keys.contains_key(key) {
        return Err(StateError::not_found("key", key));
    }
    if keys.len() == 1 && !owner.spec.open {
        let (tenant, key) = (tenant.clone(), key.clone());
        return Err(KeyConflict::Only { tenant, key }.into());
    }
    Ok(())
}
