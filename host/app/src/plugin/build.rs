//! `gristmill plugin build`: compile a plugin, encode it as a component, check it, and report.

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgMatches, Command};
use gristmill_sandbox::{CheckedComponent, check_component};
use serde_json::Value;

use super::toolchain::{TARGET, Toolchain};

pub(crate) fn command() -> Command {
    Command::new("build")
        .about("Build a plugin: cargo build for WebAssembly, encode as a component, check it")
        .after_help(
            "Examples:\n  \
             gristmill plugin build                           the plugin in this folder\n  \
             gristmill plugin build plugins/rust/digits --out digits.wasm\n\n\
             A plugin is a library crate with crate-type = [\"cdylib\"] that uses gristmill-plugin. \
             Plugins in other languages are built with their own tools and pushed as files.",
        )
        .arg(
            Arg::new("folder")
                .value_name("FOLDER")
                .default_value(".")
                .help("The plugin's folder, the one with its Cargo.toml"),
        )
        .arg(Arg::new("out").long("out").short('o').value_name("FILE").help(
            "The component's file [default: beside the compiled module, .component.wasm]",
        ))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let folder = matches.get_one::<String>("folder").context("FOLDER is missing")?;
    let out = matches.get_one::<String>("out").map(PathBuf::from);
    let built = build(Path::new(folder), out)?;
    let CheckedComponent { component, imports, roles, .. } = &built.checked;
    println!("component  {}", built.path.display());
    println!("size       {} KiB", component.len().div_ceil(1024));
    println!("world      {}", roles.world());
    println!("imports    {}", if imports.is_empty() { "none".into() } else { imports.join(", ") });
    Ok(())
}

/// A component on disk.
pub(crate) struct Built {
    pub(crate) path: PathBuf,
    pub(crate) checked: CheckedComponent,
}

/// Build the plugin in `folder`.
pub(crate) fn build(folder: &Path, out: Option<PathBuf>) -> Result<Built> {
    let package = Package::of(folder)?;
    let toolchain = Toolchain::find()?;
    let status = toolchain
        .cargo_build()
        .current_dir(folder)
        .args(["--package", &package.name])
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "cargo build failed: {status}");
    let release = package.target_directory.join(TARGET).join("release");
    let module = release.join(format!("{}.wasm", package.library.replace('-', "_")));
    let file = std::fs::read(&module).with_context(|| module.display().to_string())?;
    let checked =
        check_component(&file).with_context(|| format!("{} is not a plugin", module.display()))?;
    let path = out.unwrap_or_else(|| release.join(format!("{}.component.wasm", package.name)));
    std::fs::write(&path, &checked.component).with_context(|| path.display().to_string())?;
    Ok(Built { path, checked })
}

/// Cargo's metadata of the plugin.
struct Package {
    name: String,
    library: String,
    target_directory: PathBuf,
}

impl Package {
    fn of(folder: &Path) -> Result<Self> {
        let manifest = folder.join("Cargo.toml");
        ensure!(
            manifest.exists(),
            "{} has no Cargo.toml: name the plugin's folder; to push a file that is already built, \
             use `gristmill plugin push FILE`",
            folder.display()
        );
        let manifest = manifest.canonicalize()?;
        let output = Process::new("cargo")
            .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
            .arg(&manifest)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        ensure!(output.status.success(), "cargo metadata failed: {}", output.status);
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
        let own = packages
            .iter()
            .find(|package| package["manifest_path"] == manifest.to_string_lossy().as_ref());
        let Some(own) = own else { bail!(not_a_plugin(folder, packages)) };
        let name = own["name"].as_str().context("the package has no name")?.to_owned();
        let targets = own["targets"].as_array().context("the package has no targets")?;
        let Some(library) = targets
            .iter()
            .find(|target| is_cdylib(target))
            .and_then(|target| target["name"].as_str())
        else {
            bail!(
                "package {name:?} has no cdylib: add [lib] crate-type = [\"cdylib\"] to {}",
                manifest.display()
            );
        };
        let target_directory = metadata["target_directory"]
            .as_str()
            .context("cargo metadata has no target directory")?;
        Ok(Self { name, library: library.to_owned(), target_directory: target_directory.into() })
    }
}

fn is_cdylib(target: &Value) -> bool {
    let types = target["crate_types"].as_array();
    types.is_some_and(|types| types.iter().any(|kind| kind == "cdylib"))
}

/// The error for a workspace without a root package. It names the members that can be built.
fn not_a_plugin(folder: &Path, packages: &[Value]) -> String {
    let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let is_plugin = |package: &&Value| {
        package["targets"].as_array().is_some_and(|targets| targets.iter().any(is_cdylib))
    };
    let mut plugins: Vec<_> = packages
        .iter()
        .filter(is_plugin)
        .filter_map(|package| Path::new(package["manifest_path"].as_str()?).parent())
        .map(|member| folder.join(member.strip_prefix(&root).unwrap_or(member)))
        .map(|member| format!("\n  gristmill plugin build {}", member.display()))
        .collect();
    plugins.sort();
    let workspace = format!("{} is a workspace, not a plugin", folder.display());
    if plugins.is_empty() {
        return format!("{workspace}, and none of its packages has a cdylib");
    }
    format!("{workspace}; build one of its plugins:{}", plugins.concat())
}
