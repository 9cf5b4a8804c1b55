//! Building all that tests, or the demo, need.

use std::path::PathBuf;
use std::thread;

use anyhow::{Result, anyhow};

use crate::setup::{
    PLUGIN_TOOLS, build_all_languages, build_components, build_server, install_for_tests,
    install_onnxruntime, install_wasm_toolchain,
};
use crate::shell::{cargo_with_clippy, run, step, target};
use crate::{runtimes, stock};

/// The paths of what was built, in the profile that demo and tests share.
pub(crate) struct Built {
    pub(crate) gristmill: PathBuf,
    pub(crate) components: PathBuf,
    pub(crate) onnxruntime: PathBuf,
}

/// Install missing tools and build everything, tests included, so that demo and test share one set
/// of compiled dependencies.
pub(crate) fn build_all() -> Result<Built> {
    let onnxruntime = thread::scope(|scope| {
        // Installing waits for the network, building for the processor.
        let installing = scope.spawn(install_for_tests);
        step("building (the first time takes about 20 minutes on 2 cores)");
        // Not the programs of `benches/`, which are large.
        run(cargo_with_clippy().args(["test", "--workspace", "--no-run"]))?;
        installing.join().map_err(|_| anyhow!("installing panicked"))?
    })?;
    let gristmill = target().join("debug/gristmill");
    build_components(&gristmill)?;
    runtimes::build()?;
    let components = build_all_languages(&gristmill)?;
    stock::build(&gristmill, &target().join(PLUGIN_TOOLS), &components)?;
    Ok(Built { gristmill, components, onnxruntime })
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
