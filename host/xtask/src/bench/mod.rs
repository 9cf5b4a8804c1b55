//! `cargo xtask bench`: measured in one run, given as ratios against something in the same run.

mod load;
mod sandbox;
mod table;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::setup;
use crate::shell::{cargo, run as run_command, step, target};

/// Run the benchmark of this name, or all.
pub(crate) fn run(name: Option<&str>) -> Result<()> {
    match name {
        Some("sandbox") => sandbox::run(),
        Some("load") => load::run(),
        Some(other) => bail!("no benchmark {other:?}: there are sandbox and load"),
        None => {
            sandbox::run()?;
            load::run()
        }
    }
}

/// What the benchmarks measure: the server as it ships, and the plugins.
struct Shipped {
    gristmill: PathBuf,
    components: PathBuf,
}

/// Build the server, the peers in Rust and the criterion benchmarks as they ship.
fn build_shipped() -> Result<Shipped> {
    setup::install_wasm_toolchain()?;
    step("building as shipped (the first time takes about 20 minutes on 2 cores)");
    run_command(cargo().args([
        "build",
        "--release",
        "--workspace",
        "--bins",
        "--bench",
        "sandbox",
    ]))?;
    let gristmill = target().join("release/gristmill");
    let components = setup::build_components(&gristmill)?;
    Ok(Shipped { gristmill, components })
}
