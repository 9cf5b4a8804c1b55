//! The targets of the cases, and which of them a case misses.

use anyhow::{Context, Result};
use gristmill_benches::report::{self, Goal};
use serde_json::{Value, json};

/// The targets: the neighbour's p99 as a ratio to its p99 without attackers (less in some cases)
/// and in ms; the time of a call beyond its limit; the memory of a request beyond its tenant's
/// budget.
const RATIO_MAX: f64 = 2.0;
const P99_MS_MAX: f64 = 20.0;
const OVERRUN_MS_MAX: f64 = 50.0;
const MIB_PER_REQUEST_MAX: f64 = 64.0;

/// The ratio while a plugin in JavaScript is compiled, and beside the corpus of all deeds.
const RATIO_MAX_OF: [(&str, f64); 2] = [("upload/javascript", 1.3), ("corpus", 1.2)];

/// Print the row of a case. `alone_p99` is the neighbour's p99 without attackers, in ms.
pub(crate) fn row(mut figures: Value, alone_p99: f64) -> Result<()> {
    let name = figures["what"].as_str().context("a case without a name")?.to_owned();
    let alone_p99 = alone_p99_of(&figures).unwrap_or(alone_p99);
    let missed = missed_targets(&name, &figures, alone_p99);
    figures["ratio_to_alone"] = json!(p99(&figures).map(|p99| p99 / alone_p99));
    figures["missed"] = json!(missed);
    let target = format!(
        "p99 at most {} x alone and {P99_MS_MAX} ms, none failed, overrun at most \
         {OVERRUN_MS_MAX} ms, {MIB_PER_REQUEST_MAX} MiB a request",
        ratio_max(&name)
    );
    report::row(&name, &figures, Some(Goal::new(target, missed.is_empty())));
    Ok(())
}

/// The mean p99 of measurements before and after, because other work on the machine may have
/// changed in between.
pub(crate) fn mean_p99(measurements: &[Value]) -> Option<f64> {
    mean(&measurements.iter().filter_map(p99).collect::<Vec<_>>())
}

/// The neighbour's p99 in ms without attackers, if the case measured it just before and after.
fn alone_p99_of(figures: &Value) -> Option<f64> {
    let p99s = figures["alone_p99_ms"].as_array()?;
    mean(&p99s.iter().map(Value::as_f64).collect::<Option<Vec<_>>>()?)
}

fn p99(figures: &Value) -> Option<f64> {
    figures["p99_ms"].as_f64()
}

fn mean(p99s: &[f64]) -> Option<f64> {
    (!p99s.is_empty()).then(|| p99s.iter().sum::<f64>() / p99s.len() as f64)
}

/// The target of the neighbour's p99 in this case, as a ratio to its p99 without attackers.
fn ratio_max(name: &str) -> f64 {
    let special = RATIO_MAX_OF.iter().find(|(case, _)| name.starts_with(case));
    special.map_or(RATIO_MAX, |(_, ratio_max)| *ratio_max)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{alone_p99_of, missed_targets};

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
        let alone = |p99s| alone_p99_of(&json!({ "p99_ms": 9.0, "alone_p99_ms": p99s }));
        assert_eq!(alone(json!([1.0, 3.0])), Some(2.0));
        assert_eq!(alone(json!([1.0, null])), None);
        assert_eq!(alone(json!(null)), None);
    }
}
