//! Plugins in JavaScript and TypeScript: the SDK's own build script, with its pinned packages.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use gristmill_core::Digest;

use super::module::{Module, folder_name};
use crate::plugin::build_folder::BuildFolder;
use crate::plugin::language::{Language, js_manifest};
use crate::plugin::sdk::Sdks;
use crate::plugin::tool::{output, run};

/// The oldest version of Node that the build script runs on.
const NODE_MAJOR_MIN: u32 = 20;

const REMEDY: &str = "install Node 20 or newer with npm, on Debian 13: apt-get install nodejs npm";

/// Build the plugin in `folder`.
pub(super) fn compile(folder: &Path) -> Result<Module> {
    let builds = BuildFolder::open()?;
    let manifest = js_manifest(folder)?;
    let options = &manifest["gristmill"];
    let sdks = Sdks::unpack(&builds)?;
    let build = sdks.of(Language::Js).join("build");
    check_node()?;
    install(&build, &builds)?;
    let name = name_of(&manifest, folder)?;
    eprintln!("building {name} with componentize-js");
    let made = tempfile::tempdir()?;
    let out = made.path().join("plugin.wasm");
    let outside = made.path().join("outside.json");
    let mut script = Command::new("node");
    script.arg(build.join("build.mjs")).arg(folder);
    script.arg("--wit").arg(sdks.wit()).arg("--out").arg(&out).arg("--outside").arg(&outside);
    for key in ["world", "disable"] {
        if let Some(value) = options[key].as_str() {
            script.arg(format!("--{key}")).arg(value);
        }
    }
    run(&mut script, REMEDY)?;
    let file = fs::read(&out).context("the build script made no file")?;
    let outside = fs::read(&outside).context("the build script did not say what it read")?;
    let outside: Vec<String> = serde_json::from_slice(&outside)?;
    Ok(Module { name, file, is_of_folder: outside.is_empty() })
}

/// The package's name without its scope, or the folder's.
pub(super) fn name_of(manifest: &serde_json::Value, folder: &Path) -> Result<String> {
    if let Some(name) = manifest["name"].as_str() {
        return Ok(name.rsplit('/').next().unwrap_or(name).to_owned());
    }
    folder_name(folder)
}

fn check_node() -> Result<()> {
    let version = output(Command::new("node").arg("--version"), REMEDY)?;
    let major = version.trim().trim_start_matches('v').split('.').next();
    let major = major.and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < NODE_MAJOR_MIN) {
        bail!("node --version says {}, which is too old: {REMEDY}", version.trim());
    }
    Ok(())
}

/// Put the packages of the build script into `build/node_modules`. They are installed once for all
/// versions of the SDK that have the same list of packages.
fn install(build: &Path, builds: &BuildFolder) -> Result<()> {
    let lists = ["package.json", "package-lock.json"];
    let list = fs::read(build.join(lists[1]))?;
    let name = format!("npm-{}", &Digest::of(&list).hex()[..16]);
    builds.part(&name, |folder| {
        eprintln!("installing esbuild and componentize-js into {} (once)", folder.display());
        for name in lists {
            fs::copy(build.join(name), folder.join(name))?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
        run(npm.current_dir(folder), REMEDY)
    })?;
    // From SDK/sdk/js/build, so that the folder of all builds may be moved.
    let target = Path::new("../../../..").join(name).join("node_modules");
    match symlink(target, build.join("node_modules")) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| build.display().to_string())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::json;

    use super::*;

    #[test]
    fn the_packages_name_is_the_plugins() {
        let folder = tempfile::tempdir().unwrap();
        let name = |manifest| name_of(&manifest, folder.path()).unwrap();
        assert_eq!(name(json!({ "name": "hello" })), "hello");
        assert_eq!(name(json!({ "name": "@acme/hello" })), "hello");
        let folder_name = folder.path().file_name().unwrap().to_string_lossy();
        assert_eq!(name(json!({})), folder_name);
    }
}
