//! Two server binaries in turns: the effect of a change on throughput.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gristmill_client::Listen;
use serde_json::json;

use super::load::scenarios;
use super::oip::scenario::{DIGITS, IDENTITY, RANKER, RESNET50, deploy_large};
use super::options::Options;
use super::rounds::{Ratios, in_turns, median};
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use super::{made_models, wrk};
use crate::server::Server;
use crate::setup;
use crate::shell::{step, target};

const CONCURRENCY: [u32; 3] = [1, 16, 64];
/// Odd, so that there is a median.
const ROUNDS: usize = 15;
const ROUND_SECONDS: u32 = 2;

const BEFORE: Listen<'_> =
    Listen { data: "127.0.0.1:18080", grpc: "127.0.0.1:18082", admin: "127.0.0.1:18081" };
const AFTER: Listen<'_> =
    Listen { data: "127.0.0.1:18180", grpc: "127.0.0.1:18182", admin: "127.0.0.1:18181" };

/// The target.
const RATIO_MIN: f64 = 0.97;

/// The servers that are compared.
struct Servers<'a> {
    before: &'a Server,
    after: &'a Server,
}

/// A request to both servers, sent by wrk at each of the concurrencies.
struct Question {
    name: String,
    path: String,
    script: PathBuf,
    concurrency: &'static [u32],
}

pub(crate) fn run(shipped: &Shipped, options: &Options) -> Result<()> {
    let binary = |path: &Option<PathBuf>, flag: &str| {
        path.clone().with_context(|| format!("{flag} is missing: a server's binary"))
    };
    let before = binary(&options.before, "--before")?;
    let after = binary(&options.after, "--after")?;
    wrk::install()?;
    let resnet50 = made_models::resnet50("fp32")?;
    step("starting both servers");
    let start = |gristmill: &Path, name: &str, listen| {
        let (data, onnxruntime) = (target().join(name), setup::install_onnxruntime()?);
        let server = Server::start(gristmill, &data, &onnxruntime, listen)?;
        server.deploy_demo(&shipped.components)?;
        deploy_large(&server, &resnet50)?;
        anyhow::Ok(server)
    };
    let before = start(&before, "compare-before", BEFORE)?;
    let after = start(&after, "compare-after", AFTER)?;
    let servers = Servers { before: &before, after: &after };

    let mut table = Table::new("compare", "cargo xtask bench compare");
    let is_asked = |question: &Question| {
        options.only.is_empty() || options.only.iter().any(|only| question.name.starts_with(only))
    };
    for question in questions()?.into_iter().filter(is_asked) {
        for concurrency in question.concurrency {
            compare(&question, *concurrency, &servers, &mut table)?;
        }
    }
    table.finish()
}

fn questions() -> Result<Vec<Question>> {
    let mut questions = Vec::new();
    for scenario in scenarios() {
        let headers = [("content-type", scenario.content_type)];
        questions.push(Question {
            name: format!("/v1, {}", scenario.name),
            path: format!("/v1/demo/infer/{}", scenario.name),
            script: wrk::write_script(scenario.name, &scenario.body, &headers)?,
            concurrency: &CONCURRENCY,
        });
    }
    for scenario in [RANKER, DIGITS, IDENTITY, RESNET50] {
        questions.push(Question {
            name: format!("/v2, {}", scenario.model),
            path: format!("/v2/models/{}/infer", scenario.model),
            script: scenario.write_script()?,
            // Many clients of ResNet-50 would not get an answer before the round ends.
            concurrency: if scenario.model == RESNET50.model { &[1] } else { &CONCURRENCY },
        });
    }
    Ok(questions)
}

/// Run rounds of both in turns, alternating which is first, and add the row.
fn compare(
    question: &Question,
    concurrency: u32,
    Servers { before, after }: &Servers<'_>,
    table: &mut Table,
) -> Result<()> {
    let what = format!("{}, concurrency {concurrency}", question.name);
    step(&what);
    let measure = |server: &Server| {
        let url = format!("{}{}", server.url, question.path);
        let (url, script) = (url.as_str(), question.script.as_path());
        wrk::Round { url, script, concurrency, seconds: ROUND_SECONDS }.requests_per_second()
    };
    let (befores, afters) = in_turns(ROUNDS, || measure(before), || measure(after))?;
    let ratios = Ratios::of(afters.iter().copied(), befores.iter().copied());
    let Ratios { least, median: ratio, most, all } = ratios;
    let (before_per_s, after_per_s) = (median(befores.clone()), median(afters.clone()));
    table.row_to_reach(
        what,
        format!(
            "{ratio:.3} x before ({least:.3} to {most:.3} in {ROUNDS} rounds; \
             before {before_per_s:6.0}/s, after {after_per_s:6.0}/s)"
        ),
        json!({
            "ratio": ratio,
            "ratios": all,
            "before_per_s": befores,
            "after_per_s": afters,
        }),
        Verdict::new("at least 0.97", ratio >= RATIO_MIN),
    );
    Ok(())
}
