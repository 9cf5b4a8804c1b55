//! `gristmill plugin build`: compile, encode as a component, check, report.

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgMatches, Command};
use gristmill_sandbox::{Admitted, admit};

use super::toolchain::{TARGET, Toolchain};

pub(crate) fn command() -> Command {
    Command::new("build")
        .about("Build a plugin: cargo build for WebAssembly, encode as a component, check it")
        .arg(
            Arg::new("folder")
                .value_name("FOLDER")
                .default_value(".")
                .help("The plugin's folder, the one with its Cargo.toml"),
        )
        .arg(Arg::new("out").long("out").short('o').value_name("FILE").help(
            "Where the component goes [default: beside the compiled module, .component.wasm]",
        ))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let folder = matches.get_one::<String>("folder").context("FOLDER is missing")?;
    let out = matches.get_one::<String>("out").map(PathBuf::from);
    let built = build(Path::new(folder), out)?;
    let Admitted { component, imports, roles } = &built.admitted;
    println!("component  {}", built.path.display());
    println!("size       {} KiB", component.len().div_ceil(1024));
    println!("world      {}", roles.world());
    println!("imports    {}", if imports.is_empty() { "none".into() } else { imports.join(", ") });
    Ok(())
}

/// A component on disk.
pub(crate) struct Built {
    pub(crate) path: PathBuf,
    pub(crate) admitted: Admitted,
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
    let admitted = admit(&file).with_context(|| format!("{} is no plugin", module.display()))?;
    let path = out.unwrap_or_else(|| release.join(format!("{}.component.wasm", package.name)));
    std::fs::write(&path, &admitted.component).with_context(|| path.display().to_string())?;
    Ok(Built { path, admitted })
}

/// What cargo knows of the plugin.
struct Package {
    name: String,
    library: String,
    target_directory: PathBuf,
}

impl Package {
    fn of(folder: &Path) -> Result<Self> {
        let manifest = folder.join("Cargo.toml");
        ensure!(manifest.exists(), "{} has no Cargo.toml", folder.display());
        let manifest = manifest.canonicalize()?;
        let output = Process::new("cargo")
            .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
            .arg(&manifest)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        ensure!(output.status.success(), "cargo metadata failed: {}", output.status);
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
        let own = packages
            .iter()
            .find(|package| package["manifest_path"] == manifest.to_string_lossy().as_ref());
        let own = own.with_context(|| format!("{} is no package", manifest.display()))?;
        let name = own["name"].as_str().context("the package has no name")?.to_owned();
        let targets = own["targets"].as_array().context("the package has no targets")?;
        let is_cdylib = |target: &&serde_json::Value| {
            target["crate_types"]
                .as_array()
                .is_some_and(|types| types.iter().any(|kind| kind == "cdylib"))
        };
        let Some(library) =
            targets.iter().find(is_cdylib).and_then(|target| target["name"].as_str())
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
