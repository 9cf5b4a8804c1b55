//! What `gristmill bench --explain` predicts, beside what it then measures.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::harness::Bench;
use super::loads::LOADS;
use crate::shell::{number, step};

const CONNECTIONS: [u32; 3] = [1, 4, 16];

/// The figures that are predicted: the name, its name in the program's output, and whether it is to
/// be right.
const FIGURES: [(&str, &str, bool); 3] =
    [("answers a second", "per_second", true), ("p50", "p50_us", true), ("p99", "p99_us", false)];

/// How far a prediction may be off, as a share of the measurement.
const OFF_MAX: f64 = 0.15;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let server = bench.start_with_photos()?;
    for load in LOADS {
        for connections in CONNECTIONS {
            let what = format!("{}, {connections} connections", load.name());
            step(&what);
            let mut explain = server.cli(&bench.gristmill);
            explain.arg("bench").arg(format!("{}/{}", server.url, load.path)).args(load.flags());
            explain.args(["--explain", "--output", "json", "--duration", "8"]);
            let done = explain.args(["--connections", &connections.to_string()]).output()?;
            let error = String::from_utf8_lossy(&done.stderr);
            ensure!(done.status.success(), "gristmill bench --explain: {error}");
            let explained: Value = serde_json::from_slice(&done.stdout)?;
            for (figure, key, has_target) in FIGURES {
                let figures = &explained["figures"][key];
                let off = number(figures, "/off")?;
                let row = bench.table.row(format!("{what}: {figure}"), figures.clone());
                if has_target {
                    row.with_target("within 15 %", off.abs() <= OFF_MAX);
                }
            }
        }
    }
    Ok(())
}
