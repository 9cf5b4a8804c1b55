//! The file with a pipeline's settings, which `--settings` names.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

/// Read the settings.
///
/// # Errors
/// The file cannot be read, or it is not a JSON object.
pub(super) fn read(path: &Path) -> Result<Map<String, Value>> {
    let cannot = || format!("--settings: {}", path.display());
    let text = std::fs::read(path).with_context(cannot)?;
    serde_json::from_slice(&text).context("not a JSON object").with_context(cannot)
}
