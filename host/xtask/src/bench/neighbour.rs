//! The times and failures of one tenant's requests while others attack the same server: with
//! hostile guests, clients, uploads, messages and models. The program `neighbour` of `benches/`
//! measures them; this file compares the figures with the targets.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::options::Options;
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use crate::setup;
use crate::shell::{json_lines, program, step};

/// The targets: the neighbour's p99 as a ratio to its p99 without attackers (less while a plugin
/// in JavaScript is compiled, and beside the corpus of all deeds) and in ms; the time of a call
/// beyond its limit; the memory of a request beyond its tenant's budget.
const RATIO_MAX: f64 = 2.0;
const JAVASCRIPT_RATIO_MAX: f64 = 1.3;
const CORPUS_RATIO_MAX: f64 = 1.2;
const P99_MS_MAX: f64 = 20.0;
const OVERRUN_MS_MAX: f64 = 50.0;
const MIB_PER_REQUEST_MAX: f64 = 64.0;

const JAVASCRIPT_CASE: &str = "upload/javascript";
const CORPUS_CASE: &str = "corpus";

pub(crate) fn run(shipped: &Shipped, options: &Options) -> Result<()> {
    let onnxruntime = setup::install_onnxruntime()?;
    if options.build {
        setup::build_hostile_languages(&shipped.gristmill)?;
    }
    step("measuring a tenant beside hostile ones (about twenty minutes)");
    let mut neighbour = program(shipped.binary("neighbour"));
    neighbour
        .arg(&shipped.gristmill)
        .arg(&shipped.components)
        .args(&options.only)
        .env("ORT_DYLIB_PATH", onnxruntime);
    let lines = json_lines(&mut neighbour)?;
    let (alone, cases): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|figures| figures["what"] == "alone");
    let p99s: Vec<_> = alone.iter().filter_map(p99).collect();
    let alone_p99 = mean(&p99s).context("the neighbour was not answered when it was alone")?;

    let mut table = Table::new("neighbour", "cargo xtask bench neighbour");
    for figures in alone {
        table.row("alone", neighbours_words(&figures, alone_p99), figures);
    }
    for mut figures in cases {
        let name = figures["what"].as_str().context("a case without a name")?.to_owned();
        let alone_p99 = own_alone_p99(&figures).unwrap_or(alone_p99);
        let mut words = neighbours_words(&figures, alone_p99);
        let missed = missed_targets(&name, &figures, alone_p99);
        let _ = write!(words, "; {}", attackers_words(&figures));
        if !missed.is_empty() {
            let _ = write!(words, "; missed: {}", missed.join(", "));
        }
        figures["ratio_to_alone"] = json!(p99(&figures).map(|p99| p99 / alone_p99));
        figures["missed"] = json!(missed);
        let verdict = Verdict::new(targets_words(&name), missed.is_empty());
        table.row_to_reach(name, words, figures, verdict);
    }
    table.finish()
}

fn p99(figures: &Value) -> Option<f64> {
    figures["p99_ms"].as_f64()
}

/// The neighbour's p99 in ms without attackers, if the case measured it just before and after.
fn own_alone_p99(figures: &Value) -> Option<f64> {
    let p99s = figures["alone_p99_ms"].as_array()?;
    mean(&p99s.iter().map(Value::as_f64).collect::<Option<Vec<_>>>()?)
}

/// The mean of measurements before and after, because other work on the machine may have changed in
/// between.
fn mean(p99s: &[f64]) -> Option<f64> {
    (!p99s.is_empty()).then(|| p99s.iter().sum::<f64>() / p99s.len() as f64)
}

/// The target of the neighbour's p99 in this case, as a ratio to its p99 without attackers.
fn ratio_max(name: &str) -> f64 {
    match name {
        _ if name.starts_with(JAVASCRIPT_CASE) => JAVASCRIPT_RATIO_MAX,
        _ if name.starts_with(CORPUS_CASE) => CORPUS_RATIO_MAX,
        _ => RATIO_MAX,
    }
}

/// The targets of this case, in words.
fn targets_words(name: &str) -> String {
    let ratio_max = ratio_max(name);
    format!(
        "p99 at most {ratio_max} x alone and {P99_MS_MAX} ms, none failed, overrun at most \
         {OVERRUN_MS_MAX} ms, {MIB_PER_REQUEST_MAX} MiB a request"
    )
}

/// The targets of this case that were missed.
fn missed_targets(name: &str, figures: &Value, alone_p99: f64) -> Vec<&'static str> {
    // Not every case measures every figure of the attackers. A missing one counts as reached.
    let at_most = |pointer: &str, most: f64| {
        figures.pointer(pointer).and_then(Value::as_f64).is_none_or(|value| value <= most)
    };
    let p99 = p99(figures).unwrap_or(f64::INFINITY);
    let checks = [
        ("p99", p99 <= ratio_max(name) * alone_p99 && p99 <= P99_MS_MAX),
        ("failed", figures["failed"] == 0),
        ("alive", figures["alive"] == true),
        ("cpu overrun", at_most("/overrun/cpu_ms", OVERRUN_MS_MAX)),
        ("deadline overrun", at_most("/overrun/deadline_ms", OVERRUN_MS_MAX)),
        ("memory", at_most("/memory/beyond_budget_mib_per_request", MIB_PER_REQUEST_MAX)),
    ];
    checks.iter().filter(|(_, reached)| !reached).map(|(what, _)| *what).collect()
}

fn neighbours_words(figures: &Value, alone_p99: f64) -> String {
    let ms = |name: &str| figures[name].as_f64().unwrap_or(f64::INFINITY);
    format!(
        "p50 {:4.1}, p99 {:6.1}, max {:6.1} ms ({:5.1} x), {} failed",
        ms("p50_ms"),
        ms("p99_ms"),
        ms("max_ms"),
        ms("p99_ms") / alone_p99,
        figures["failed"],
    )
}

fn attackers_words(figures: &Value) -> String {
    let mut words = String::new();
    for (what, overrun) in [("cpu", "/overrun/cpu_ms"), ("deadline", "/overrun/deadline_ms")] {
        if let Some(ms) = figures.pointer(overrun).and_then(Value::as_f64) {
            let _ = write!(words, "{what} +{ms:.0} ms, ");
        }
    }
    let _ = write!(words, "memory +{} MiB", figures["memory"]["grown_mib"]);
    let outcomes = figures["attackers"]["outcomes"].as_object();
    for (ended, count) in outcomes.into_iter().flatten() {
        let _ = write!(words, ", {count} x {ended}");
    }
    let unanswered = &figures["attackers"]["unanswered"];
    if *unanswered != 0 {
        let _ = write!(words, ", {unanswered} unanswered");
    }
    if figures["alive"] != true {
        words.push_str(", server dead");
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{missed_targets, own_alone_p99};

    fn missed(name: &str, figures: serde_json::Value) -> Vec<&'static str> {
        missed_targets(name, &figures, 2.0)
    }

    #[test]
    fn each_figure_can_be_missed() {
        let good = json!({
            "p99_ms": 2.5, "failed": 0, "alive": true,
            "overrun": { "cpu_ms": 49.0, "deadline_ms": null },
            "memory": { "beyond_budget_mib_per_request": 64 },
        });
        assert_eq!(missed("guest/loop, 8 at once", good.clone()), [""; 0]);
        let worse = |pointer: &str, value: serde_json::Value| {
            let mut figures = good.clone();
            *figures.pointer_mut(pointer).unwrap() = value;
            missed("guest/loop, 8 at once", figures)
        };
        assert_eq!(worse("/p99_ms", json!(4.1)), ["p99"]);
        assert_eq!(worse("/p99_ms", json!(null)), ["p99"]);
        assert_eq!(worse("/failed", json!(1)), ["failed"]);
        assert_eq!(worse("/alive", json!(false)), ["alive"]);
        assert_eq!(worse("/overrun/cpu_ms", json!(51)), ["cpu overrun"]);
        assert_eq!(worse("/overrun/deadline_ms", json!(51)), ["deadline overrun"]);
        assert_eq!(worse("/memory/beyond_budget_mib_per_request", json!(65)), ["memory"]);
    }

    #[test]
    fn some_cases_have_lower_targets() {
        let missed_with = |name, p99_ms: f64| {
            missed(name, json!({ "p99_ms": p99_ms, "failed": 0, "alive": true }))
        };
        assert_eq!(missed_with("upload/many-locals, 2 at once", 3.9), [""; 0]);
        assert_eq!(missed_with("upload/javascript, 1 at once", 2.5), [""; 0]);
        assert_eq!(missed_with("upload/javascript, 1 at once", 2.7), ["p99"]);
        assert_eq!(missed_with("corpus, 8 at once", 2.3), [""; 0]);
        assert_eq!(missed_with("corpus, 8 at once", 2.5), ["p99"]);
    }

    #[test]
    fn a_case_may_bring_its_own_figures_alone() {
        let alone = |p99s| own_alone_p99(&json!({ "p99_ms": 9.0, "alone_p99_ms": p99s }));
        assert_eq!(alone(json!([1.0, 3.0])), Some(2.0));
        assert_eq!(alone(json!([1.0, null])), None);
        assert_eq!(alone(json!(null)), None);
    }
}
