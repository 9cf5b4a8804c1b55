//! `cargo xtask bench`: benchmarks, given as ratios to a reference that is measured in the same
//! run.
//!
//! Each benchmark is a file with a function `run`. `options` reads the command line, `shipped`
//! builds the server, `processes` starts it with its peers, `services` with a picture classifier as
//! well, `own_client` and `wrk` make load, `rounds` compares, and `table` prints and records the
//! figures. None of these knows a benchmark.

mod batch;
mod compare;
mod control;
mod explain;
mod flames;
mod generator;
mod gpu;
mod load;
mod neighbour;
mod oip;
mod pace;
mod peers;
mod receipts;
mod sandbox;
mod sizes;

mod made_models;
mod options;
mod own_client;
mod processes;
mod rounds;
pub(crate) mod services;
mod shipped;
mod table;
mod wrk;

pub(crate) use own_client::Round;
pub(crate) use table::{Table, Verdict};

use anyhow::{Result, bail};

use self::options::Options;
use self::shipped::Shipped;

/// Run the benchmarks that `args` name. Without names, run all but `gpu` and `compare`, which need
/// more than this machine and the repository.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let options = Options::parse(args)?;
    type Benchmark = fn(&Shipped, &Options) -> Result<()>;
    let all: [(&str, Benchmark); 15] = [
        ("sandbox", sandbox::run),
        ("batch", |_, _| batch::run()),
        ("load", |shipped, _| load::run(shipped)),
        ("oip", |shipped, _| oip::run(shipped)),
        ("peers", peers::run),
        ("explain", |shipped, _| explain::run(shipped)),
        ("flames", |shipped, _| flames::run_flames(shipped)),
        ("receipts", |shipped, _| receipts::run(shipped)),
        ("generator", |shipped, _| generator::run(shipped)),
        ("neighbour", neighbour::run),
        ("pace", pace::run),
        ("sizes", sizes::run),
        ("control", control::run),
        ("compare", compare::run),
        ("gpu", gpu::run),
    ];
    let known = all.map(|(name, _)| name);
    if let Some(unknown) = options.names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("no benchmark {unknown:?}: there are {}", known.join(", "));
    }
    if options.has_name("gpu") && options.lines.is_none() {
        // Fail before everything is built.
        gpu::library()?;
    }
    let shipped = Shipped::build(&options)?;
    for (name, run) in all {
        let is_default = options.names.is_empty() && !["gpu", "compare"].contains(&name);
        if options.has_name(name) || is_default {
            run(&shipped, &options)?;
        }
    }
    Ok(())
}
