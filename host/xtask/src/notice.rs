//! `cargo xtask notice`: writes `NOTICE`, which names the packages that the server's binary is made
//! of.
//!
//! A package counts if the binary depends on it, directly or by way of others. Build scripts,
//! macros and the packages that only tests use do not count. `cargo xtask test` fails if the file
//! is not up to date.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{cargo, output, root};

const FILE: &str = "NOTICE";

/// The package of the binary that ships.
const SHIPPED: &str = "gristmill-app";

/// The platform that it is built for.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

const HEAD: &str = "\
Gristmill
Licensed under the Apache License, Version 2.0: see LICENSE.

The server's binary contains the Rust standard library (MIT OR Apache-2.0, The Rust Project
Developers), mimalloc (MIT, Microsoft Corporation) and the packages below, from crates.io. Each line
names a package, its version and licence, its authors or else its repository, and the files of the
package that hold the licence's text; `no text` where it has none. The console's page,
which is in the binary, contains preact (MIT, Jason Miller) and uPlot (MIT, Leon Sorokin).

Written by `cargo xtask notice`.

";

/// A file whose name begins with one of these has a licence's text.
const TEXTS: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Write the file.
pub(crate) fn run() -> Result<()> {
    fs::write(root().join(FILE), rendered()?).context(FILE)
}

/// Fail if the file is not up to date.
pub(crate) fn check() -> Result<()> {
    let found = fs::read_to_string(root().join(FILE)).context(FILE)?;
    if found != rendered()? {
        bail!("{FILE} is not up to date: run cargo xtask notice");
    }
    Ok(())
}

fn rendered() -> Result<String> {
    let metadata = output(cargo().args([
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        PLATFORM,
    ]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let lines: BTreeSet<_> = shipped(&metadata)?.into_iter().map(line_of).collect::<Result<_>>()?;
    Ok(lines.iter().fold(HEAD.to_owned(), |text, line| text + line + "\n"))
}

/// The packages of crates.io that the binary contains.
fn shipped(metadata: &Value) -> Result<Vec<&Value>> {
    let packages = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let is_app = |package: &&&Value| package["name"] == SHIPPED;
    let app = packages.values().find(is_app).and_then(|app| app["id"].as_str());
    let mut open = vec![app.with_context(|| format!("there is no package {SHIPPED}"))?];
    let (mut seen, mut shipped) = (HashSet::from([open[0]]), Vec::new());
    while let Some(id) = open.pop() {
        let package = packages.get(id).with_context(|| format!("no package has the id {id}"))?;
        if has_kind(&package["targets"], "kind", &"proc-macro".into()) {
            continue;
        }
        if !package["source"].is_null() {
            shipped.push(*package);
        }
        let imports = nodes.get(id).and_then(|node| node["deps"].as_array());
        for import in imports.into_iter().flatten() {
            let is_linked = list(&import["dep_kinds"]).iter().any(|used| used["kind"].is_null());
            let id = import["pkg"].as_str().context("an import has no id")?;
            if is_linked && seen.insert(id) {
                open.push(id);
            }
        }
    }
    Ok(shipped)
}

fn by_id(items: &Value) -> HashMap<&str, &Value> {
    list(items).iter().filter_map(|item| Some((item["id"].as_str()?, item))).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Whether one of `items` has `kind` in its list `field`.
fn has_kind(items: &Value, field: &str, kind: &Value) -> bool {
    list(items).iter().any(|item| list(&item[field]).contains(kind))
}

fn line_of(package: &Value) -> Result<String> {
    let text = |field: &str| {
        let missing = || format!("a package has no {field}: {}", package["id"]);
        package[field].as_str().with_context(missing)
    };
    // Names without mail addresses.
    let authors = list(&package["authors"]).iter().filter_map(Value::as_str);
    let authors: Vec<_> = authors.filter_map(|author| author.split(" <").next()).collect();
    let from = match authors.is_empty() {
        true => package["repository"].as_str().unwrap_or("crates.io").to_owned(),
        false => authors.join(", "),
    };
    let manifest = Path::new(text("manifest_path")?);
    let texts = texts_in(manifest.parent().context("a package has no folder")?)?;
    let texts = if texts.is_empty() { "no text".to_owned() } else { texts.join(", ") };
    let (name, version, license) = (text("name")?, text("version")?, text("license")?);
    Ok(format!("{name} {version}; {license}; {from}; {texts}"))
}

/// The names of the files with licences, in order.
fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let upper = name.to_uppercase();
        if entry.file_type()?.is_file() && TEXTS.iter().any(|text| upper.starts_with(text)) {
            texts.push(name);
        }
    }
    texts.sort();
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_linked_counts_and_macros_build_scripts_and_tests_do_not() {
        let package = |id: &str, kind: &str| {
            let targets = json!([{ "kind": [kind] }]);
            json!({ "id": id, "name": id, "source": "registry", "targets": targets })
        };
        let import =
            |id: &str, kind: Option<&str>| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [
                { "id": "app", "name": SHIPPED, "source": null, "targets": [] },
                package("linked", "lib"), package("below", "lib"), package("macros", "proc-macro"),
                package("of-macros", "lib"), package("build", "lib"), package("tests", "lib"),
            ],
            "resolve": { "nodes": [
                { "id": "app", "deps": [
                    import("linked", None), import("macros", None),
                    import("build", Some("build")), import("tests", Some("dev")),
                ] },
                { "id": "linked", "deps": [import("below", None)] },
                { "id": "macros", "deps": [import("of-macros", None)] },
            ] },
        });
        let mut found: Vec<_> = shipped(&metadata)
            .unwrap()
            .iter()
            .map(|crate_| crate_["name"].as_str().unwrap())
            .collect();
        found.sort();
        assert_eq!(found, ["below", "linked"]);
    }

    #[test]
    fn files_with_licences_are_found_by_their_names() {
        let texts = texts_in(&root()).unwrap();
        assert_eq!(texts, ["LICENSE", "NOTICE"]);
    }
}
