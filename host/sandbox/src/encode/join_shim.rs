//! Puts wit-component's shim into the main module.
//!
//! A function of the host needs the memory of the module that calls it, and that module needs the
//! function to be instantiated. wit-component solves this with a third module, the shim: the main
//! module calls functions of the shim, which call through a table, and a last module, the fix-up,
//! fills the table when all others are instantiated. Here the shim's functions and the entries of
//! its table move into the main module, so that two core instances are left of three.
//!
//! It works on the output of the encoder, and only on the one form that the encoder gives to a
//! module without adapters. Any other form is left as it is.

mod component;
mod fixup;
mod main_module;
mod parts;

use self::component::Joined;
use self::parts::ShimParts;

/// The same component with the shim in its main module. None if it does not have the expected form.
pub(super) fn join_shim(component: &[u8]) -> Option<Vec<u8>> {
    let parts = ShimParts::of(component)?;
    Joined::new(&parts)?.encode(component)
}

#[cfg(test)]
mod tests;
