//! Two server binaries in turns: the effect of a change on throughput.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gristmill_client::Listen;
use serde_json::json;

use super::load::{install_wrk, median, requests_per_second, scenarios, write_script};
use super::oip::{self, DIGITS, IDENTITY, RANKER, RESNET50};
use super::table::Table;
use super::{Options, Shipped, resnet50};
use crate::server::Server;
use crate::setup;
use crate::shell::{step, target};

const CONCURRENCY: [u32; 3] = [1, 16, 64];
/// Odd, so that there is a median.
const ROUNDS: usize = 7;
const ROUND_SECONDS: u32 = 3;

const BEFORE: Listen<'_> =
    Listen { data: "127.0.0.1:18080", grpc: "127.0.0.1:18082", admin: "127.0.0.1:18081" };
const AFTER: Listen<'_> =
    Listen { data: "127.0.0.1:18180", grpc: "127.0.0.1:18182", admin: "127.0.0.1:18181" };

/// The target.
const RATIO_MIN: f64 = 0.97;

/// The request, by wrk's script.
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
    install_wrk()?;
    let resnet50 = resnet50("fp32")?;
    step("starting both servers");
    let start = |gristmill: &Path, name: &str, listen| {
        let (data, onnxruntime) = (target().join(name), setup::install_onnxruntime()?);
        let server = Server::start(gristmill, &data, &onnxruntime, listen)?;
        server.deploy_demo(&shipped.components)?;
        oip::deploy_large(&server, &resnet50)?;
        anyhow::Ok(server)
    };
    let before = start(&before, "compare-before", BEFORE)?;
    let after = start(&after, "compare-after", AFTER)?;

    let mut table = Table::new("compare", "cargo xtask bench compare");
    let is_asked = |question: &Question| {
        options.only.is_empty() || options.only.iter().any(|only| question.name.starts_with(only))
    };
    for question in questions()?.into_iter().filter(is_asked) {
        for concurrency in question.concurrency {
            compare(&question, *concurrency, [&before, &after], &mut table)?;
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
            script: write_script(scenario.name, &scenario.body, &headers)?,
            concurrency: &CONCURRENCY,
        });
    }
    for scenario in [RANKER, DIGITS, IDENTITY, RESNET50] {
        questions.push(Question {
            name: format!("/v2, {}", scenario.model),
            path: format!("/v2/models/{}/infer", scenario.model),
            script: scenario.write_script()?,
            // A request of ResNet-50 takes so long that a round ends before those of many clients.
            concurrency: if scenario.model == RESNET50.model { &[1] } else { &CONCURRENCY },
        });
    }
    Ok(questions)
}

/// Run rounds of both in turns, alternating which is first, and add the row.
fn compare(
    question: &Question,
    concurrency: u32,
    [before, after]: [&Server; 2],
    table: &mut Table,
) -> Result<()> {
    let what = format!("{}, concurrency {concurrency}", question.name);
    step(&what);
    let measure = |server: &Server| {
        let url = format!("{}{}", server.url, question.path);
        requests_per_second(&url, &question.script, concurrency, ROUND_SECONDS)
    };
    let (mut befores, mut afters) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        if round % 2 == 0 {
            befores.push(measure(before)?);
            afters.push(measure(after)?);
        } else {
            afters.push(measure(after)?);
            befores.push(measure(before)?);
        }
    }
    let mut ratios: Vec<f64> =
        befores.iter().zip(&afters).map(|(before, after)| after / before).collect();
    ratios.sort_by(f64::total_cmp);
    let (least, ratio, most) = (ratios[0], ratios[ROUNDS / 2], ratios[ROUNDS - 1]);
    let (before_per_s, after_per_s) = (median(befores.clone()), median(afters.clone()));
    table.row_to_reach(
        what,
        format!(
            "{ratio:.3} x before ({least:.3} to {most:.3} in {ROUNDS} rounds; \
             before {before_per_s:6.0}/s, after {after_per_s:6.0}/s)"
        ),
        json!({
            "ratio": ratio,
            "ratios": ratios,
            "before_per_s": befores,
            "after_per_s": afters,
        }),
        ("at least 0.97", ratio >= RATIO_MIN),
    );
    Ok(())
}
