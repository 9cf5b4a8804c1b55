//! `cargo xtask bench`: measured in one run, given as ratios against something in the same run.

mod batch;
mod gpu;
mod load;
mod oip;
mod sandbox;
mod table;

pub(crate) use table::Table;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::setup;
use crate::shell::{cargo, program, root, run as run_command, step, target};

/// Run the benchmark of this name, or all that need nothing but this machine: `gpu` runs when it is named.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let (flags, names): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| arg.starts_with("--"));
    let build = match flags[..] {
        [] => true,
        ["--no-build"] => false,
        _ => bail!("unknown flag among {flags:?}: there is --no-build"),
    };
    type Benchmark = fn(&Shipped) -> Result<()>;
    let all: [(&str, Benchmark); 5] = [
        ("sandbox", sandbox::run),
        ("batch", batch::run),
        ("load", load::run),
        ("oip", oip::run),
        ("gpu", gpu::run),
    ];
    let known = all.map(|(name, _)| name);
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        bail!("no benchmark {unknown:?}: there are {}", known.join(", "));
    }
    if names.contains(&"gpu") {
        // Said before everything is built.
        gpu::library()?;
    }
    let shipped = shipped(build)?;
    for (name, run) in all {
        if names.contains(&name) || names.is_empty() && name != "gpu" {
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

/// What a benchmark prints, one JSON object a line.
fn json_lines(benchmark: &mut Command) -> Result<Vec<Value>> {
    let measured = benchmark.stderr(Stdio::inherit()).output()?;
    ensure!(measured.status.success(), "the benchmark failed: {}", measured.status);
    let lines = String::from_utf8(measured.stdout)?;
    lines.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("not JSON")
}

/// ResNet-50 in `precision`, `fp32` or `fp16`, made once: it is too large to be committed.
fn resnet50(precision: &str) -> Result<PathBuf> {
    let name = match precision {
        "fp32" => "resnet50.onnx".to_owned(),
        other => format!("resnet50-{other}.onnx"),
    };
    let path = target().join("models").join(name);
    if !path.exists() {
        let python = setup::python_environment("resnet50", "models/resnet50/requirements.txt")?;
        step(&format!("making ResNet-50, {precision}"));
        let make = root().join("models/resnet50/make.py");
        run_command(program(python).arg(make).arg(&path).arg(precision))?;
    }
    Ok(path)
}
