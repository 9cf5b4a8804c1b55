//! `cargo xtask nightly`: what the check of each change has no time for, one part after the other,
//! in one table. A part that fails does not keep the others from running.

use std::path::Path;

use anyhow::{Context, Result, bail};
use gristmill_client::Listen;
use serde_json::{Value, json};

use crate::build::{self, Built};
use crate::server::Server;
use crate::shell::{json_lines, program, root, step, target};
use crate::stages::Stages;
use crate::table::print_aligned;
use crate::test::{self, Tally};
use crate::{books, deny, fuzz, setup};

/// A part: its name, and what runs it.
type NightlyPart = (&'static str, fn(&Built) -> Result<Vec<Score>>);

const PARTS: [NightlyPart; 7] = [
    ("clients and repetitions", suites),
    ("LoadGen", loadgen),
    ("histories", histories),
    ("tests beside a full load", busy),
    ("books", pages),
    ("fuzzing", fuzzing),
    ("advisories", advisories),
];

/// The tests of other projects' clients. They note scores.
const CLIENTS: &str = "oip::clients";

/// Histories of two servers that are simulated. The check of each change simulates 1,000.
const HISTORIES: &str = "100000";

/// A line of the table.
struct Score {
    suite: String,
    topic: String,
    passed: u64,
    failed: u64,
    not_applicable: u64,
}

pub(crate) fn run() -> Result<()> {
    let built = build::build_all(&mut Stages::begin())?;
    let mut scores = Vec::new();
    for (name, part) in PARTS {
        match part(&built) {
            Ok(of_part) => scores.extend(of_part),
            Err(error) => {
                println!("error: {name}: {error:#}");
                scores.push(Score { failed: 1, ..Score::named(name, "all") });
            }
        }
    }
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

impl Score {
    fn named(suite: &str, topic: &str) -> Self {
        let (suite, topic) = (suite.to_owned(), topic.to_owned());
        Self { suite, topic, passed: 0, failed: 0, not_applicable: 0 }
    }

    fn of_tests(suite: &str, topic: &str, Tally { passed, failed, .. }: Tally) -> Self {
        Self { passed, failed, ..Self::named(suite, topic) }
    }
}

/// Other projects' clients, and what only many repetitions prove.
fn suites(built: &Built) -> Result<Vec<Score>> {
    let file = target().join("scores.jsonl");
    let _ = std::fs::remove_file(&file);
    let tally = test::soak(built, &[CLIENTS], |tests| {
        tests.env("GRISTMILL_TEST_SCORES", &file);
    })?;
    let text = std::fs::read_to_string(&file).context("no test noted a score")?;
    let mut scores = text.lines().map(score_of).collect::<Result<Vec<_>>>()?;
    scores.sort_by(|one, other| (&one.suite, &one.topic).cmp(&(&other.suite, &other.topic)));
    scores.push(Score::of_tests("tests", "repetitions, and those that noted the scores", tally));
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

/// Histories of two servers over a store that fails.
fn histories(built: &Built) -> Result<Vec<Score>> {
    let mut tests = test::host_tests(built)?;
    tests.env("SIMULATION_SEEDS", HISTORIES).args(["--lib", "--", "simulation"]);
    step(&format!("{HISTORIES} histories of two servers over a store that fails"));
    Ok(vec![Score::of_tests("tests", "histories", test::run_cargo(&mut tests)?)])
}

fn busy(built: &Built) -> Result<Vec<Score>> {
    Ok(vec![Score::of_tests("tests", "beside a full load", test::busy(built)?)])
}

/// The pages of the books that the check of each change does not paste.
fn pages(built: &Built) -> Result<Vec<Score>> {
    Ok(vec![Score { passed: books::paste_slow(built)?, ..Score::named("books", "slow pages") }])
}

fn fuzzing(_: &Built) -> Result<Vec<Score>> {
    let matches = fuzz::command().get_matches_from(["fuzz"]);
    fuzz::run(&matches)?;
    Ok(vec![Score { passed: fuzz::TARGETS.len() as u64, ..Score::named("fuzzing", "targets") }])
}

/// Known faults of dependencies. Without a way to their database it is not applicable.
fn advisories(_: &Built) -> Result<Vec<Score>> {
    let score = Score::named("advisories", "dependencies");
    Ok(vec![match deny::look_for_advisories()? {
        true => Score { passed: 1, ..score },
        false => Score { not_applicable: 1, ..score },
    }])
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
