//! Files that benchmarks read.

use std::path::Path;

use anyhow::{Context, Result};

/// # Errors
/// The file cannot be read. The error names it.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}
