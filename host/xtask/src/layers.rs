//! The floors of host/: a crate may import only from floors below its own.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{cargo, output};

/// Each crate's floor, as host/ARCHITECTURE.md has it.
const FLOORS: [(&str, u8); 16] = [
    ("gristmill-core", 0),
    ("gristmill-telemetry", 0),
    ("gristmill-thread", 0),
    ("gristmill-child", 1),
    ("gristmill-imaging", 1),
    ("gristmill-backend", 1),
    ("gristmill-batch", 1),
    ("gristmill-oip", 1),
    ("gristmill-store", 1),
    ("gristmill-sandbox", 2),
    ("gristmill-snapshot", 3),
    ("gristmill-pipeline", 4),
    ("gristmill-control", 4),
    ("gristmill-http", 5),
    ("gristmill-client", 5),
    ("gristmill-app", 6),
];

/// The one crate that may name each of these libraries.
const OWNERS: [(&str, &str); 6] = [
    ("wasmtime", "gristmill-sandbox"),
    ("ort", "gristmill-backend"),
    ("tract-onnx", "gristmill-backend"),
    ("object_store", "gristmill-store"),
    ("axum", "gristmill-http"),
    ("tonic", "gristmill-http"),
];

/// Crates outside the floors: nothing imports them.
const OUTSIDE: [&str; 2] = ["gristmill-benches", "gristmill-xtask"];

/// Check every crate's imports against its floor.
pub(crate) fn check() -> Result<()> {
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let faults: Vec<String> = packages.iter().flat_map(faults_of).collect();
    if faults.is_empty() {
        return Ok(());
    }
    bail!("imports against the layers of host/ARCHITECTURE.md:\n  {}", faults.join("\n  "));
}

fn faults_of(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    if OUTSIDE.contains(&name) {
        return Vec::new();
    }
    let Some(own) = floor_of(name) else {
        return vec![format!("{name} has no floor: give it one in host/xtask/src/layers.rs")];
    };
    let imports = package["dependencies"].as_array().into_iter().flatten();
    // Tests may look across: what counts is what ships.
    let imports = imports.filter(|import| import["kind"].is_null());
    imports.filter_map(|import| fault_of(name, own, import["name"].as_str()?)).collect()
}

fn fault_of(name: &str, own: u8, import: &str) -> Option<String> {
    if let Some((library, owner)) = OWNERS.iter().find(|(library, _)| *library == import) {
        return (*owner != name)
            .then(|| format!("{name} imports {library}, which only {owner} may"));
    }
    if !import.starts_with("gristmill-") {
        return None;
    }
    match floor_of(import) {
        Some(floor) if floor < own => None,
        Some(floor) => Some(format!("{name} (floor {own}) imports {import} (floor {floor})")),
        None => Some(format!("{name} imports {import}, which has no floor")),
    }
}

fn floor_of(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(known, _)| *known == name).map(|(_, floor)| *floor)
}

#[cfg(test)]
mod tests {
    use super::fault_of;

    #[test]
    fn upward_sideways_and_foreign_imports_are_faults() {
        assert_eq!(fault_of("gristmill-batch", 1, "gristmill-core"), None);
        assert!(fault_of("gristmill-batch", 1, "gristmill-sandbox").is_some());
        assert!(fault_of("gristmill-pipeline", 4, "gristmill-control").is_some());
        assert!(fault_of("gristmill-http", 5, "wasmtime").is_some());
        assert_eq!(fault_of("gristmill-sandbox", 2, "wasmtime"), None);
        assert!(fault_of("gristmill-http", 5, "gristmill-benches").is_some());
    }
}
