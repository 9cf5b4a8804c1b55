//! The packages that a plugin in Python needs: those of `requirements.txt`, and the dependencies in
//! `pyproject.toml`. pip finds them, in wheels without compiled parts. A lock file in the plugin's
//! folder has their versions and hashes, so that each build of the folder has the same ones.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use gristmill_core::Digest;
use serde_json::Value;
use toml::Table;

use crate::plugin::build_folder::BuildFolder;
use crate::plugin::tool::{Failed, run, run_reading};
use crate::plugin::within::inside;

/// What to do without Python.
pub(super) const REMEDY: &str =
    "install Python 3.10 or newer, on Debian: apt-get install python3 python3-venv";

const REQUIREMENTS: &str = "requirements.txt";
const LOCK: &str = "requirements.lock";

/// The package that the server has.
const SDK: &str = "gristmill-plugin";

/// What pip installs for: the server's Python, without compiled parts.
const WHEELS: [&str; 9] = [
    "--only-binary=:all:",
    "--platform",
    "any",
    "--implementation",
    "py",
    "--abi",
    "none",
    "--python-version",
    "3.14",
];

/// The same with compiled parts, which are those of this machine.
const ANY_WHEELS: [&str; 3] = ["--only-binary=:all:", "--python-version", "3.14"];

/// The folder with the packages of the plugin in `folder`, if it needs some. Writes the lock file
/// as [`lock`] does.
pub(super) fn packages(folder: &Path, project: &Table) -> Result<Option<PathBuf>> {
    let Some(lock) = lock(folder, project)? else { return Ok(None) };
    let name = format!("wheels-{}", &Digest::of(lock.as_bytes()).hex()[..16]);
    let installed = BuildFolder::open()?.part(&name, |part| {
        fs::write(part.join(LOCK), &lock)?;
        let mut pip = pip();
        pip.args(["--no-deps", "--require-hashes", "--no-compile", "--target"]);
        pip.arg(part.join("packages")).args(WHEELS).arg("-r").arg(part.join(LOCK));
        run(&mut pip, REMEDY).with_context(|| format!("cannot install the packages of {LOCK}"))
    })?;
    Ok(Some(installed.join("packages")))
}

/// The lock file of the plugin in `folder`, if it needs packages. Writes it if there is none, or if
/// it is of other requirements.
pub(super) fn lock(folder: &Path, project: &Table) -> Result<Option<String>> {
    let wanted = requirements(folder, project)?;
    let path = inside(folder, LOCK)?;
    if wanted.is_empty() {
        return Ok(None);
    }
    let head = format!(
        "# Written by gristmill plugin build, for these requirements; delete it for newer versions.\n\
         # {}\n",
        Digest::of(wanted.join("\n").as_bytes())
    );
    match fs::read_to_string(&path) {
        Ok(lock) if lock.starts_with(&head) => Ok(Some(lock)),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())
        }
        _ => {
            eprintln!("looking for {}", wanted.join(", "));
            let lock = head + &resolve(&wanted)?;
            fs::write(&path, &lock).with_context(|| path.display().to_string())?;
            Ok(Some(lock))
        }
    }
}

/// What the plugin asks for, without the SDK.
fn requirements(folder: &Path, project: &Table) -> Result<Vec<String>> {
    let listed = project.get("project").and_then(|project| project.get("dependencies"));
    let listed = listed.and_then(toml::Value::as_array).into_iter().flatten();
    let mut all = Vec::new();
    for requirement in listed.filter_map(toml::Value::as_str) {
        check_source("pyproject.toml: dependencies", requirement)?;
        all.push(requirement.to_owned());
    }
    let path = folder.join(REQUIREMENTS);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.with_context(|| path.display().to_string())?,
    };
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split(" #").next().unwrap_or_default().trim();
        let is_requirement = line.starts_with(|first: char| first.is_ascii_alphanumeric());
        ensure!(
            is_requirement || line.is_empty() || line.starts_with('#'),
            "{REQUIREMENTS}:{number}: {line:?} is not the name of a package with its versions: options \
             are pip's own configuration, such as PIP_INDEX_URL"
        );
        check_source(&format!("{REQUIREMENTS}:{number}"), line)?;
        all.extend(is_requirement.then(|| line.to_owned()));
    }
    all.retain(|one| name_of(one) != SDK);
    Ok(all)
}

/// Refuse a package from an address: the lock file has versions, and an address has none.
fn check_source(place: &str, requirement: &str) -> Result<()> {
    ensure!(
        !requirement.contains('@') && !requirement.contains("://"),
        "{place}: {requirement:?} names an address: put the package's folder into paths of \
         [tool.gristmill] in pyproject.toml"
    );
    Ok(())
}

/// The name of a package in a requirement, as indices compare names.
fn name_of(requirement: &str) -> String {
    let is_part = |part: char| part.is_ascii_alphanumeric() || "-_.".contains(part);
    let end = requirement.find(|part| !is_part(part)).unwrap_or(requirement.len());
    requirement[..end].to_lowercase().replace(['_', '.'], "-")
}

fn pip() -> Command {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}

/// The lines of the lock file.
fn resolve(wanted: &[String]) -> Result<String> {
    // With compiled parts first. Without them, pip tries each older version of a package that needs
    // some, which takes minutes.
    let mut found = report(wanted, &ANY_WHEELS).map_err(|Failed { text, error }| {
        eprint!("{}", crate::output::escaped(&text));
        error.context("pip cannot find the packages")
    })?;
    if let Some(compiled) = compiled_of(&found) {
        // These versions may have wheels without compiled parts, too.
        let packages = packages_of(&found)?;
        let pinned = packages.iter().map(|(name, package)| format!("{name}=={}", package.version));
        let all: Vec<_> = wanted.iter().cloned().chain(pinned).collect();
        let Ok(without) = report(&all, &WHEELS) else {
            bail!(
                "{compiled}: plugins have no packages with compiled parts. In their place: \
                 sdk/guides/numpy.md (NumPy, pandas, Pillow, torch), sdk/python/README.md; or name \
                 an older version that has none in {REQUIREMENTS}"
            );
        };
        found = without;
    }
    let mut lock = String::new();
    for (name, Package { version, sha256, .. }) in packages_of(&found)? {
        let _ = writeln!(lock, "{name}=={version} --hash=sha256:{sha256}");
    }
    Ok(lock)
}

/// What pip would install.
fn report(wanted: &[String], options: &[&str]) -> Result<Value, Failed> {
    let failed = |error: anyhow::Error| Failed { text: String::new(), error };
    let folder = tempfile::tempdir().map_err(|error| failed(error.into()))?;
    let file = folder.path().join("report.json");
    let mut pip = pip();
    pip.args(["--dry-run", "--ignore-installed", "--report"]).arg(&file);
    pip.arg("--target").arg(folder.path().join("none")).args(options).arg("--").args(wanted);
    run_reading(&mut pip)?;
    let text = fs::read(&file).map_err(|error| failed(error.into()))?;
    serde_json::from_slice(&text).map_err(|error| failed(error.into()))
}

struct Package {
    version: String,
    sha256: String,
    is_compiled: bool,
}

/// The packages of a report by their names.
fn packages_of(report: &Value) -> Result<BTreeMap<String, Package>> {
    let packages = report["install"].as_array().context("pip's report has no packages")?;
    let package = |item: &Value| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let download = &item["download_info"];
        let name = name_of(item["metadata"]["name"].as_str()?);
        let package = Package {
            version: text(&item["metadata"]["version"])?,
            sha256: text(&download["archive_info"]["hashes"]["sha256"])?,
            is_compiled: !download["url"].as_str()?.ends_with("-none-any.whl"),
        };
        Some((name, package))
    };
    let packages: Option<_> = packages.iter().map(package).collect();
    packages.context("pip's report lacks a name, a version or a hash: update pip")
}

/// The packages with compiled parts, in words.
fn compiled_of(report: &Value) -> Option<String> {
    let all = packages_of(report).ok()?;
    let names: Vec<_> =
        all.iter().filter(|(_, package)| package.is_compiled).map(|(name, _)| &**name).collect();
    let needed: Vec<_> = names.iter().filter_map(|name| who_needs(report, name)).collect();
    match (names.is_empty(), needed.is_empty()) {
        (true, _) => None,
        (false, true) => Some(names.join(", ")),
        (false, false) => Some(format!("{} ({})", names.join(", "), needed.join("; "))),
    }
}

/// Which other package asked for this one.
fn who_needs(report: &Value, name: &str) -> Option<String> {
    let asks = |item: &&Value| {
        let requires = item["metadata"]["requires_dist"].as_array();
        let mut requires = requires.into_iter().flatten().filter_map(Value::as_str);
        // Those behind a `;` are for extras and other systems.
        requires.any(|one| name_of(one) == name && !one.contains("extra =="))
    };
    let by = report["install"].as_array()?.iter().find(asks)?;
    Some(format!("{} needs {name}", by["metadata"]["name"].as_str()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn requirements_are_read_from_both_files() {
        let folder = tempfile::tempdir().unwrap();
        let read = |project: &str, text: &str| {
            fs::write(folder.path().join(REQUIREMENTS), text).unwrap();
            let project = project.parse().unwrap();
            requirements(folder.path(), &project).map_err(|error| error.to_string())
        };
        let project = "[project]\ndependencies = [\"gristmill-plugin\", \"six>=1.16\"]";
        let text = "# ours\n\ninflection==0.5.1  # words\nGristmill_Plugin\n";
        assert_eq!(read(project, text).unwrap(), ["six>=1.16", "inflection==0.5.1"]);
        assert_eq!(read("", "").unwrap(), [""; 0]);
        let address = "[project]\ndependencies = [\"six @ file:///six.whl\"]";
        let error = read(address, "").unwrap_err();
        assert!(error.starts_with("pyproject.toml: dependencies: \"six @"), "{error}");
        for (text, named) in [
            ("six\n-r more.txt", "requirements.txt:2: \"-r more.txt\""),
            ("--index-url x", "PIP_INDEX_URL"),
            ("six @ https://x/six.whl", "names an address"),
            ("../six", "is not the name"),
        ] {
            let error = read("", text).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_package_with_compiled_parts_is_named_with_who_needs_it() {
        let item = |name: &str, file: &str, requires: &[&str]| {
            serde_json::json!({
                "metadata": { "name": name, "version": "1", "requires_dist": requires },
                "download_info": {
                    "url": format!("x/{file}"), "archive_info": { "hashes": { "sha256": "0" } },
                },
            })
        };
        let pure = item("Jinja2", "jinja2-3-py3-none-any.whl", &["MarkupSafe>=2.0"]);
        let compiled = item("MarkupSafe", "markupsafe-3-cp314-linux_x86_64.whl", &[]);
        let report = serde_json::json!({ "install": [pure, compiled] });
        let named = compiled_of(&report).unwrap();
        assert_eq!(named, "markupsafe (Jinja2 needs markupsafe)");
    }
}
