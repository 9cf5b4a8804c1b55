//! A plugin that was compiled, but not checked.

use std::path::Path;

use anyhow::{Context, Result};

/// What a language's tools made of a plugin's folder.
pub(super) struct Module {
    /// The plugin's name, as its manifest has it.
    pub(super) name: String,
    /// A component, or a core module with its component type.
    pub(super) file: Vec<u8>,
    /// Whether all that it was made of is in its folder, the SDK or the tools.
    pub(super) is_of_folder: bool,
}

/// The name of a folder, for a plugin whose manifest has none.
pub(super) fn folder_name(folder: &Path) -> Result<String> {
    let folder = folder.canonicalize()?;
    Ok(folder.file_name().context("the folder has no name")?.to_string_lossy().into_owned())
}
