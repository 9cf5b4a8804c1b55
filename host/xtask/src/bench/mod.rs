//! `cargo xtask bench`: measured in one run, given as ratios against something in the same run.

mod load;
mod sandbox;
mod table;

use anyhow::{Result, bail};

use crate::shell::{cargo, run as run_command, step};

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

/// Build the server, the peers in Rust and the criterion benchmarks as they ship.
fn build_release() -> Result<()> {
    step("building with optimisations (the first time takes about 15 minutes on 2 cores)");
    run_command(cargo().args(["build", "--release", "--workspace", "--bins", "--bench", "sandbox"]))
}
