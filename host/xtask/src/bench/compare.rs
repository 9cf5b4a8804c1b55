//! Two server binaries in turns: the effect of a change on throughput.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;

use super::clients::Round;
use super::harness::{Bench, deploy_large, start};
use super::loads::{DIGITS, IDENTITY, RANKER, RESNET50, V2_DIGITS, V2_RANKER};
use super::models;
use super::rounds::{compare, in_turns, rates};
use crate::server::Server;
use crate::shell::step;
use crate::table::Bound::AtLeast;

const CONCURRENCY: [u32; 3] = [1, 16, 64];
/// Odd, so that there is a median.
const ROUNDS: usize = 15;
const ROUND_SECONDS: u32 = 2;

/// The target.
const RATIO_MIN: f64 = 0.97;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let resnet50 = models::resnet50()?;
    let start = |binary: &Option<PathBuf>, name: &str| -> Result<Server> {
        let binary = binary.as_ref();
        let binary = binary.with_context(|| format!("--{name} is missing: a server's binary"))?;
        step(&format!("starting the server of --{name}"));
        let server = start(binary, &format!("compare-{name}"), &bench.components)?;
        deploy_large(&server.admin, &resnet50)?;
        Ok(server)
    };
    let (before, after) =
        (start(&bench.options.before, "before")?, start(&bench.options.after, "after")?);
    for load in [RANKER, DIGITS, V2_RANKER, V2_DIGITS, IDENTITY, RESNET50] {
        let name =
            if load.row().is_empty() { format!("/v1, {}", load.name()) } else { load.name() };
        // Many clients of ResNet-50 would not get an answer before the round ends.
        let concurrencies = if load.path == RESNET50.path { &[1][..] } else { &CONCURRENCY };
        if !bench.wants(&name) {
            continue;
        }
        let (path, script) = (load.wrk_path(), load.wrk_script()?);
        for &concurrency in concurrencies {
            let what = format!("{name}, concurrency {concurrency}");
            step(&what);
            let round = Round { concurrency, seconds: ROUND_SECONDS };
            let measure = |server: &Server| round.by_wrk(&format!("{}{path}", server.url), &script);
            let [befores, afters] = in_turns(ROUNDS, [&|| measure(&before), &|| measure(&after)])?;
            let compared = compare(&afters, &befores);
            let figures = json!({
                "ratio": compared.ratio,
                "ratios": compared.ratios,
                "before_per_s": rates(&befores),
                "after_per_s": rates(&afters),
            });
            bench.table.row(what, figures).with_bound(compared.ratio, AtLeast(RATIO_MIN), "");
        }
    }
    Ok(())
}
