//! The component of StarlingMonkey, the SDK and `sdk/js/runtime`, which componentize-js makes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::made::Made;
use crate::setup::{copy_files, node_packages};
use crate::shell::{program, root, run};

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
    Ok(node_packages("js-runtime-tools", "sdk/js/build")?.join("node_modules"))
}
