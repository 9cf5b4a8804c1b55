//! What is known about a plugin that was checked, as text and as JSON.

mod archive;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use gristmill_core::PluginLimits;
use gristmill_sandbox::CheckedComponent;
use serde_json::{Value, json};

use super::loading::Loaded;
use crate::output::{Output, kib};

/// What a plugin gets of each package of WASI. Every plugin gets it that imports the package.
const GRANTS: [(&str, &str); 9] = [
    ("cli", "lines of standard output and error go to the log; no arguments, no environment"),
    ("clocks", "the time, and waiting until the request's deadline"),
    ("filesystem", "no file and no folder: every opening fails"),
    ("http", "requests to the services that the tenant's document grants under \"http\""),
    ("io", "streams and polling of the others"),
    ("keyvalue", "values in the stores that the tenant's document grants under \"stores\""),
    ("nn", "runs of the models that a handler's pipeline names under \"models\""),
    ("random", "random numbers of the operating system"),
    ("sockets", "no connection: every socket is refused"),
];

/// A plugin's file, and what is known about it before it is loaded.
pub(crate) enum Checked {
    Component(CheckedComponent),
    /// An archive of sources.
    Archive(Vec<u8>),
}

impl Checked {
    /// The plugin's file.
    pub(super) fn file(&self) -> &[u8] {
        match self {
            Self::Component(checked) => &checked.component,
            Self::Archive(file) => file,
        }
    }
}

/// Print the report about a plugin on standard output. `loaded` is what loading it showed.
pub(super) fn print(
    path: &Path,
    checked: &Checked,
    loaded: Option<&Loaded>,
    output: Output,
) -> Result<()> {
    let (text, json) = match checked {
        Checked::Component(checked) => {
            let report = Report { path, checked, loaded };
            (report.text(), report.json())
        }
        Checked::Archive(file) => archive::report(path, file, loaded)?,
    };
    output.print(json, || text);
    Ok(())
}

/// A component that was checked, and loaded if the command loads it.
struct Report<'a> {
    path: &'a Path,
    checked: &'a CheckedComponent,
    loaded: Option<&'a Loaded>,
}

impl Report<'_> {
    fn text(&self) -> String {
        let CheckedComponent { component, imports, exports, roles, needs } = self.checked;
        let limits = PluginLimits::default();
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<10} {value}");
        };
        line("component", &self.path.display().to_string());
        line("size", &kib(component.len() as u64));
        line("world", &format!("{}, contract {}", roles.world(), self.checked.contract()));
        line("exports", &exports.join(", "));
        line("init", if self.checked.has_init() { "runs once, at upload" } else { "none" });
        let packages = by_package(imports);
        if packages.is_empty() {
            line("imports", "none");
        }
        for (index, (package, interfaces)) in packages.iter().enumerate() {
            let name = if index == 0 { "imports" } else { "" };
            line(name, &format!("{package}: {}", interfaces.join(", ")));
        }
        let grants = grants(imports);
        if grants.is_empty() {
            line("grants", "none: it imports nothing of WASI");
        }
        for (index, (package, gets)) in grants.iter().enumerate() {
            line(if index == 0 { "grants" } else { "" }, &format!("{package}: {gets}"));
        }
        let instances =
            format!("{} core instances (at most {})", needs.instances, limits.instances);
        line(
            "needs",
            &format!("{instances}, {} memories, {} tables", needs.memories, needs.tables),
        );
        if let Some(Loaded { time, initial_memory_bytes, .. }) = self.loaded {
            let (initial, most) = (kib(*initial_memory_bytes), kib(limits.memory_bytes as u64));
            line("memory", &format!("begins with {initial} (at most {most}, if not configured)"));
            line("compiled", &format!("in {:.1} s on one core", time.as_secs_f64()));
        }
        text
    }

    fn json(&self) -> Value {
        let CheckedComponent { component, imports, exports, roles, needs } = self.checked;
        let is_own = |import: &&String| import.starts_with("gristmill:");
        let (gristmill, other): (Vec<_>, Vec<_>) = imports.iter().partition(is_own);
        let grants = grants(imports);
        let mut document = json!({
            "component": self.path.display().to_string(),
            "size_bytes": component.len(),
            "world": roles.world(),
            "contract": self.checked.contract(),
            "exports": exports,
            "init": self.checked.has_init(),
            "imports": { "gristmill": gristmill, "wasi": other },
            "grants": grants.iter().map(|(package, _)| package).collect::<Vec<_>>(),
            "core_instances": needs.instances,
            "memories": needs.memories,
            "tables": needs.tables,
        });
        if let Some(Loaded { time, initial_memory_bytes, .. }) = self.loaded {
            document["initial_memory_bytes"] = json!(initial_memory_bytes);
            document["compile_ms"] = json!(time.as_millis() as u64);
        }
        document
    }
}

/// The names of interfaces, by package: `wasi:cli@0.2.3` has `exit` and `stdout`.
fn by_package(imports: &[String]) -> BTreeMap<String, Vec<&str>> {
    let mut packages = BTreeMap::<_, Vec<_>>::new();
    for import in imports {
        let (path, version) = import.split_once('@').unwrap_or((import, ""));
        let (package, interface) = path.split_once('/').unwrap_or((path, "all"));
        packages.entry(format!("{package}@{version}")).or_default().push(interface);
    }
    packages
}

/// The packages of WASI that it imports from, and what it gets of each.
fn grants(imports: &[String]) -> Vec<(&'static str, &'static str)> {
    let imported = |package: &str| {
        let prefix = format!("wasi:{package}/");
        imports.iter().any(|import| import.starts_with(&prefix))
    };
    GRANTS.into_iter().filter(|(package, _)| imported(package)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_grouped() {
        let imports = [
            "gristmill:plugin/types@0.3.0",
            "wasi:cli/exit@0.2.3",
            "wasi:cli/stdout@0.2.3",
            "wasi:clocks/wall-clock@0.2.0",
        ]
        .map(str::to_owned);
        let packages: Vec<_> = by_package(&imports).into_iter().collect();
        let expected = [
            ("gristmill:plugin@0.3.0", vec!["types"]),
            ("wasi:cli@0.2.3", vec!["exit", "stdout"]),
            ("wasi:clocks@0.2.0", vec!["wall-clock"]),
        ];
        assert_eq!(packages, expected.map(|(package, names)| (package.to_owned(), names)));
        let granted: Vec<_> = grants(&imports).into_iter().map(|(package, _)| package).collect();
        assert_eq!(granted, ["cli", "clocks"]);
    }
}
