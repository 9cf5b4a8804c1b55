//! `gristmill plugin`: from a plugin's sources to a running pipeline.

mod admin;
pub(crate) mod build;
pub(crate) mod push;
pub(crate) mod test;
mod toolchain;
