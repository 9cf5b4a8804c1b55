//! The cost of a call in a fresh instance.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::shipped::Shipped;
use super::table::{Table, Verdict};
use crate::shell::{cargo, run as run_command, step, target};

/// The target: the time of an empty call in a fresh instance.
const EMPTY_CALL_US_MAX: f64 = 15.0;

pub(crate) fn run(shipped: &Shipped) -> Result<()> {
    step("measuring calls");
    run_command(
        cargo()
            .args(["bench", "--workspace", "--bench", "sandbox", "--", "--noplot"])
            .env("GRISTMILL_TEST_COMPONENTS", &shipped.components),
    )?;
    let mut table = Table::new("sandbox", "cargo xtask bench sandbox");
    for name in ["empty", "tensor_128B", "tensor_600KB"] {
        let median_us = median_us(name)?;
        let what = format!("fresh instance + call, {name}");
        let (measured, figures) = (format!("{median_us:.1} us"), json!({ "median_us": median_us }));
        if name == "empty" {
            let reached = Verdict::new("at most 15 us", median_us <= EMPTY_CALL_US_MAX);
            table.row_to_reach(what, measured, figures, reached);
        } else {
            table.row(what, measured, figures);
        }
    }
    table.finish()
}

/// Criterion's median of one benchmark.
fn median_us(name: &str) -> Result<f64> {
    let path = target().join(format!("criterion/fresh_instance_call/{name}/new/estimates.json"));
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let estimates: Value = serde_json::from_str(&text)?;
    let nanos = estimates["median"]["point_estimate"].as_f64().context("no median")?;
    Ok(nanos / 1000.0)
}
