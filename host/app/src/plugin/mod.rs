//! `gristmill plugin`: from a plugin's sources to a running pipeline.

pub(crate) mod build;
pub(crate) mod push;
mod toolchain;
