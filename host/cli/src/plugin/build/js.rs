//! Plugins in JavaScript and TypeScript: the SDK's own build script, with its pinned packages,
//! makes an archive of sources, or a component with an engine of its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use gristmill_core::Digest;
use gristmill_sandbox::{Archive, Language as RuntimeLanguage, Manifest};

use super::assets::archived;
use super::files::Files;
use super::module::{Module, folder_name};
use crate::plugin::build_folder::BuildFolder;
use crate::plugin::language::{Language, js_manifest};
use crate::plugin::sdk::Sdks;
use crate::plugin::tool::{output, run};

/// The oldest version of Node that the build script runs on.
const NODE_MAJOR_MIN: u32 = 20;

const REMEDY: &str = "install Node 20 or newer with npm, on Debian 13: apt-get install nodejs npm";

/// The plugin's name, and its sources: one script with all that it imports but the SDK, and the
/// author's own files.
pub(super) fn archive(folder: &Path) -> Result<(String, Archive)> {
    let manifest = js_manifest(folder)?;
    ensure!(
        manifest["gristmill"]["disable"].is_null(),
        "package.json: gristmill.disable is for components: the server's own engine has all \
         features that plugins may use; leave it out, or add \"component\": true"
    );
    let made = tempfile::tempdir()?;
    let (mut script, _) = script(folder, &manifest, false)?;
    let app = output(script.arg("--sources").arg(made.path()), REMEDY)?.trim().to_owned();
    let mut files = Files::default();
    files.add(made.path(), "", false)?;
    files.found.extend(archived(folder)?);
    let archive = Archive {
        manifest: Manifest { language: RuntimeLanguage::JavaScript, app },
        files: files.found,
    };
    Ok((name_of(&manifest, folder)?, archive))
}

/// Build a component of the plugin in `folder`.
pub(super) fn compile(folder: &Path) -> Result<Module> {
    let manifest = js_manifest(folder)?;
    let (mut script, sdks) = script(folder, &manifest, true)?;
    let name = name_of(&manifest, folder)?;
    eprintln!("building {name} with componentize-js");
    let made = tempfile::tempdir()?;
    let out = made.path().join("plugin.wasm");
    let outside = made.path().join("outside.json");
    script.arg("--wit").arg(sdks.wit()).arg("--out").arg(&out).arg("--outside").arg(&outside);
    if let Some(features) = manifest["gristmill"]["disable"].as_str() {
        script.arg("--disable").arg(features);
    }
    run(&mut script, REMEDY)?;
    let file = fs::read(&out).context("the build script made no file")?;
    let outside = fs::read(&outside).context("the build script did not say what it read")?;
    let outside: Vec<String> = serde_json::from_slice(&outside)?;
    Ok(Module { name, file, is_of_folder: outside.is_empty() })
}

/// The build script for `folder`, ready to run but for what it makes, and the SDKs that it is of.
fn script(
    folder: &Path,
    manifest: &serde_json::Value,
    is_component: bool,
) -> Result<(Command, Sdks)> {
    let builds = BuildFolder::open()?;
    let sdks = Sdks::unpack(&builds)?;
    let build = sdks.of(Language::Js).join("build");
    check_node()?;
    install(&build, &builds, is_component)?;
    let mut script = Command::new("node");
    script.arg(build.join("build.mjs")).arg(folder);
    if let Some(world) = manifest["gristmill"]["world"].as_str() {
        script.arg("--world").arg(world);
    }
    Ok((script, sdks))
}

/// Whether the plugin is built as a component. Otherwise it is an archive of its sources.
pub(super) fn is_component(folder: &Path) -> Result<bool> {
    match &js_manifest(folder)?["gristmill"]["component"] {
        serde_json::Value::Null => Ok(false),
        serde_json::Value::Bool(is_component) => Ok(*is_component),
        other => bail!("package.json: gristmill.component is {other}, not true or false"),
    }
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

/// Put the packages of the build script into `build/node_modules`: esbuild, and componentize-js if
/// a component is built. They are installed once for all versions of the SDK that have the same
/// list of packages.
fn install(build: &Path, builds: &BuildFolder, is_component: bool) -> Result<()> {
    let lists = ["package.json", "package-lock.json"];
    let list = fs::read(build.join(lists[1]))?;
    let all = format!("npm-{}", &Digest::of(&list).hex()[..16]);
    let (name, shown, option) = match is_component {
        true => (all.clone(), "esbuild and componentize-js", "--include=dev"),
        false => (format!("{all}-bundle"), "esbuild", "--omit=dev"),
    };
    builds.part(&name, |folder| {
        eprintln!("installing {shown} into {} (once)", folder.display());
        for name in lists {
            fs::copy(build.join(name), folder.join(name))?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", option, "--no-audit", "--no-fund", "--loglevel=error"]);
        run(npm.current_dir(folder), REMEDY)
    })?;
    // From SDK/sdk/js/build, so that the folder of all builds may be moved.
    let target = |name: &str| Path::new("../../../..").join(name).join("node_modules");
    let link = build.join("node_modules");
    let shown = || link.display().to_string();
    // A link to all packages serves both.
    if fs::read_link(&link)
        .is_ok_and(|linked| [&name, &all].map(|name| target(name)).contains(&linked))
    {
        return Ok(());
    }
    let unfinished = build.join(format!("node_modules.{}", std::process::id()));
    symlink(target(&name), &unfinished).with_context(shown)?;
    fs::rename(&unfinished, &link).with_context(shown)
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
