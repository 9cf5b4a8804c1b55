//! Building all that tests, or the demo, need.

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Result, anyhow};

use crate::setup::{
    PLUGIN_TOOLS, build_all_languages, build_components, build_server, install_for_tests,
    install_onnxruntime, install_wasm_toolchain,
};
use crate::shell::{cargo_with_clippy, run, step, target};
use crate::stages::Stages;
use crate::{runtimes, stock};

/// The paths of what was built, in the profile that demo and tests share.
pub(crate) struct Built {
    pub(crate) gristmill: PathBuf,
    pub(crate) components: PathBuf,
    pub(crate) onnxruntime: PathBuf,
}

/// Install missing tools and build everything, tests included, so that demo and test share one set
/// of compiled dependencies.
pub(crate) fn build_all(stages: &mut Stages) -> Result<Built> {
    let onnxruntime = thread::scope(|scope| {
        // Installing waits for the network, building for the processor.
        let installing = scope.spawn(install_for_tests);
        step("building (the first time takes about 20 minutes on 2 cores)");
        // Not the programs of `benches/`, which are large.
        run(cargo_with_clippy().args(["test", "--workspace", "--no-run"]))?;
        installing.join().map_err(|_| anyhow!("installing panicked"))?
    })?;
    stages.ended("building the server and the tests");
    let gristmill = target().join("debug/gristmill");
    let components = build_plugins(&gristmill)?;
    stages.ended("building the runtimes and the plugins");
    Ok(Built { gristmill, components, onnxruntime })
}

/// Build the plugins in Rust beside those in other languages; returns their folder. The compiler
/// optimises a plugin on one core, and cargo builds one after the other.
fn build_plugins(gristmill: &Path) -> Result<PathBuf> {
    thread::scope(|scope| {
        let in_rust = scope.spawn(|| build_components(gristmill));
        runtimes::build()?;
        let components = build_all_languages(gristmill)?;
        stock::build(gristmill, &target().join(PLUGIN_TOOLS), &components)?;
        in_rust.join().map_err(|_| anyhow!("the build of plugins panicked"))??;
        Ok(components)
    })
}

/// Install missing tools and build the server for the demo, without plugins, tests and benches.
/// Returns the paths of the server and of ONNX Runtime.
pub(crate) fn build_demo() -> Result<(PathBuf, PathBuf)> {
    install_wasm_toolchain()?;
    let onnxruntime = install_onnxruntime()?;
    let gristmill = build_server()?;
    runtimes::build()?;
    Ok((gristmill, onnxruntime))
}
