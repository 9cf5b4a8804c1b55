//! The Open Inference Protocol under the load of its own clients: wrk and perf_analyzer with binary
//! tensors, over HTTP and gRPC. wrk's figures are compared with a bare hyper echo of the same body,
//! small and large. perf_analyzer's are compared with a bare hyper server that replays one recorded
//! answer, which is the most that this client can reach on these cores. For a model that dominates
//! the time, the server is compared with ONNX Runtime in a bare loop. All of it is measured in one
//! run.
//!
//! Figures per second are absolute, so each has beside it the figure of its peer in the same
//! seconds: on a busy machine both fall.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use gristmill_client::{BinaryTensor, Client, HEADER_LENGTH, block_on, infer_body};
use serde_json::{Value, json};

use super::load::{ECHO, Running, install_wrk, median, requests_per_second, start, write_script};
use super::table::Table;
use super::{Shipped, resnet50};
use crate::server::Server;
use crate::setup;
use crate::shell::{output, program, root, step, target};

const ROUNDS: usize = 3;
const ROUND_SECONDS: u32 = 4;

/// The targets.
const ECHO_RATIO_MIN: f64 = 0.55;
const OVERHEAD_US_MAX: f64 = 40.0;
const BARE_RATIO_MIN: f64 = 0.95;

/// For ResNet-50: the clients, ONNX Runtime's threads, and the time of a round.
const RESNET50_CONCURRENCY: u32 = 8;
const RESNET50_THREADS: usize = 1;
const RESNET50_WARM_UP: Duration = Duration::from_secs(2);
const RESNET50_WINDOW: Duration = Duration::from_secs(10);
/// Long enough for both and for the batches that are waited for around them.
const RESNET50_LOAD_SECONDS: u32 = 18;

/// The address of the replaying server.
const REPLAY: &str = "127.0.0.1:18096";

/// perf_analyzer gives up if its figures vary too much; then it is run again.
const ATTEMPTS: usize = 3;

/// The best known server, for comparison: measured elsewhere, on another machine of this kind.
const BEST_KNOWN: &str = "the best known server, inferences a second: ranker, HTTP, perf_analyzer at \
    concurrency 1/16/64: 5.7k/19.6k/15.9k; ranker, HTTP, wrk: 7.8k/26.5k/32.3k; ranker, gRPC, \
    perf_analyzer: 6.0k/14.4k/12.9k; digits, HTTP, perf_analyzer: 7.6k/12.6k/13.3k; measured on another \
    machine of this kind, not in this run";

/// A model and the shape of one row of its `input`.
pub(super) struct Scenario {
    pub(super) model: &'static str,
    row: &'static [usize],
}

pub(super) const RANKER: Scenario = Scenario { model: "ranker", row: &[32] };
pub(super) const DIGITS: Scenario = Scenario { model: "digits", row: &[1, 28, 28] };
pub(super) const RESNET50: Scenario = Scenario { model: "resnet50", row: &[3, 224, 224] };
/// A model that returns its input, for a large tensor: a picture's.
pub(super) const IDENTITY: Scenario = Scenario { model: "identity", row: &[3 * 224 * 224] };
const IDENTITY_FILE: &str = "host/app/tests/fixtures/identity-fp32.onnx";

/// One run of perf_analyzer, and the inferences a second asked for.
struct Run {
    scenario: &'static Scenario,
    protocol: Protocol,
    concurrency: u32,
    per_s_min: Option<f64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    Http,
    Grpc,
}

use Protocol::{Grpc, Http};

impl Protocol {
    /// The protocol's name for perf_analyzer and the replay.
    fn flag(self) -> &'static str {
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

const RUNS: [Run; 9] = [
    run_of(&RANKER, Http, 1, Some(9_000.0)),
    run_of(&RANKER, Http, 16, Some(35_000.0)),
    run_of(&RANKER, Http, 64, None),
    run_of(&RANKER, Grpc, 1, None),
    run_of(&RANKER, Grpc, 16, Some(25_000.0)),
    run_of(&RANKER, Grpc, 64, None),
    run_of(&DIGITS, Http, 1, None),
    run_of(&DIGITS, Http, 16, None),
    run_of(&DIGITS, Http, 64, None),
];

const fn run_of(
    scenario: &'static Scenario,
    protocol: Protocol,
    concurrency: u32,
    per_s_min: Option<f64>,
) -> Run {
    Run { scenario, protocol, concurrency, per_s_min }
}

pub(crate) fn run(shipped: &Shipped) -> Result<()> {
    install_wrk()?;
    let perf_analyzer = setup::install_perf_analyzer()?;
    let resnet50 = resnet50("fp32")?;

    step("starting Gristmill and the echo");
    let (server, _echo) = start(shipped)?;
    let mut table = Table::new("oip", "cargo xtask bench oip");
    for concurrency in [16, 64] {
        over_echo(&server, &RANKER, concurrency, Some(ECHO_RATIO_MIN), &mut table)?;
    }
    deploy_large(&server, &resnet50)?;
    for concurrency in [1, 16] {
        over_echo(&server, &IDENTITY, concurrency, None, &mut table)?;
    }
    for run in &RUNS {
        run.measure(&server, &perf_analyzer, &mut table)?;
    }
    over_bare(&server, &resnet50, &mut table)?;
    table.row("for comparison", BEST_KNOWN.into(), json!({ "note": BEST_KNOWN }));
    table.finish()
}

/// Measure a model with wrk, and the echo, in turns.
fn over_echo(
    server: &Server,
    scenario: &Scenario,
    concurrency: u32,
    ratio_min: Option<f64>,
    table: &mut Table,
) -> Result<()> {
    let name = format!("{}, HTTP, wrk, concurrency {concurrency}", scenario.model);
    step(&name);
    let (url, echo_url) = (scenario.url(server), format!("http://{ECHO}/"));
    let script = scenario.write_script()?;
    let (mut ours, mut echoes) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(requests_per_second(&url, &script, concurrency, ROUND_SECONDS)?);
        echoes.push(requests_per_second(&echo_url, &script, concurrency, ROUND_SECONDS)?);
    }
    let (per_s, echo) = (median(ours), median(echoes));
    let ratio = per_s / echo;
    let words = format!("{ratio:4.2} x echo   (gristmill {per_s:6.0}/s, echo {echo:6.0}/s)");
    let figures = json!({ "ratio_to_echo": ratio, "per_s": per_s, "echo_per_s": echo });
    match ratio_min {
        Some(least) => {
            let asked = format!("at least {least} x echo");
            table.row_to_reach(name, words, figures, (&asked, ratio >= least));
        }
        None => table.row(name, words, figures),
    }
    Ok(())
}

/// Put the models with large inputs, and let the demo's tenant use them beside the demo's own.
pub(super) fn deploy_large(server: &Server, resnet50: &Path) -> Result<()> {
    let admin = &server.admin;
    admin.put_file("models/identity", &root().join(IDENTITY_FILE))?;
    let config = json!({ "threads": RESNET50_THREADS, "instances": 1, "providers": ["cpu"] });
    admin.put_file("models/resnet50", resnet50)?;
    admin.put_json("models/resnet50/config", &config)?;
    let models = ["digits", "ranker", "identity", "resnet50"];
    let tenant = json!({ "open": true, "default_pipeline": "digits", "models": models });
    admin.put_json("tenants/demo", &tenant)
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
    fn measure(&self, server: &Server, perf_analyzer: &Path, table: &mut Table) -> Result<()> {
        step(&self.name());
        let address = self.protocol.address(server);
        let before = Statistics::read(server, self.scenario)?;
        let per_s = self.inferences_per_second(address, perf_analyzer)?;
        let after = Statistics::read(server, self.scenario)?;
        match self.per_s_min {
            Some(least) => {
                let replay = self.replayed_per_second(address, perf_analyzer)?;
                let ratio = per_s / replay;
                let words = format!("at least {least:.0}/s");
                table.row_to_reach(
                    self.name(),
                    format!("{per_s:6.0}/s   ({ratio:4.2} x replay, replay {replay:6.0}/s)"),
                    json!({ "per_s": per_s, "replay_per_s": replay, "ratio_to_replay": ratio }),
                    (&words, per_s >= least),
                );
            }
            None => table.row(self.name(), format!("{per_s:6.0}/s"), json!({ "per_s": per_s })),
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
        let report = target().join("oip-perf-analyzer.csv");
        let shape: Vec<_> = self.scenario.row.iter().map(usize::to_string).collect();
        let mut command = program(perf_analyzer);
        command
            .args(["-m", self.scenario.model, "-u", address, "-b", "1"])
            .args(["-i", self.protocol.flag()])
            .args(["--shape", &format!("input:{}", shape.join(","))])
            .args(["--concurrency-range", &self.concurrency.to_string()])
            .args(["--measurement-interval", "3000", "--max-trials", "5", "-s", "30", "-f"])
            .arg(&report);
        for attempt in 1.. {
            match output(&mut command) {
                Ok(_) => break,
                Err(error)
                    if attempt < ATTEMPTS && error.to_string().contains("stable measurement") =>
                {
                    step("figures vary too much: once more");
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
}

/// The time that the server itself adds to the model's time, between two readings.
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
        ("at most 40 us", overhead_us <= OVERHEAD_US_MAX),
    );
    Ok(())
}

/// Measure ResNet-50 with wrk, and ONNX Runtime in a bare loop at the resulting mean batch, in
/// turns.
fn over_bare(server: &Server, resnet50: &Path, table: &mut Table) -> Result<()> {
    let (url, script) = (RESNET50.url(server), RESNET50.write_script()?);
    let (mut rounds, mut ratios) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        step(&format!("ResNet-50, round {round} of {ROUNDS}"));
        let (window, client) = std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                requests_per_second(&url, &script, RESNET50_CONCURRENCY, RESNET50_LOAD_SECONDS)
            });
            (Window::measure(server), client.join())
        });
        let client_per_s = client.map_err(|_| anyhow!("the thread that ran wrk panicked"))??;
        let Window { rows_per_s, mean_batch } = window?;
        let bare_per_s = bare_rows_per_second(resnet50, mean_batch.round().max(1.0) as usize)?;
        ratios.push(rows_per_s / bare_per_s);
        rounds.push(json!({
            "rows_per_s": rows_per_s,
            "rows_per_s_by_wrk": client_per_s,
            "mean_batch": mean_batch,
            "bare_rows_per_s": bare_per_s,
        }));
    }
    let ratio = median(ratios);
    table.row_to_reach(
        format!(
            "ResNet-50, HTTP, wrk, concurrency {RESNET50_CONCURRENCY}: rows over the bare loop"
        ),
        format!("{ratio:4.2}"),
        json!({ "ratio": ratio, "threads": RESNET50_THREADS, "rounds": rounds }),
        ("at least 0.95", ratio >= BARE_RATIO_MIN),
    );
    Ok(())
}

/// ONNX Runtime alone, by a process of its own that ends with it.
fn bare_rows_per_second(model: &Path, batch: usize) -> Result<f64> {
    let report = output(
        program(target().join("release/batch"))
            .env("ORT_DYLIB_PATH", setup::install_onnxruntime()?)
            .arg("bare")
            .arg(model)
            .args(["--batch", &batch.to_string(), "--threads", &RESNET50_THREADS.to_string()])
            .args(["--seconds", &RESNET50_WINDOW.as_secs().to_string()]),
    )?;
    let figures: Value = serde_json::from_str(&report).context("the bare loop's figures")?;
    figures["rows_per_s"].as_f64().context("the bare loop gave no rows a second")
}

/// The rows of ResNet-50 under load, from the end of one batch to the end of another: batches take
/// so long that another window would be wrong by some percent.
struct Window {
    rows_per_s: f64,
    mean_batch: f64,
}

impl Window {
    /// The load is already on.
    fn measure(server: &Server) -> Result<Self> {
        std::thread::sleep(RESNET50_WARM_UP);
        let (began, before) = Self::end_of_batch(server)?;
        std::thread::sleep(RESNET50_WINDOW);
        let (ended, after) = Self::end_of_batch(server)?;
        let rows = after.figure("inference_count")? - before.figure("inference_count")?;
        let batches = after.figure("execution_count")? - before.figure("execution_count")?;
        let seconds = ended.duration_since(began).as_secs_f64();
        Ok(Self { rows_per_s: rows / seconds, mean_batch: rows / batches })
    }

    /// Wait for a batch to end. Returns the time, and the statistics with all of its rows.
    fn end_of_batch(server: &Server) -> Result<(Instant, Statistics)> {
        let earlier = Statistics::read(server, &RESNET50)?.figure("execution_count")?;
        let give_up = Instant::now() + Duration::from_secs(4);
        loop {
            let now = Instant::now();
            if Statistics::read(server, &RESNET50)?.figure("execution_count")? > earlier {
                // Requests of one batch may be counted one after the other.
                std::thread::sleep(Duration::from_millis(10));
                return Ok((now, Statistics::read(server, &RESNET50)?));
            }
            if now > give_up {
                bail!("ResNet-50 ended no batch within 4 seconds");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A model's statistics since it was loaded, as Triton has them.
struct Statistics(Value);

impl Statistics {
    fn read(server: &Server, scenario: &Scenario) -> Result<Self> {
        let path = format!("/v2/models/{}/stats", scenario.model);
        let answer = block_on(Client::new(server.url.parse()?).get(&path));
        let answer = answer?.ok().with_context(|| format!("GET {path}"))?;
        Ok(Self(serde_json::from_slice(&answer.body)?))
    }

    /// A number by its path, `inference_stats/success/ns` for example.
    fn figure(&self, path: &str) -> Result<f64> {
        let value = self.0.pointer(&format!("/model_stats/0/{path}"));
        value.and_then(Value::as_f64).with_context(|| format!("the statistics have no {path}"))
    }
}

impl Scenario {
    fn url(&self, server: &Server) -> String {
        format!("{}/v2/models/{}/infer", server.url, self.model)
    }

    /// wrk's script, and the body it sends: perf_analyzer's, one row in binary, the answer as well.
    pub(super) fn write_script(&self) -> Result<PathBuf> {
        let shape: Vec<usize> = std::iter::once(1).chain(self.row.iter().copied()).collect();
        let row = 0.5_f32.to_le_bytes().repeat(shape.iter().product());
        let input = BinaryTensor { name: "input", datatype: "FP32", shape: &shape, data: &row };
        let output = json!({ "name": "output", "parameters": { "binary_data": true } });
        let sent = infer_body(&[input], json!({ "id": "", "outputs": [output] }));
        let name = format!("oip-{}", self.model);
        let body = target().join(format!("{name}.body"));
        std::fs::write(&body, &sent.bytes)?;
        let headers = [
            ("content-type", "application/octet-stream"),
            (HEADER_LENGTH, sent.header_length.as_str()),
        ];
        write_script(&name, &body, &headers)
    }
}
