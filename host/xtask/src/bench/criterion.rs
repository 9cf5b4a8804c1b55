//! The medians that criterion measures (`benches/benches/sandbox.rs`).

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::{cargo, number, run, target};

/// Measure the benchmarks whose names match `filter`, a regular expression.
pub(super) fn measure(components: &Path, filter: &str) -> Result<()> {
    run(cargo()
        .args(["bench", "--workspace", "--bench", "sandbox", "--", "--noplot", filter])
        .env("GRISTMILL_TEST_COMPONENTS", components))
}

/// Criterion's median of one benchmark.
pub(super) fn median_us(group: &str, name: &str) -> Result<f64> {
    let path = target().join(format!("criterion/{group}/{name}/new/estimates.json"));
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let estimates: Value = serde_json::from_str(&text)?;
    Ok(number(&estimates, "/median/point_estimate")? / 1000.0)
}
