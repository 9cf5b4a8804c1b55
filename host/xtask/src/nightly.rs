//! `cargo xtask nightly`: what other projects' clients and test tools say of the server, in one
//! table: tritonclient's API and KServe's SDK by topic, schemathesis with both descriptions, and
//! the server scenario of MLPerf's LoadGen beside bare ONNX Runtime.

use std::path::Path;

use anyhow::{Context, Result, bail};
use gristmill_client::Listen;
use serde_json::{Value, json};

use crate::build::{self, Built};
use crate::server::Server;
use crate::setup;
use crate::shell::{json_lines, program, root, step, target};
use crate::table::print_aligned;
use crate::test::host_tests;

/// The tests of `it` that note scores.
const SUITES: [&str; 2] = ["oip::clients", "admin::schemathesis"];

/// A line of the table.
struct Score {
    suite: String,
    topic: String,
    passed: u64,
    failed: u64,
    not_applicable: u64,
}

pub(crate) fn run() -> Result<()> {
    let built = build::build_all()?;
    let mut scores = suites(&built)?;
    scores.extend(loadgen(&built)?);
    let mut lines =
        vec![["suite", "topic", "passed", "failed", "not applicable"].map(String::from)];
    lines.extend(scores.iter().map(|Score { suite, topic, passed, failed, not_applicable }| {
        let [passed, failed, not_applicable] =
            [passed, failed, not_applicable].map(|count| count.to_string());
        [suite.clone(), topic.clone(), passed, failed, not_applicable]
    }));
    println!();
    print_aligned(&lines);
    let failed: u64 = scores.iter().map(|score| score.failed).sum();
    println!("{} passed, {failed} failed", scores.iter().map(|score| score.passed).sum::<u64>());
    if failed > 0 {
        bail!("{failed} failed");
    }
    Ok(())
}

/// The suites that run as tests of this workspace, with the many repetitions of a soak.
fn suites(built: &Built) -> Result<Vec<Score>> {
    let file = target().join("scores.jsonl");
    let _ = std::fs::remove_file(&file);
    let mut tests = host_tests(built)?;
    tests.env("GRISTMILL_TEST_SCORES", &file).env("GRISTMILL_TEST_SOAK", "1");
    step("clients of the Open Inference Protocol, and calls that are made from descriptions");
    let status = tests.args(["--test", "it", "--"]).args(SUITES).status()?;
    let text = std::fs::read_to_string(&file).context("no test noted a score")?;
    let mut scores = text.lines().map(score_of).collect::<Result<Vec<_>>>()?;
    scores.sort_by(|one, other| (&one.suite, &one.topic).cmp(&(&other.suite, &other.topic)));
    // A test can fail without a score.
    if !status.success() && scores.iter().all(|score| score.failed == 0) {
        bail!("the tests of the suites failed: {status}");
    }
    Ok(scores)
}

fn score_of(line: &str) -> Result<Score> {
    let line: Value = serde_json::from_str(line)?;
    let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| line[key].as_u64().unwrap_or_default();
    Ok(Score {
        suite: text("suite"),
        topic: text("topic"),
        passed: number("passed"),
        failed: number("failed"),
        not_applicable: number("not_applicable"),
    })
}

/// LoadGen's server scenario. A run that is not valid has failed.
fn loadgen(built: &Built) -> Result<Vec<Score>> {
    let python = setup::python_environment("loadgen-python", "benches/loadgen/requirements.txt")?;
    step("LoadGen's server scenario");
    let model = root().join("models/ranker/ranker.onnx");
    let data = target().join("nightly-data");
    let server = Server::start(&built.gristmill, &data, &built.onnxruntime, Listen::FREE_PORTS)?;
    server.admin.put_file("models/ranker", &model)?;
    server.admin.put_json("tenants/demo", &json!({ "open": true, "models": ["ranker"] }))?;
    let url = format!("{}/v1/demo/v2/models/ranker", server.url);
    let mut loadgen = program(python);
    loadgen.arg(root().join(Path::new("benches/loadgen/server.py"))).arg(&model).arg(url);
    let runs = json_lines(&mut loadgen)?.into_iter().map(|run| {
        println!("{run}");
        let is_valid = run["valid"] == true;
        Score {
            suite: "LoadGen, server scenario".into(),
            topic: run["what"].as_str().unwrap_or_default().into(),
            passed: is_valid.into(),
            failed: (!is_valid).into(),
            not_applicable: 0,
        }
    });
    Ok(runs.collect())
}
