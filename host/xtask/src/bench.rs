//! `cargo xtask bench`: benchmarks, given as ratios to a reference that is measured in the same
//! run.
//!
//! Each benchmark is a file with a function `run`, which fills the table of its `Bench`
//! (`harness`). Those that a program of `benches/` measures are in `programs`. `loads` has the
//! requests, `clients` sends them, `running` starts other servers, `models` makes large models,
//! `rounds` and `answers` compare, `criterion` reads its medians, and `options` reads the command
//! line. None of these knows a benchmark.

mod compare;
mod detector;
mod explain;
mod flames;
mod generator;
mod jobs;
mod load;
mod oip;
mod peers;
mod programs;
mod python;
mod receipts;
mod sandbox;
mod sizes;

mod answers;
mod clients;
mod criterion;
mod harness;
mod loads;
mod models;
mod options;
mod rounds;
mod running;

pub(crate) use clients::Round;
pub(crate) use harness::add_photos;
pub(crate) use loads::LOADS;

use anyhow::{Result, ensure};
use clap::{Arg, ArgMatches, Command};

use self::harness::Bench;
use self::options::Options;

/// A benchmark: its name, the options that it takes beside those of all, what it does, and how.
type Benchmark =
    (&'static str, &'static [&'static str], &'static str, fn(&mut Bench<'_>) -> Result<()>);

const ALL: [Benchmark; 18] = [
    ("sandbox", &[], "Measure plugin calls, fresh and in reused instances", sandbox::run),
    ("batch", &[], "Compare the batcher alone with the bare session (5 min)", programs::batch),
    ("load", &[], "Compare requests through /v1 with FastAPI and a bare echo", load::run),
    ("detector", &[], "Compare a detector's steps in Python with NumPy", detector::run),
    ("python", &["only"], "Measure what a team that writes Python brings (25 min)", python::run),
    ("oip", &[], "Compare /v2 and gRPC with an echo, a replay and ONNX Runtime", oip::run),
    ("peers", &["only"], "Compare with other inference servers (35 min)", peers::run),
    ("jobs", &["only", "quick", "products"], "Compare whole jobs with FastAPI (35 min)", jobs::run),
    ("explain", &[], "Compare what gristmill bench --explain predicts and measures", explain::run),
    ("flames", &[], "Write flame graphs of four loads", flames::run),
    ("receipts", &[], "Compare what requests are charged with the CPU time", receipts::run),
    ("generator", &[], "Compare gristmill bench, as a client, with wrk", generator::run),
    ("neighbour", &["only"], "Measure a tenant beside attacks (28 min)", programs::neighbour),
    ("pace", &["only", "before"], "Measure a busy tenant's plugin calls (10 min)", programs::pace),
    ("sizes", &["only"], "Compare sizes that the server chooses with a grid", sizes::run),
    ("control", &["only"], "Measure releases under load, many tenants (15 min)", programs::control),
    ("compare", &["only", "before", "after"], "Compare two servers in turns", compare::run),
    ("gpu", &["lines"], "Measure ResNet-50 on CUDA, by ORT_DYLIB_PATH (12 min)", programs::gpu),
];

/// Those that run only if they are named: they need more than this machine and the repository.
const ON_DEMAND: [&str; 2] = ["compare", "gpu"];

/// The options that some benchmarks have.
const SHOWN: [&str; 6] = ["only", "before", "after", "lines", "quick", "products"];

pub(crate) fn command() -> Command {
    let bench = Command::new("bench")
        .about("Measure: print a table, and write benches/results/NAME.json")
        .after_help(
            "Without a name, all but compare and gpu run.\n\n\
             Examples:\n  \
             cargo xtask bench load peers\n  \
             cargo xtask bench neighbour --only guest/loop --no-build\n  \
             cargo xtask bench jobs --only photo --only ocr --quick\n  \
             cargo xtask bench compare --before SERVER --after SERVER --only '/v1, ranker'\n  \
             cargo xtask bench gpu --lines FILE\n\n\
             Rows with a target end in `reached` or `missed`. gpu needs ORT_DYLIB_PATH, the path of \
             an ONNX Runtime for CUDA. On a machine with a GPU and without Rust, run \
             target/release/gpu, and record what it printed with --lines.",
        )
        .args(options::arguments(&SHOWN).map(|all| all.global(true)));
    ALL.into_iter().fold(bench, |bench, (name, shown, about, _)| {
        let more = Arg::new("more").value_name("NAME").num_args(0..);
        let more = more.value_parser(ALL.map(|(name, ..)| name)).hide_possible_values(true);
        let benchmark = Command::new(name)
            .about(about)
            .after_help("benches/README.md says what it is compared with, and has the figures.")
            .args(options::arguments(shown))
            .arg(more.help("Benchmarks that run as well"));
        bench.subcommand(benchmark)
    })
}

/// Run the benchmarks that are named.
pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let (names, matches): (Vec<&str>, _) = match matches.subcommand() {
        Some((name, matches)) => {
            let more = matches.get_many::<String>("more").into_iter().flatten();
            (std::iter::once(name).chain(more.map(String::as_str)).collect(), matches)
        }
        None => {
            let all = ALL.iter().map(|(name, ..)| *name);
            (all.filter(|name| !ON_DEMAND.contains(name)).collect(), matches)
        }
    };
    let options = Options::of(matches);
    ensure!(options.lines.is_none() || names == ["gpu"], "--lines is an option of bench gpu alone");
    if names.contains(&"gpu") && options.lines.is_none() {
        // Fail before everything is built.
        programs::cuda_library()?;
    }
    if options.build {
        Bench::build()?;
    }
    for (name, _, _, run) in ALL.into_iter().filter(|(name, ..)| names.contains(name)) {
        let mut bench = Bench::new(name, &options);
        run(&mut bench)?;
        bench.table.finish()?;
    }
    Ok(())
}
