//! The component of StarlingMonkey, the SDK and `sdk/js/runtime`, which componentize-js makes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::made::Made;
use crate::shell::{program, root, run, step, target};

/// The parts of `sdk/js` that the runtime is made of.
const PARTS: [&str; 3] = ["build", "runtime", "src"];

/// The files and folders of which it is built, without those of which all runtimes are built.
pub(super) fn parts() -> Vec<PathBuf> {
    PARTS.map(|part| root().join("sdk/js").join(part)).into()
}

/// Make it in the folder `work`.
pub(super) fn make(work: &Path) -> Result<Made> {
    // The packages of npm stay out of the sources, of which the server's tools are built.
    let (component, sdk, wit) = (work.join("component.wasm"), work.join("sdk"), work.join("wit"));
    for part in PARTS {
        copy_files(&root().join("sdk/js").join(part), &sdk.join(part))?;
    }
    fs::copy(root().join("sdk/js/package.json"), sdk.join("package.json"))?;
    symlink(install_packages()?, sdk.join("build/node_modules"))?;
    copy_files(&root().join("wit"), &wit.join("deps/plugin"))?;
    fs::copy(root().join("sdk/runtime.wit"), wit.join("runtime.wit"))?;
    let mut build = program("node");
    build.arg(sdk.join("build/runtime.mjs")).arg("--wit").arg(wit).arg("--out").arg(&component);
    run(&mut build)?;
    Ok(Made { component, library: None })
}

/// Install the packages that the SDK's build script needs. Returns their folder.
pub(crate) fn install_packages() -> Result<PathBuf> {
    let folder = target().join("js-runtime-tools");
    let lists = ["package.json", "package-lock.json"];
    let wanted = root().join("sdk/js/build");
    let list = fs::read(wanted.join(lists[1]))?;
    // Written when all is installed.
    let (modules, stamp) = (folder.join("node_modules"), folder.join("installed"));
    if fs::read(&stamp).is_ok_and(|installed| installed == list) {
        return Ok(modules);
    }
    step("installing esbuild and componentize-js");
    fs::create_dir_all(&folder)?;
    for name in lists {
        fs::copy(wanted.join(name), folder.join(name))?;
    }
    let mut npm = program("npm");
    npm.args(["ci", "--include=dev", "--no-audit", "--no-fund", "--silent"]);
    run(npm.current_dir(&folder))?;
    fs::write(stamp, list)?;
    Ok(modules)
}

/// Copy the files of a folder, and those of its folders, but for packages.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if !entry.file_type()?.is_dir() {
            fs::copy(entry.path(), to)?;
        } else if entry.file_name() != "node_modules" {
            copy_files(&entry.path(), &to)?;
        }
    }
    Ok(())
}
