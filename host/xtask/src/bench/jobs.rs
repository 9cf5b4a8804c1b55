//! Jobs that people bring, whole, on real models of others: each in Gristmill and in FastAPI with
//! the libraries that people use, in turns. And parts of such jobs, beside their upper bounds.
//!
//! `scenario` has the jobs, `side` one of the two servers of a job, `parts` the parts. Gristmill
//! has the samples of `plugins/demo-all.toml`; a job whose sample is not there is skipped. The
//! answers of both are compared before they are measured.

mod parts;
mod scenario;
mod side;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use gristmill_client::Listen;
use serde_json::json;

use self::parts::PARTS;
use self::scenario::{SCENARIOS, Scenario};
use self::side::Side;
use super::clients::Round;
use super::harness::Bench;
use super::peers::peer::{JOBS, REDIS_ADDRESS, REDIS_PORT, REDIS_URL};
use super::rounds::{compare, in_turns, median_of};
use super::running::{Running, within};
use crate::demo::{MANIFEST, MANIFEST_OF_ALL};
use crate::server::Server;
use crate::shell::{program, root, run as run_program, step, target};
use crate::table::Bound::{AtLeast, AtMost};
use crate::{runtimes, setup};

/// Odd, so that there is a median.
const ROUNDS: usize = 5;

/// The page that `ocr` reads: 32 lines, which `models/ocr/golden.py` renders.
const OCR_PAGE: &str = "models/ocr/samples/invoice.png";

/// How long the peer may take from the first connection to its first answer.
const FIRST_ANSWER: Duration = Duration::from_secs(60);

/// The products in the store, and with `--quick`.
const PRODUCTS: u32 = 1_000_000;
const QUICK_PRODUCTS: u32 = 20_000;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    check_names(&bench.options.only)?;
    bench.table.is_recorded = !bench.options.quick;
    if let Some(products) = bench.options.products {
        bench.table.command.push_str(&format!(" --products {products}"));
    }
    let wanted: Vec<_> = SCENARIOS.iter().filter(|scenario| bench.wants(scenario.job)).collect();
    if !wanted.is_empty() {
        let manifest = fs::read_to_string(root().join(MANIFEST_OF_ALL))?;
        let has =
            |pipeline: &str| manifest.contains(&format!("[tenants.demo.pipelines.{pipeline}]"));
        let (there, missing): (Vec<_>, Vec<_>) = wanted
            .into_iter()
            .partition(|scenario| scenario.pipelines.iter().any(|name| has(name)));
        for Scenario { what, pipelines, .. } in missing {
            let pipelines = pipelines.join(" or ");
            step(&format!("skipped: {what}: {MANIFEST_OF_ALL} has no pipeline {pipelines}"));
        }
        if !there.is_empty() {
            let stage = Stage::new(bench)?;
            for scenario in there {
                let pipelines = scenario.pipelines.iter().filter(|pipeline| has(pipeline));
                if let Err(error) = stage.measure(bench, scenario, &pipelines.collect::<Vec<_>>()) {
                    bench.add_failure(scenario.what.to_owned(), &error);
                }
            }
        }
    }
    parts::run(bench)
}

/// Check the words of `--only`.
fn check_names(only: &[String]) -> Result<()> {
    let jobs = SCENARIOS.iter().map(|scenario| scenario.job);
    let mut all: Vec<_> = jobs.chain(PARTS.iter().map(|(name, _)| *name)).collect();
    all.dedup();
    match only.iter().find(|only| !all.iter().any(|name| name.starts_with(only.as_str()))) {
        Some(unknown) => bail!("no job {unknown:?}: there are {}", all.join(", ")),
        None => Ok(()),
    }
}

/// What all jobs share.
struct Stage {
    server: Server,
    /// The interpreter with the packages of the peer.
    python: PathBuf,
    _redis: Running,
}

impl Stage {
    /// Start Gristmill with all samples, and Redis.
    fn new(bench: &Bench<'_>) -> Result<Self> {
        if bench.options.build {
            runtimes::build()?;
        }
        setup::fetch_models()?;
        let python = JOBS.install()?;
        let mut redis = program(setup::install_redis()?);
        redis.args(["--bind", "127.0.0.1", "--port", REDIS_PORT, "--save", ""]);
        let redis = Running::start(&mut redis, REDIS_ADDRESS).context("Redis cannot be started")?;
        fs::create_dir_all(side::folder())?;
        let config = side::folder().join("server.toml");
        // Both sides read the same keys. No call of a busy machine is given up.
        let store = format!("[stores.features]\nredis = \"{REDIS_URL}\"\nprefix = \"\"\n");
        fs::write(&config, store + "timeout_ms = 1000\n")?;
        step("starting Gristmill with all samples");
        let (data, onnxruntime) = (target().join("bench-data-jobs"), setup::install_onnxruntime()?);
        let mut command =
            Server::command(&bench.gristmill, &data, &onnxruntime, Listen::FREE_PORTS);
        // All clients of a job have one address.
        command.env("GRISTMILL_CONNECTIONS_PER_CLIENT_MAX", "1000");
        // They are one tenant, too: 16 pages of `ocr` count 0.9 GB, and the default is 1 GiB.
        command.env("GRISTMILL_TENANT_BYTES_MAX", (4_u64 << 30).to_string());
        let server = Server::spawn(command.arg("--config").arg(config))?;
        for manifest in [MANIFEST, MANIFEST_OF_ALL] {
            server.deploy_manifest(&bench.gristmill, manifest)?;
        }
        Ok(Self { server, python, _redis: redis })
    }

    /// Measure a job in each of its pipelines against the peer.
    fn measure(
        &self,
        bench: &mut Bench<'_>,
        scenario: &Scenario,
        pipelines: &[&&str],
    ) -> Result<()> {
        let Scenario { job, what, clients, .. } = *scenario;
        let quick = bench.options.quick;
        self.make_requests(bench, job)?;
        step(&format!("starting the peer of {job}: FastAPI with 2 workers"));
        let _peer = JOBS.start(&self.python, job)?;
        let url = format!("http://{}/{job}", JOBS.address());
        let theirs = Side::new(scenario, &url, "fastapi")?;
        let first = within(FIRST_ANSWER, || theirs.answer(0));
        first.with_context(|| format!("the peer of {job} does not answer"))?;
        for pipeline in pipelines {
            let url = format!("{}/v1/demo/infer/{pipeline}", self.server.url);
            let ours = Side::new(scenario, &url, pipeline)?;
            step(&format!("{what}: comparing the answers of {pipeline} with the peer's"));
            for (at, body) in ours.bodies.iter().enumerate() {
                let agreed = scenario.agree(&ours.answer(at)?, &theirs.answer(at)?);
                let body = body.file_name().unwrap_or_default();
                agreed.with_context(|| format!("the answers to {body:?}"))?;
            }
            let half = scenario.seconds / 2;
            let (rounds, seconds) = if quick { (1, half) } else { (ROUNDS, scenario.seconds) };
            step(&format!("{what}: {pipeline}, {rounds} rounds of 2 x {seconds} s"));
            let measure = |side: &Side, seconds| {
                side.measure(&bench.gristmill, Round { concurrency: clients, seconds })
            };
            // These do not count: models, caches and connections are warm after them.
            for side in [&ours, &theirs] {
                measure(side, half)?;
            }
            let [of_ours, of_theirs] =
                in_turns(rounds, [&|| measure(&ours, seconds), &|| measure(&theirs, seconds)])?;
            let compared = compare(&of_ours, &of_theirs);
            let mut figures = compared.figures("gristmill_per_s", "fastapi_per_s");
            let [p99_ms, their_p99_ms] =
                [&of_ours, &of_theirs].map(|rounds| median_of(rounds, |round| round.p99_us) / 1e3);
            figures["gristmill_p99_ms"] = p99_ms.into();
            figures["fastapi_p99_ms"] = their_p99_ms.into();
            let row = format!("{what}, {clients} clients, {pipeline}");
            let added = bench.table.row(row.clone(), figures);
            if scenario.pipelines.first() != Some(*pipeline) {
                continue;
            }
            added.with_bound(compared.ratio, AtLeast(scenario.ratio_min), "x FastAPI");
            if let Some(p99_ms_max) = scenario.p99_ms_max {
                let figures = json!({ "p99_ms": p99_ms });
                let added = bench.table.row(format!("{row}: p99"), figures);
                added.with_bound(p99_ms, AtMost(p99_ms_max), "ms");
            }
        }
        Ok(())
    }

    /// Make the files of a job's requests, and the features in Redis.
    fn make_requests(&self, bench: &Bench<'_>, job: &str) -> Result<()> {
        let folder = side::folder().join(job);
        let mut make = program(&self.python);
        make.arg("benches/scenarios/jobs.py").arg(job).arg(&folder);
        match job {
            "ocr" => {
                fs::create_dir_all(&folder)?;
                fs::copy(root().join(OCR_PAGE), folder.join("page.png"))?;
                return Ok(());
            }
            "photo" if folder.join("phone.jpg").exists() => return Ok(()),
            "recommend" => {
                let usual = if bench.options.quick { QUICK_PRODUCTS } else { PRODUCTS };
                let products = bench.options.products.unwrap_or(usual);
                step(&format!("setting the features of {products} products in Redis"));
                make.args([REDIS_URL, &products.to_string()]);
            }
            _ => step(&format!("making the requests of {job}")),
        }
        run_program(&mut make)
    }
}
