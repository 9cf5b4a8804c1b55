//! `cargo xtask bench`: measured in one run, given as ratios against something in the same run.

mod batch;
mod load;
mod oip;
mod sandbox;
mod table;

pub(crate) use table::Table;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::setup;
use crate::shell::{cargo, run as run_command, step, target};

/// Run the benchmark of this name, or all.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let (flags, names): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| arg.starts_with("--"));
    let build = match flags[..] {
        [] => true,
        ["--no-build"] => false,
        _ => bail!("unknown flag among {flags:?}: there is --no-build"),
    };
    type Benchmark = fn(&Shipped) -> Result<()>;
    let all: [(&str, Benchmark); 4] =
        [("sandbox", sandbox::run), ("batch", batch::run), ("load", load::run), ("oip", oip::run)];
    let known = all.map(|(name, _)| name);
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        bail!("no benchmark {unknown:?}: there are {}", known.join(", "));
    }
    let shipped = shipped(build)?;
    for (name, run) in all {
        if names.is_empty() || names.contains(&name) {
            run(&shipped)?;
        }
    }
    Ok(())
}

/// What the benchmarks measure: the server as it ships, and the plugins.
struct Shipped {
    gristmill: PathBuf,
    components: PathBuf,
}

/// The server, the peers in Rust and the criterion benchmarks as they ship, built unless told not to.
fn shipped(build: bool) -> Result<Shipped> {
    let (gristmill, components) = (target().join("release/gristmill"), target().join("components"));
    if !build {
        return Ok(Shipped { gristmill, components });
    }
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
    setup::build_components(&gristmill)?;
    Ok(Shipped { gristmill, components })
}
