//! `gristmill bench`: measuring a server, and comparing two measurements.
//!
//! In reading order: `requests` reads what is sent, `modes` what is measured, `file` keeps the
//! measurements, `table` shows them, and `explain` predicts a load from its parts.

mod explain;
mod file;
mod modes;
mod requests;
mod table;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use gristmill_load::{Arrivals, Load, Pace, compare, plot};

use self::file::Saved;
use self::modes::{Mode, Objective};
use self::requests::Requests;
use crate::admin;
use crate::args::{option, required, switch, text, word};
use crate::output::{self, Output};

pub(crate) fn command() -> Command {
    let seconds = |name, default: &'static str| {
        option(name, "SECONDS").value_parser(value_parser!(f64)).default_value(default)
    };
    Command::new("bench")
        .about("Measure the throughput and the latency of a server, and compare measurements")
        .after_help(
            "Examples:\n  \
             gristmill bench http://127.0.0.1:8080/v1/demo/infer --body seven.png\n  \
             gristmill bench http://127.0.0.1:8080/v2/models/ranker --rows 8 --mode matrix\n  \
             gristmill bench URL --body a.json --rate 2000 --arrivals poisson\n  \
             gristmill bench URL --body a.json --mode sustained --p99-ms 20 --plot load.svg\n  \
             gristmill bench grpc://127.0.0.1:8082/ranker --rows 8\n  \
             gristmill bench URL --body a.json --save before.json\n  \
             gristmill bench compare before.json after.json\n  \
             gristmill bench http://127.0.0.1:8080/v1/demo/infer --body seven.png --explain\n\n\
             Without --rate it is a closed loop: each connection sends the next request when it has \
             its answer. With --rate it is an open loop: requests are sent at their times whether or \
             not answers come, and their time counts from then on, also while they wait for a \
             connection.\n\n\
             MODES: quick measures once. matrix measures with 1, 4, 16, 64 and 256 connections. \
             sustained looks for the highest rate at which 99 of 100 requests take no longer than \
             --p99-ms and none fails.\n\n\
             --explain needs the admin plane of the server, which runs on this machine. It measures \
             the parts of a request alone (client, HTTP, preprocess, batches of the model by their \
             size, postprocess), predicts throughput and latency of the load by simulating the \
             cores and the batcher, measures the load, prints both side by side, and says what \
             bounds the throughput and what to change first. The machine should do nothing else.\n\n\
             A file of --targets has one or more tables [[target]] with url, and method, headers (a \
             list of \"name: value\"), body (a file) or json, and weight. URL beside it is the server \
             that receives the key; without URL no request of the file has the key.\n\n\
             https:// uses --ca-file. grpc:// and grpcs:// are calls of gRPC: grpc://HOST:8082/MODEL \
             with --rows, or the path of a method with a --body that is the encoded message. These \
             three take more of the client's CPU time than http://, gRPC about three times.",
        )
        .subcommand_negates_reqs(true)
        .args_conflicts_with_subcommands(true)
        .subcommand(
            Command::new("compare")
                .about("Say what differs between two saved measurements, and what is noise")
                .args([
                    word("before", "BEFORE").help("A file of --save"),
                    word("after", "AFTER").help("Another one"),
                    output::argument(),
                ]),
        )
        .args([
            Arg::new("url").value_name("URL").required_unless_present("targets").help(
                "Where requests go. A model's URL, http://HOST/v2/models/NAME or grpc://HOST/NAME, \
                 with --rows stands for inferences of zeros. With --targets, the server that \
                 receives the key",
            ),
            option("method", "METHOD").help("The method; POST if there is a body, else GET"),
            option("body", "FILE")
                .value_parser(value_parser!(PathBuf))
                .help("The body of each request"),
            option("header", "HEADER")
                .short('H')
                .action(ArgAction::Append)
                .help("A header of each request, \"name: value\""),
            option("key", "KEY")
                .env("GRISTMILL_API_KEY")
                .hide_env_values(true)
                .help("The tenant's API key; better given in GRISTMILL_API_KEY"),
            option("rows", "N").value_parser(value_parser!(u32).range(1..=65_536)).help(
                "The URL is a model of the Open Inference Protocol: infer so many rows of zeros",
            ),
            option("targets", "FILE")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(["body", "method", "rows"])
                .help("Several requests, chosen at random by their weights: a TOML file"),
            option("mode", "MODE")
                .value_parser(["quick", "matrix", "sustained"])
                .default_value("quick")
                .help("What is measured"),
            option("connections", "N")
                .short('c')
                .value_parser(value_parser!(u32).range(1..=10_000))
                .help("Connections; 16 by default, or at most 256 with --rate"),
            option("rate", "N")
                .short('r')
                .value_parser(value_parser!(f64))
                .conflicts_with("mode")
                .help("Send so many requests a second, whether or not answers come"),
            option("arrivals", "KIND")
                .value_parser(["constant", "poisson", "bursts"])
                .default_value("poisson")
                .help("How the requests of --rate are spread"),
            option("burst", "N")
                .value_parser(value_parser!(u32).range(1..=100_000))
                .default_value("10")
                .help("The requests of one burst"),
            switch("explain")
                .conflicts_with_all(["mode", "rate", "targets", "plot"])
                .help("Predict the load from its parts, and say what to change first"),
        ])
        .args(admin::arguments())
        .args([
            seconds("duration", "10").help("How long each measurement takes"),
            seconds("warm-up", "2").help("The time before it that is not measured"),
            seconds("patience", "5").help("How long answers may take after the end"),
            option("p99-ms", "MS")
                .value_parser(value_parser!(f64))
                .default_value("50")
                .help("The objective of the mode sustained"),
            option("threads", "N")
                .value_parser(value_parser!(u32).range(1..=64))
                .default_value("1")
                .help("Threads of the client; one makes some ten thousand requests a second"),
            option("save", "FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write the measurements as JSON"),
            option("plot", "FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Draw latency over load, as SVG; for the modes matrix and sustained"),
            output::argument(),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    if let Some(("compare", matches)) = matches.subcommand() {
        return run_compare(matches);
    }
    let number = |name: &str| matches.get_one::<u32>(name).map(|number| *number as usize);
    let time = |name: &str| -> Result<Duration> {
        let seconds = matches.get_one::<f64>(name).copied().unwrap_or_default();
        let time = Duration::try_from_secs_f64(seconds);
        time.map_err(|_| anyhow::anyhow!("--{name} is {seconds}: must be seconds, at least 0"))
    };
    let Requests { targets, what } = requests::read(matches)?;
    let load = Load {
        targets,
        pace: pace(matches)?,
        threads: number("threads").unwrap_or(1),
        warm_up: time("warm-up")?,
        duration: time("duration")?,
        patience: time("patience")?,
    };
    if load.duration < Duration::from_secs(1) {
        bail!("--duration is {:?}: must be at least 1 second", load.duration);
    }
    let p99_ms = matches.get_one::<f64>("p99-ms").copied().unwrap_or_default();
    if p99_ms.is_nan() || p99_ms <= 0.0 {
        bail!("--p99-ms is {p99_ms}: must be above 0");
    }
    let mode = match text(matches, "mode") {
        Some("matrix") => Mode::Matrix,
        Some("sustained") => Mode::Sustained(Objective { p99_us: (p99_ms * 1e3) as u64 }),
        _ => Mode::Quick,
    };
    let explains = matches.get_flag("explain");
    let measured = match explains {
        true => vec![explain::run(matches, &load)?],
        false => modes::measure(mode, &load)?,
    };
    let saved = Saved::new(what, measured);
    if let Some(path) = matches.get_one::<PathBuf>("save") {
        saved.write(path)?;
    }
    if let Some(path) = matches.get_one::<PathBuf>("plot") {
        let svg = plot(&saved.what, &saved.measured);
        fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    }
    // An explanation has the measurement in it.
    if !explains {
        Output::of(matches).print(saved.to_json()?, || table::measured(&saved));
    }
    if saved.measured.iter().all(|measured| measured.answered == 0) {
        bail!("no request was answered");
    }
    Ok(())
}

/// When requests are sent.
fn pace(matches: &ArgMatches) -> Result<Pace> {
    let connections = matches.get_one::<u32>("connections").map(|number| *number as usize);
    let Some(rate) = matches.get_one::<f64>("rate").copied() else {
        return Ok(Pace::Closed { connections: connections.unwrap_or(16) });
    };
    if !(0.1..=10_000_000.0).contains(&rate) {
        bail!("--rate is {rate}: must be 0.1 to 10000000 requests a second");
    }
    let burst = matches.get_one::<u32>("burst").copied().unwrap_or(1);
    let arrivals = match text(matches, "arrivals") {
        Some("constant") => Arrivals::Constant,
        Some("bursts") => Arrivals::Bursts(burst),
        _ => Arrivals::Poisson,
    };
    Ok(Pace::Open { rate, arrivals, connections: connections.unwrap_or(256) })
}

fn run_compare(matches: &ArgMatches) -> Result<()> {
    let read = |name: &str| Saved::read(required(matches, name)?.as_ref());
    let (before, after) = (read("before")?, read("after")?);
    let pairs = before.measured.iter().zip(&after.measured);
    if before.measured.len() != after.measured.len()
        || pairs.clone().any(|(one, other)| one.connections != other.connections)
    {
        bail!("the files have different measurements: use the same mode and connections for both");
    }
    let changes: Vec<_> =
        pairs.map(|(one, other)| (table::load(one), compare(one, other))).collect();
    Output::of(matches).print(table::changes_json(&changes), || table::changes(&changes));
    Ok(())
}
