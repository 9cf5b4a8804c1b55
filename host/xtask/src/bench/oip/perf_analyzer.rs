//! perf_analyzer on the server, compared with perf_analyzer on a server that only replays an
//! answer.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::harness::Bench;
use crate::bench::loads::{Load, V2_DIGITS, V2_RANKER};
use crate::bench::running::Running;
use crate::server::Server;
use crate::setup;
use crate::shell::{number, output, program, step, target};
use crate::table::Bound::{AtLeast, AtMost};
use crate::table::Table;

/// The target: the time of a request without its model's, in microseconds.
const OVERHEAD_US_MAX: f64 = 40.0;

/// The target: the throughput over that of a server that replays one recorded answer. The client
/// alone takes about 84 us of CPU time for a request, so an absolute figure says more about
/// it than about the server.
const RATIO_MIN: f64 = 0.9;

/// The address of the replaying server.
const REPLAY: &str = "127.0.0.1:18096";

/// The maximum of runs for one figure: perf_analyzer gives up if its figures vary too much.
const ATTEMPTS: usize = 3;

/// The seconds of one run. On a machine without a free core perf_analyzer was seen to go on for
/// 15 minutes, until it held 22 GB.
const RUN_SECONDS: &str = "120";

/// What `timeout` exits with when the time is over.
const TIMED_OUT: &str = "124";

/// A model with the protocol, the numbers of clients, and whether a server that replays an answer
/// is measured as well.
type Run = (Load, &'static str, [(u32, bool); 3]);

const RUNS: [Run; 3] = [
    (V2_RANKER, "HTTP", [(1, true), (16, true), (64, false)]),
    (V2_RANKER, "gRPC", [(1, false), (16, true), (64, false)]),
    (V2_DIGITS, "HTTP", [(1, false), (16, false), (64, false)]),
];

/// Measure, and add the rows. For the ranker at concurrency 1 over HTTP, also add a row with the
/// server's own time.
pub(super) fn measure(bench: &mut Bench<'_>, server: &Server) -> Result<()> {
    let perf_analyzer = setup::install_perf_analyzer()?;
    for (load, protocol, runs) in RUNS {
        let (model, flag) = (load.model(), protocol.to_lowercase());
        let http = server.url.trim_start_matches("http://");
        let address = if flag == "http" { http } else { &server.grpc };
        for (concurrency, has_replay) in runs {
            let what = format!("{model}, {protocol}, perf_analyzer, concurrency {concurrency}");
            step(&what);
            let shape = load.row().iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            let concurrency_flag = concurrency.to_string();
            let flags = ["-m", model, "-i", &flag, "--shape", &format!("input:{shape}")];
            let flags = [&flags[..], &["--concurrency-range", &concurrency_flag]].concat();
            let before = server.statistics(model)?;
            let per_s = inferences_per_second(&perf_analyzer, address, &flags)?;
            let after = server.statistics(model)?;
            if has_replay {
                let mut replay = program(bench.binary("replay"));
                replay.args([&flag, REPLAY, address]);
                let _replay = Running::start(&mut replay, REPLAY)?;
                let replay_per_s = inferences_per_second(&perf_analyzer, REPLAY, &flags)?;
                let ratio = per_s / replay_per_s;
                let figures = json!({
                    "per_s": per_s, "replay_per_s": replay_per_s, "ratio_to_replay": ratio,
                });
                bench.table.row(what, figures).with_bound(ratio, AtLeast(RATIO_MIN), "x replay");
            } else {
                bench.table.row(what, json!({ "per_s": per_s }));
            }
            if (load.path, protocol, concurrency) == (V2_RANKER.path, "HTTP", 1) {
                add_overhead(&before, &after, &mut bench.table)?;
            }
        }
    }
    Ok(())
}

/// Let perf_analyzer measure the server at `address`.
fn inferences_per_second(perf_analyzer: &Path, address: &str, flags: &[&str]) -> Result<f64> {
    let report = target().join("oip-perf-analyzer.csv");
    let mut command = program("timeout");
    command.arg(RUN_SECONDS).arg(perf_analyzer);
    command.args(["-u", address, "-b", "1", "--measurement-interval", "3000", "--max-trials", "5"]);
    command.args(["-s", "30"]).args(flags).arg("-f").arg(&report);
    for attempt in 1.. {
        match output(&mut command) {
            Ok(_) => break,
            Err(error) if attempt < ATTEMPTS && may_succeed(&error.to_string()) => {
                step("no stable figures: measuring again");
            }
            Err(error) => return Err(error),
        }
    }
    let text = std::fs::read_to_string(&report)?;
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (header, values) = lines.next().zip(lines.next()).context("an empty report")?;
    let at = header.iter().position(|name| *name == "Inferences/Second");
    let value = at.and_then(|at| values.get(at));
    Ok(value.with_context(|| format!("perf_analyzer reported:\n{text}"))?.parse()?)
}

/// Say whether another run may succeed: the figures varied too much, or the run did not end.
fn may_succeed(error: &str) -> bool {
    error.contains("stable measurement") || error.contains(&format!("exit status: {TIMED_OUT}"))
}

/// Add a row with the time that the server adds to the model's, for the requests between two
/// readings of the statistics.
fn add_overhead(before: &Value, after: &Value, table: &mut Table) -> Result<()> {
    let rise = |figure: &str| {
        let pointer = format!("/inference_stats/{figure}");
        anyhow::Ok(number(after, &pointer)? - number(before, &pointer)?)
    };
    let requests = rise("success/count")?;
    ensure!(requests > 0.0, "the statistics counted no request");
    let mut figures = json!({ "requests": requests });
    for part in ["success", "queue", "compute_input", "compute_infer", "compute_output"] {
        figures[format!("{part}_us")] = json!(rise(&format!("{part}/ns"))? / requests / 1e3);
    }
    let overhead_us = number(&figures, "/success_us")? - number(&figures, "/compute_infer_us")?;
    figures["overhead_us"] = json!(overhead_us);
    let what = "ranker, HTTP, concurrency 1: server's time without the model's";
    table.row(what, figures).with_bound(overhead_us, AtMost(OVERHEAD_US_MAX), "us");
    Ok(())
}
