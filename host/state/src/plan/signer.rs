//! Whether a plugin that is put is signed as its tenant demands it. Pure.
//!
//! The tenant's document after the release counts, so a release that brings both the keys and a
//! plugin is checked, too. Going back to an earlier state is not: what it brings back was accepted
//! by the document of its time.

use gristmill_core::Name;

use crate::asked::AskedChange;
use crate::desired::Desired;
use crate::error::StateError;
use crate::plugin_signature::SignatureFault;
use crate::release::change::Change;
use crate::release::plugin_signers::Signer;

/// Check a change that was planned, with the state after its release.
///
/// # Errors
/// [`StateError::Unsigned`]
pub fn check_signer(after: &Desired, asked: &AskedChange) -> Result<(), StateError> {
    let (tenant, plugin, signature) = match asked {
        AskedChange::PutPlugin { tenant, plugin, signature, .. } => {
            (tenant, plugin, signature.as_deref())
        }
        AskedChange::Known(Change::PutPlugin { tenant, plugin, .. }) => (tenant, plugin, None),
        _ => return Ok(()),
    };
    let signers =
        after.tenants.get(tenant).map_or(&[][..], |owner| owner.spec.plugin_signers.as_slice());
    let why = match signature {
        _ if signers.is_empty() => return Ok(()),
        Some(signature) if signature.is_by(signers) => return Ok(()),
        Some(_) => SignatureFault::OtherKey,
        None => SignatureFault::Missing,
    };
    Err(StateError::unsigned(tenant, plugin, why))
}

/// The keys that a tenant has after these changes: those of the last document that they bring, or
/// else those that it has.
pub fn signers_of(desired: &Desired, asked: &[AskedChange], tenant: &Name) -> Vec<Signer> {
    let brought = asked.iter().rev().find_map(|change| match change {
        AskedChange::PutTenant { tenant: put, document } if put == tenant => {
            Some(&document.plugin_signers)
        }
        _ => None,
    });
    let present = || desired.tenants.get(tenant).map(|owner| &owner.spec.plugin_signers);
    brought.or_else(present).cloned().unwrap_or_default()
}
