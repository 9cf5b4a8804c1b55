//! What `gristmill bench --explain` predicts, beside what it then measures.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::services::{self, Load};
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use crate::server::Server;
use crate::shell::{program, root, step};

const CONNECTIONS: [u32; 3] = [1, 4, 16];

/// The figures that are predicted: the name, its name in the program's output, and whether it is to
/// be right.
const FIGURES: [(&str, &str, bool); 3] =
    [("answers a second", "per_second", true), ("p50", "p50_us", true), ("p99", "p99_us", false)];

/// How far a prediction may be off, as a share of the measurement.
const OFF_MAX: f64 = 0.15;

pub(crate) fn run(shipped: &Shipped) -> Result<()> {
    let server = services::start(shipped)?;
    let mut table = Table::new("explain", "cargo xtask bench explain");
    for load in services::LOADS {
        for connections in CONNECTIONS {
            let what = format!("{}, {connections} connections", load.name);
            step(&what);
            let explained = explain(shipped, &server, &load, connections)?;
            for (figure, key, is_asked) in FIGURES {
                let own = &explained["figures"][key];
                let number = |part: &str| {
                    own[part].as_f64().with_context(|| format!("no {part} of {key}: {own}"))
                };
                let (predicted, measured, off) =
                    (number("predicted")?, number("measured")?, number("off")?);
                let what = format!("{what}: {figure}");
                let text = format!(
                    "predicted {predicted:8.0}, measured {measured:8.0} ({:+.0} %)",
                    off * 100.0
                );
                if is_asked {
                    let verdict = Verdict::new("within 15 %", off.abs() <= OFF_MAX);
                    table.row_to_reach(what, text, own.clone(), verdict);
                } else {
                    table.row(what, text, own.clone());
                }
            }
        }
    }
    table.finish()
}

fn explain(shipped: &Shipped, server: &Server, load: &Load, connections: u32) -> Result<Value> {
    let mut bench = program(&shipped.gristmill);
    bench.current_dir(root()).arg("bench").arg(format!("{}/{}", server.url, load.path));
    bench.args(load.sent);
    bench.args(["--explain", "--output", "json", "--duration", "8"]);
    bench.args(["--connections", &connections.to_string()]);
    bench.env("GRISTMILL_ADMIN_URL", &server.admin.url);
    let done = bench.env("GRISTMILL_ADMIN_TOKEN", &server.admin.token).output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "gristmill bench --explain: {said}");
    Ok(serde_json::from_slice(&done.stdout)?)
}
