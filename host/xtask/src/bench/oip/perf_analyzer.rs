//! perf_analyzer on the server, compared with perf_analyzer on a server that only replays an
//! answer.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::scenario::{DIGITS, RANKER, Scenario};
use super::statistics::Statistics;
use crate::bench::processes::Running;
use crate::bench::table::{Table, Verdict};
use crate::server::Server;
use crate::shell::{output, program, step, target};

/// The target: the time of a request without its model's, in microseconds.
const OVERHEAD_US_MAX: f64 = 40.0;

/// The target: the throughput over that of a server that replays one recorded answer. The client
/// alone takes about 84 us of processor time for a request, so an absolute figure says more about
/// it than about the server.
const RATIO_MIN: f64 = 0.9;

/// The address of the replaying server.
const REPLAY: &str = "127.0.0.1:18096";

/// The most runs for one figure: perf_analyzer gives up if its figures vary too much.
const ATTEMPTS: usize = 3;

/// A run of perf_analyzer.
pub(super) struct Run {
    scenario: &'static Scenario,
    protocol: Protocol,
    concurrency: u32,
    /// Whether it is compared with a server that replays an answer.
    is_compared: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

use Protocol::{Grpc, Http};

impl Protocol {
    /// The protocol's name for perf_analyzer and the replay.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Http => "http",
            Grpc => "grpc",
        }
    }

    fn address(self, server: &Server) -> &str {
        match self {
            Http => server.url.trim_start_matches("http://"),
            Grpc => &server.grpc,
        }
    }
}

/// The runs of the benchmark.
pub(super) const RUNS: [Run; 9] = [
    run_of(&RANKER, Http, 1, true),
    run_of(&RANKER, Http, 16, true),
    run_of(&RANKER, Http, 64, false),
    run_of(&RANKER, Grpc, 1, false),
    run_of(&RANKER, Grpc, 16, true),
    run_of(&RANKER, Grpc, 64, false),
    run_of(&DIGITS, Http, 1, false),
    run_of(&DIGITS, Http, 16, false),
    run_of(&DIGITS, Http, 64, false),
];

const fn run_of(
    scenario: &'static Scenario,
    protocol: Protocol,
    concurrency: u32,
    is_compared: bool,
) -> Run {
    Run { scenario, protocol, concurrency, is_compared }
}

impl Run {
    fn name(&self) -> String {
        let protocol = match self.protocol {
            Http => "HTTP",
            Grpc => "gRPC",
        };
        format!(
            "{}, {protocol}, perf_analyzer, concurrency {}",
            self.scenario.model, self.concurrency
        )
    }

    /// Measure, and add the row. For the ranker at concurrency 1 over HTTP, also add a row with the
    /// server's own time.
    pub(super) fn measure(
        &self,
        server: &Server,
        perf_analyzer: &Path,
        table: &mut Table,
    ) -> Result<()> {
        step(&self.name());
        let address = self.protocol.address(server);
        let before = Statistics::read(server, self.scenario)?;
        let per_s = self.inferences_per_second(address, perf_analyzer)?;
        let after = Statistics::read(server, self.scenario)?;
        match self.is_compared {
            true => {
                let replay = self.replayed_per_second(address, perf_analyzer)?;
                let ratio = per_s / replay;
                let verdict = Verdict::new("at least 0.90 x replay", ratio >= RATIO_MIN);
                table.row_to_reach(
                    self.name(),
                    format!("{ratio:4.2} x replay ({per_s:6.0}/s, replay {replay:6.0}/s)"),
                    json!({ "per_s": per_s, "replay_per_s": replay, "ratio_to_replay": ratio }),
                    verdict,
                );
            }
            false => table.row(self.name(), format!("{per_s:6.0}/s"), json!({ "per_s": per_s })),
        }
        if (self.scenario.model, self.protocol, self.concurrency) == ("ranker", Http, 1) {
            overhead(&before, &after, table)?;
        }
        Ok(())
    }

    /// The throughput of perf_analyzer with a replayed answer of the server at `address`.
    fn replayed_per_second(&self, address: &str, perf_analyzer: &Path) -> Result<f64> {
        let mut replay = program(target().join("release/replay"));
        replay.args([self.protocol.flag(), REPLAY, address]);
        let _replay = Running::start(&mut replay, REPLAY)?;
        self.inferences_per_second(REPLAY, perf_analyzer)
    }

    fn inferences_per_second(&self, address: &str, perf_analyzer: &Path) -> Result<f64> {
        let to = (self.protocol, address);
        inferences_per_second(perf_analyzer, self.scenario, to, self.concurrency)
    }
}

/// Let perf_analyzer measure a model of the server at this address.
pub(crate) fn inferences_per_second(
    perf_analyzer: &Path,
    scenario: &Scenario,
    (protocol, address): (Protocol, &str),
    concurrency: u32,
) -> Result<f64> {
    let report = target().join("oip-perf-analyzer.csv");
    let shape: Vec<_> = scenario.row.iter().map(usize::to_string).collect();
    let mut command = program(perf_analyzer);
    command
        .args(["-m", scenario.model, "-u", address, "-b", "1", "-i", protocol.flag()])
        .args(["--shape", &format!("input:{}", shape.join(","))])
        .args(["--concurrency-range", &concurrency.to_string()])
        .args(["--measurement-interval", "3000", "--max-trials", "5", "-s", "30", "-f"])
        .arg(&report);
    for attempt in 1.. {
        match output(&mut command) {
            Ok(_) => break,
            Err(error)
                if attempt < ATTEMPTS && error.to_string().contains("stable measurement") =>
            {
                step("the figures vary too much: measuring again");
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

/// Add a row with the time that the server adds to the model's, for the requests between two
/// readings of the statistics.
fn overhead(before: &Statistics, after: &Statistics, table: &mut Table) -> Result<()> {
    let rise = |figure: &str| anyhow::Ok(after.figure(figure)? - before.figure(figure)?);
    let of = |part: &str| rise(&format!("inference_stats/{part}/ns"));
    let requests = rise("inference_stats/success/count")?;
    ensure!(requests > 0.0, "the statistics counted no request");
    let us = |ns: f64| ns / requests / 1e3;
    let overhead_us = us(of("success")? - of("compute_infer")?);
    let figures = json!({
        "overhead_us": overhead_us,
        "success_us": us(of("success")?),
        "queue_us": us(of("queue")?),
        "compute_input_us": us(of("compute_input")?),
        "compute_infer_us": us(of("compute_infer")?),
        "compute_output_us": us(of("compute_output")?),
        "requests": requests,
    });
    table.row_to_reach(
        "ranker, HTTP, concurrency 1: server's time without the model's",
        format!("{overhead_us:.1} us a request"),
        figures,
        Verdict::new("at most 40 us", overhead_us <= OVERHEAD_US_MAX),
    );
    Ok(())
}
