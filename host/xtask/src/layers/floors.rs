//! The floors of host/: a crate may import only from floors below its own. `deny.toml` says which
//! crates may name the big libraries.
//!
//! Dependencies of build scripts count like those of the crate. Dependencies of tests do not: tests
//! may look across, and do not ship.

use serde_json::Value;

/// Each crate's floor, the same as in host/ARCHITECTURE.md.
const FLOORS: [(&str, u8); 27] = [
    ("gristmill-core", 0),
    ("gristmill-log", 0),
    ("gristmill-platform", 0),
    ("gristmill-arrays", 1),
    ("gristmill-imaging", 1),
    ("gristmill-tables", 1),
    ("gristmill-text", 1),
    ("gristmill-metrics", 1),
    ("gristmill-backend", 1),
    ("gristmill-batch", 1),
    ("gristmill-oip", 1),
    ("gristmill-store", 1),
    ("gristmill-transport", 1),
    ("gristmill-profile", 1),
    ("gristmill-otlp", 2),
    ("gristmill-sandbox", 2),
    ("gristmill-outbound", 3),
    ("gristmill-snapshot", 3),
    ("gristmill-serve", 4),
    ("gristmill-state", 4),
    ("gristmill-control", 5),
    ("gristmill-client", 5),
    ("gristmill-http", 5),
    ("gristmill-admin", 6),
    ("gristmill-load", 6),
    ("gristmill-cli", 7),
    ("gristmill-app", 8),
];

/// Crates outside the floors: nothing imports them.
const OUTSIDE: [&str; 2] = ["gristmill-benches", "gristmill-xtask"];

/// The imports of one package, as cargo describes it, that break the rule.
pub(super) fn faults_of(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    if OUTSIDE.contains(&name) {
        return Vec::new();
    }
    let Some(own_floor) = floor_of(name) else {
        return vec![format!(
            "{name} has no floor: give it one in host/xtask/src/layers/floors.rs"
        )];
    };
    let imports = package["dependencies"].as_array().into_iter().flatten();
    let imports = imports.filter(|import| import["kind"].as_str() != Some("dev"));
    imports.filter_map(|import| fault_of(name, own_floor, import["name"].as_str()?)).collect()
}

fn fault_of(name: &str, own_floor: u8, import: &str) -> Option<String> {
    if !import.starts_with("gristmill-") {
        return None;
    }
    match floor_of(import) {
        Some(floor) if floor < own_floor => None,
        Some(floor) => Some(format!("{name} (floor {own_floor}) imports {import} (floor {floor})")),
        None => Some(format!("{name} imports {import}, which has no floor")),
    }
}

fn floor_of(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(known_name, _)| *known_name == name).map(|(_, floor)| *floor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{fault_of, faults_of};

    #[test]
    fn upward_and_sideways_imports_are_faults() {
        assert_eq!(fault_of("gristmill-batch", 1, "gristmill-core"), None);
        assert!(fault_of("gristmill-batch", 1, "gristmill-sandbox").is_some());
        assert!(fault_of("gristmill-serve", 4, "gristmill-control").is_some());
        assert_eq!(fault_of("gristmill-sandbox", 2, "wasmtime"), None);
        assert!(fault_of("gristmill-http", 5, "gristmill-benches").is_some());
    }

    #[test]
    fn build_scripts_count_and_tests_do_not() {
        let package = |kind: Option<&str>| {
            let import = json!({ "name": "gristmill-http", "kind": kind });
            json!({ "name": "gristmill-batch", "dependencies": [import] })
        };
        assert_eq!(faults_of(&package(None)).len(), 1);
        assert_eq!(faults_of(&package(Some("build"))).len(), 1);
        assert_eq!(faults_of(&package(Some("dev"))).len(), 0);
    }
}
