//! `cargo xtask bench`: benchmarks, given as ratios to a reference that is measured in the same
//! run.

mod batch;
mod compare;
mod gpu;
mod load;
mod neighbour;
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

/// The options of the benchmarks, from the command line.
#[derive(Default)]
struct Options {
    /// Whether everything is built first.
    build: bool,
    /// The folder whose binaries are measured in place of release binaries.
    binaries: Option<PathBuf>,
    /// Cases of `neighbour` or `compare`, or their beginnings. All cases if none is given.
    only: Vec<String>,
    /// The servers that `compare` compares.
    before: Option<PathBuf>,
    after: Option<PathBuf>,
    /// Names of benchmarks.
    names: Vec<String>,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self { build: true, ..Self::default() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} wants a value"));
            match *arg {
                "--no-build" => options.build = false,
                "--binaries" => options.binaries = Some(value()?.into()),
                "--only" => options.only.push((*value()?).to_owned()),
                "--before" => options.before = Some(value()?.into()),
                "--after" => options.after = Some(value()?.into()),
                flag if flag.starts_with("--") => bail!(
                    "unknown flag {flag:?}: there are --no-build, --binaries, --only, --before and --after"
                ),
                name => options.names.push(name.to_owned()),
            }
        }
        Ok(options)
    }

    fn names(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }
}

/// Run the benchmark of this name, or all that need only this machine: `gpu` and `compare` run only
/// if named.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let options = Options::parse(args)?;
    type Benchmark = fn(&Shipped, &Options) -> Result<()>;
    let all: [(&str, Benchmark); 7] = [
        ("sandbox", |shipped, _| sandbox::run(shipped)),
        ("batch", |shipped, _| batch::run(shipped)),
        ("load", |shipped, _| load::run(shipped)),
        ("oip", |shipped, _| oip::run(shipped)),
        ("neighbour", neighbour::run),
        ("compare", compare::run),
        ("gpu", |shipped, _| gpu::run(shipped)),
    ];
    let known = all.map(|(name, _)| name);
    if let Some(unknown) = options.names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("no benchmark {unknown:?}: there are {}", known.join(", "));
    }
    if options.names("gpu") {
        // Checked before everything is built.
        gpu::library()?;
    }
    let shipped = shipped(&options)?;
    for (name, run) in all {
        let by_itself = options.names.is_empty() && !["gpu", "compare"].contains(&name);
        if options.names(name) || by_itself {
            run(&shipped, &options)?;
        }
    }
    Ok(())
}

/// The subjects of the benchmarks: the release server and the plugins.
struct Shipped {
    gristmill: PathBuf,
    components: PathBuf,
}

impl Shipped {
    /// A binary that was built along with the server.
    fn binary(&self, name: &str) -> PathBuf {
        self.gristmill.with_file_name(name)
    }
}

/// The server, the peers in Rust and the criterion benchmarks, built in the release profile unless
/// `--no-build` is given.
fn shipped(options: &Options) -> Result<Shipped> {
    let binaries = options.binaries.clone().unwrap_or_else(|| target().join("release"));
    let (gristmill, components) = (binaries.join("gristmill"), target().join("components"));
    if !options.build || options.binaries.is_some() {
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

/// The output of a benchmark, one JSON object a line.
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
