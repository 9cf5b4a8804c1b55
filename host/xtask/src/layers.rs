//! The layer check: crates stand on floors, and the files of a crate form no circle.
//!
//! `floors` compares what each crate imports with its floor. `circles` reads the paths in a crate's
//! sources (`source` finds them in the text, `tree` resolves them to files) and reports files that
//! import each other, also by way of others. Both rules are stated in their modules.

mod circles;
mod floors;
mod source;
mod tree;

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{cargo, output};

/// Check each crate of the workspace.
///
/// # Errors
/// Cargo or a file cannot be read, or an import breaks a rule; every such import is named.
pub(crate) fn check() -> Result<()> {
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let mut faults: Vec<String> = packages.iter().flat_map(floors::faults_of).collect();
    for package in packages {
        let (name, manifest) = (&package["name"], &package["manifest_path"]);
        let name = name.as_str().context("cargo metadata has a package without a name")?;
        let manifest = Path::new(manifest.as_str().unwrap_or_default());
        let folder = manifest.parent().context("cargo metadata has a package without a folder")?;
        let circles = circles::of_crate(&folder.join("src"))?;
        faults.extend(circles.iter().map(|circle| format!("{name}: {circle}")));
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!("imports against the layers of host/ARCHITECTURE.md:\n  {}", faults.join("\n  "));
}
