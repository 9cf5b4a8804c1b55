//! Plugins in Rust: cargo, with a compiler that can build for WebAssembly.

mod toolchain;

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use gristmill_core::Digest;
use serde_json::Value;

use self::toolchain::{STACK_BYTES, TARGET, Toolchain};
use super::module::Module;
use crate::plugin::build_folder::BuildFolder;
use crate::plugin::language::Language;
use crate::plugin::sdk::Sdks;
use crate::plugin::tool::{output, run};

const REMEDY: &str = "install Rust with rustup (https://rustup.rs)";

/// The folder in which all plugins that have none are built, so that they share the compiled
/// dependencies.
const SHARED: &str = "cargo";

/// Build the plugin in `folder`.
pub(super) fn compile(folder: &Path) -> Result<Module> {
    let Package { id, name, library, target_directory, stack_bytes, has_random } =
        Package::of(folder)?;
    let toolchain = Toolchain::find()?;
    let builds = BuildFolder::open()?;
    let target = target_directory.unwrap_or_else(|| builds.path().join(SHARED));
    // Another plugin may have the same name, and so the same file. Cargo would take it for this one
    // if the sources are older: it knows packages by their place in the workspace.
    let lock = Digest::of(target.as_os_str().as_encoded_bytes()).hex();
    let _lock = builds.lock(&format!("{SHARED}-{}", &lock[..16]))?;
    let folder_is = format!("gristmill_folder_{}", Digest::of(id.as_bytes()).hex());
    let mut cargo = toolchain.cargo_rustc(stack_bytes, has_random);
    cargo.current_dir(folder).args(["--package", &id, "--", "--cfg", &folder_is]);
    cargo.env("CARGO_TARGET_DIR", &target);
    run(&mut cargo, REMEDY)?;
    let module = target.join(TARGET).join("release");
    let module = module.join(format!("{}.wasm", library.replace('-', "_")));
    let file = std::fs::read(&module).with_context(|| module.display().to_string())?;
    Ok(Module { name, file, is_of_folder: true })
}

/// Cargo's metadata of the plugin.
struct Package {
    /// A dependency may have the same name.
    id: String,
    name: String,
    library: String,
    /// Where cargo builds; none if it is the `target` of the plugin's own folder.
    target_directory: Option<PathBuf>,
    /// `package.metadata.gristmill.stack_bytes`.
    stack_bytes: u64,
    /// Whether it depends on the crate `getrandom`.
    has_random: bool,
}

/// The stacks that a plugin may ask for.
const STACKS: RangeInclusive<u64> = 64 << 10..=16 << 20;

impl Package {
    fn of(folder: &Path) -> Result<Self> {
        let manifest = folder.join("Cargo.toml");
        let manifest = manifest.canonicalize()?;
        let mut cargo = Command::new("cargo");
        cargo.args(["metadata", "--format-version", "1", "--filter-platform", TARGET]);
        cargo.arg("--manifest-path").arg(&manifest);
        let metadata: Value = serde_json::from_str(&output(&mut cargo, REMEDY)?)?;
        let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
        let members = metadata["workspace_members"].as_array();
        let members = members.context("cargo metadata has no members")?;
        let package = packages
            .iter()
            .find(|package| package["manifest_path"] == manifest.to_string_lossy().as_ref());
        let Some(package) = package else {
            let members = packages.iter().filter(|package| members.contains(&package["id"]));
            bail!(not_a_plugin(folder, members))
        };
        let name = package["name"].as_str().context("the package has no name")?.to_owned();
        let targets = package["targets"].as_array().context("the package has no targets")?;
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
        check_sdk(package, &manifest)?;
        let stack_bytes = stack_of(package, &manifest)?;
        let is_own = manifest.with_file_name("target") == Path::new(target_directory);
        let target_directory = (!is_own).then(|| target_directory.into());
        let has_random = depends_on_getrandom(&metadata, &package["id"]);
        let id = package["id"].as_str().context("the package has no id")?.to_owned();
        let library = library.to_owned();
        Ok(Self { id, name, library, target_directory, stack_bytes, has_random })
    }
}

/// Whether a package of cargo's metadata needs the crate `getrandom`, for itself or for others.
fn depends_on_getrandom(metadata: &Value, package: &Value) -> bool {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let random = packages.filter(|package| package["name"] == "getrandom");
    let random: HashSet<_> = random.map(|package| package["id"].as_str()).collect();
    let nodes = metadata["resolve"]["nodes"].as_array();
    let edges = |id: &Value| {
        let node = nodes?.iter().find(|node| node["id"] == *id)?;
        node["deps"].as_array()
    };
    // Those for building and for tests have another kind.
    let is_linked = |edge: &&Value| {
        let kinds = edge["dep_kinds"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
    };
    let (mut seen, mut left) = (HashSet::new(), vec![package]);
    while let Some(package) = left.pop() {
        for edge in edges(package).into_iter().flatten().filter(is_linked) {
            if random.contains(&edge["pkg"].as_str()) {
                return true;
            }
            if seen.insert(edge["pkg"].as_str()) {
                left.push(&edge["pkg"]);
            }
        }
    }
    false
}

/// The stack that the plugin asks for.
fn stack_of(package: &Value, manifest: &Path) -> Result<u64> {
    let asked = &package["metadata"]["gristmill"]["stack_bytes"];
    if asked.is_null() {
        return Ok(STACK_BYTES);
    }
    let fits = |bytes: &u64| STACKS.contains(bytes) && bytes.is_multiple_of(16);
    asked.as_u64().filter(fits).with_context(|| {
        format!(
            "{}: package.metadata.gristmill.stack_bytes is {asked}: it must be a multiple of 16 \
             from {} to {}",
            manifest.display(),
            STACKS.start(),
            STACKS.end()
        )
    })
}

/// Fail if the plugin names an SDK that is not there: build folders may be deleted.
fn check_sdk(package: &Value, manifest: &Path) -> Result<()> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let mut sdks = dependencies.filter(|dependency| dependency["name"] == "gristmill-plugin");
    let path = sdks.find_map(|dependency| dependency["path"].as_str());
    let Some(path) = path.filter(|path| !Path::new(path).join("Cargo.toml").exists()) else {
        return Ok(());
    };
    let unpacked = Sdks::unpack(&BuildFolder::open()?)?.of(Language::Rust);
    bail!(
        "there is no SDK in {path}: write gristmill-plugin = {{ path = {:?} }} into {}",
        unpacked.display().to_string(),
        manifest.display()
    )
}

fn is_cdylib(target: &Value) -> bool {
    let types = target["crate_types"].as_array();
    types.is_some_and(|types| types.iter().any(|kind| kind == "cdylib"))
}

/// The error for a workspace without a root package. It names the members that can be built.
fn not_a_plugin<'a>(folder: &Path, members: impl Iterator<Item = &'a Value>) -> String {
    let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let is_plugin = |package: &&'a Value| {
        package["targets"].as_array().is_some_and(|targets| targets.iter().any(is_cdylib))
    };
    let mut plugins: Vec<_> = members
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_plugin_may_ask_for_another_stack() {
        let stack = |metadata: Value| {
            let package = json!({ "metadata": metadata });
            stack_of(&package, Path::new("Cargo.toml")).map_err(|error| error.to_string())
        };
        assert_eq!(stack(json!(null)), Ok(1 << 20));
        assert_eq!(stack(json!({ "gristmill": {} })), Ok(1 << 20));
        let asked = |bytes: Value| stack(json!({ "gristmill": { "stack_bytes": bytes } }));
        assert_eq!(asked(json!(65536)), Ok(64 << 10));
        for bytes in [json!(1024), json!(100_001), json!(32 << 20), json!("1M"), json!(-1)] {
            let error = asked(bytes.clone()).unwrap_err();
            let expected =
                format!("Cargo.toml: package.metadata.gristmill.stack_bytes is {bytes}: ");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn a_plugin_that_links_getrandom_gets_random_numbers() {
        let depends = |kind: Value, id: &str| {
            let dependency = json!({ "pkg": "b", "dep_kinds": [{ "kind": null }] });
            let random = json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] });
            let metadata = json!({
                "packages": [{ "id": "a", "name": "a" }, { "id": id, "name": "getrandom" }],
                "resolve": { "nodes": [
                    { "id": "a", "deps": [dependency] }, { "id": "b", "deps": [dependency, random] },
                ] },
            });
            depends_on_getrandom(&metadata, &json!("a"))
        };
        let git = "git+https://example.com/getrandom#0.3.4";
        assert!(depends(json!(null), "registry+x#getrandom@0.4.3") && depends(json!(null), git));
        assert!(!depends(json!("build"), git) && !depends(json!("dev"), git));
    }
}
