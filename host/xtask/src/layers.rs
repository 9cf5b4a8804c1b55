//! The layer check: crates stand on floors, the files of a crate form no circle, and comments have
//! a width.
//!
//! `floors` compares what each crate imports with its floor. `circles` reads the paths in a crate's
//! sources (`source` finds them in the text, `tree` resolves them to files) and reports files that
//! import each other, also by way of others. `widths` finds comment lines that are too long. Each
//! rule is stated in its module.

mod circles;
mod floors;
mod source;
mod tree;
mod widths;

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{cargo, output};

/// Check each crate of the workspace, and the comments of the repository.
///
/// # Errors
/// Cargo or a file cannot be read, or an import or a comment breaks a rule; every such import and
/// comment is named.
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
    faults.extend(widths::faults()?);
    if faults.is_empty() {
        return Ok(());
    }
    bail!("against the rules of host/ARCHITECTURE.md, \"Floors\":\n  {}", faults.join("\n  "));
}
