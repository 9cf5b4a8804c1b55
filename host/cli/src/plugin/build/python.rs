//! Plugins in Python: an archive of their sources, or a component by componentize-py, in a Python
//! environment of its own.

mod archive;
mod failure;
mod packages;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

pub(super) use self::archive::archive;
use self::packages::REMEDY;
use super::module::Module;
use crate::output;
use crate::plugin::build_folder::BuildFolder;
use crate::plugin::language::{Language, python_manifest};
use crate::plugin::sdk::Sdks;
use crate::plugin::tool::{Failed, run, run_reading};
use crate::plugin::within::within;

/// The version that the SDK is tested with.
pub(super) const COMPONENTIZE_PY: &str = "0.25.1";

/// Build the plugin in `folder`.
pub(super) fn compile(folder: &Path) -> Result<Module> {
    let builds = BuildFolder::open()?;
    let project = python_manifest(folder)?;
    let Manifest { name, app, world, paths, .. } = Manifest::of(&project)?;
    let packages = packages::packages(folder, &project)?;
    // The plugin's code is run by the build and can read these folders.
    let resolved = |path: &String| {
        within(folder, path)
            .with_context(|| format!("pyproject.toml: tool.gristmill.paths has {path:?}"))
    };
    let paths = paths.iter().map(resolved).collect::<Result<Vec<_>>>()?;
    let sdk = Sdks::unpack(&builds)?.of(Language::Python).join("src");
    let componentize = install(&builds)?;
    eprintln!("building {name} with componentize-py {COMPONENTIZE_PY}");
    let made = tempfile::tempdir()?;
    let out = made.path().join("plugin.wasm");
    let mut build = Command::new(componentize);
    build.current_dir(folder).arg("-d").arg(sdk.join("gristmill_plugin/wit"));
    build.args(["-w", &world, "componentize", &app, "-p", "."]);
    for path in paths.into_iter().chain(packages) {
        build.arg("-p").arg(path);
    }
    if let Err(Failed { text, error }) = run_reading(build.arg("-p").arg(sdk).arg("-o").arg(&out)) {
        eprint!("{}", output::escaped(&failure::shown(&text)));
        return Err(match failure::remedy(&text) {
            Some(remedy) => error.context(remedy),
            None => error,
        });
    }
    let file = fs::read(&out).context("componentize-py made no file")?;
    Ok(Module { name, file, is_of_folder: true })
}

/// The plugin's name.
pub(super) fn name_of(manifest: &Table) -> Result<String> {
    Ok(Manifest::of(manifest)?.name)
}

/// Write the lock file of the packages of the plugin in `folder`, unless a build has written it.
pub(super) fn lock(folder: &Path) -> Result<()> {
    packages::lock(folder, &python_manifest(folder)?).map(drop)
}

/// Whether the plugin is built as a component. Otherwise it is an archive of its sources.
pub(super) fn is_component(folder: &Path) -> Result<bool> {
    Ok(Manifest::of(&python_manifest(folder)?)?.is_component)
}

/// The path of componentize-py.
fn install(builds: &BuildFolder) -> Result<PathBuf> {
    let package = format!("componentize-py=={COMPONENTIZE_PY}");
    let environment = builds.part(&format!("componentize-py-{COMPONENTIZE_PY}"), |folder| {
        eprintln!("installing {package} into {} (once)", folder.display());
        run(Command::new("python3").args(["-m", "venv"]).arg(folder), REMEDY)
            .context("cannot make a Python environment; on Debian: apt-get install python3-venv")?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &package]);
        run(&mut pip, REMEDY).with_context(|| format!("pip cannot install {package}"))
    })?;
    Ok(environment.join("bin/componentize-py"))
}

/// The part of `pyproject.toml` that a build needs.
#[derive(Debug, PartialEq)]
struct Manifest {
    name: String,
    app: String,
    /// The world of a component. An archive exports what its class has.
    world: String,
    /// Folders with packages that the plugin imports.
    paths: Vec<String>,
    /// Whether it is built as a component.
    is_component: bool,
}

impl Manifest {
    fn of(manifest: &Table) -> Result<Self> {
        let text = |table: &str, key: &str, default: Option<&str>| -> Result<String> {
            let section = table.split('.').try_fold(manifest, |at, name| at.get(name)?.as_table());
            match (section.and_then(|table| table.get(key)), default) {
                (Some(Value::String(value)), _) => Ok(value.clone()),
                (Some(other), _) => bail!("pyproject.toml: {table}.{key} is {other}, not a text"),
                (None, Some(default)) => Ok(default.to_owned()),
                (None, None) => bail!("pyproject.toml: {table}.{key} is missing"),
            }
        };
        let paths = match manifest["tool"]["gristmill"].get("paths") {
            None => Vec::new(),
            Some(paths) => {
                let texts = paths.as_array().into_iter().flatten();
                let texts: Option<Vec<_>> =
                    texts.map(|path| path.as_str().map(str::to_owned)).collect();
                let texts = texts.filter(|_| paths.is_array());
                texts.with_context(|| {
                    format!("pyproject.toml: tool.gristmill.paths is {paths}, not a list of texts")
                })?
            }
        };
        let is_component = match manifest["tool"]["gristmill"].get("component") {
            None => false,
            Some(Value::Boolean(is_component)) => *is_component,
            Some(other) => {
                bail!("pyproject.toml: tool.gristmill.component is {other}, not true or false")
            }
        };
        Ok(Self {
            is_component,
            name: text("project", "name", None)?,
            app: text("tool.gristmill", "app", Some("app"))?,
            world: text("tool.gristmill", "world", Some("processor"))?,
            paths,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn read(text: &str) -> Result<Manifest, String> {
        Manifest::of(&text.parse().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_manifest_is_read() {
        let project = "[project]\nname = \"sums\"\n";
        let defaults = read(&format!("{project}[tool.gristmill]")).unwrap();
        assert_eq!((defaults.app.as_str(), defaults.world.as_str()), ("app", "processor"));
        assert!(!defaults.is_component && defaults.paths.is_empty());
        let settings = "[tool.gristmill]\napp = \"pre\"\ncomponent = true\n\
                        world = \"preprocessor\"\npaths = [\"lib\"]";
        let settings = read(&format!("{project}{settings}")).unwrap();
        assert!(settings.is_component);
        assert_eq!((settings.app.as_str(), settings.world.as_str()), ("pre", "preprocessor"));
        assert_eq!(settings.paths, ["lib"]);
    }

    #[test]
    fn a_fault_is_named() {
        assert_eq!(
            read("[tool.gristmill]").unwrap_err(),
            "pyproject.toml: project.name is missing"
        );
        let project = "[project]\nname = \"sums\"\n[tool.gristmill]\n";
        assert_eq!(
            read(&format!("{project}world = 1")).unwrap_err(),
            "pyproject.toml: tool.gristmill.world is 1, not a text"
        );
        assert_eq!(
            read(&format!("{project}paths = \"lib\"")).unwrap_err(),
            "pyproject.toml: tool.gristmill.paths is \"lib\", not a list of texts"
        );
        assert_eq!(
            read(&format!("{project}component = 1")).unwrap_err(),
            "pyproject.toml: tool.gristmill.component is 1, not true or false"
        );
    }
}
