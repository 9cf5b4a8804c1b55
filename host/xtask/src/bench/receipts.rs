//! Receipts under load: what all requests were charged, over the CPU time of the server.

use anyhow::{Context, Result};
use gristmill_client::{Client, block_on};
use serde_json::{Value, json};

use super::clients::Round;
use super::harness::Bench;
use super::loads::LOADS;
use crate::server::Server;
use crate::shell::step;

const CONCURRENCY: [u32; 2] = [1, 16];
const ROUND_SECONDS: u32 = 8;

/// The parts of a charge that are CPU time.
const PARTS: [&str; 3] = ["plugin_cpu_us", "model_us", "host_cpu_us"];

/// How far the sum may be from the CPU time.
const OFF_MAX: f64 = 0.10;

/// The server's CPU time, and the sums of all requests' charges, in microseconds.
struct Reading {
    cpu_us: f64,
    charged_us: [f64; PARTS.len()],
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let server = bench.start_with_photos()?;
    for load in LOADS {
        for concurrency in CONCURRENCY {
            let what = format!("{}, concurrency {concurrency}", load.name());
            step(&what);
            let before = Reading::of(&server)?;
            bench.measure(&server, &load, Round { concurrency, seconds: ROUND_SECONDS })?;
            let after = Reading::of(&server)?;
            let cpu_us = after.cpu_us - before.cpu_us;
            let charged = after.charged_us.iter().zip(before.charged_us);
            let parts: Vec<f64> =
                charged.map(|(after, before)| (after - before) / cpu_us).collect();
            let share: f64 = parts.iter().sum();
            let figures = json!({ "share": share, "parts": parts, "cpu_us": cpu_us });
            let row = bench.table.row(format!("{what}: charged over the CPU time"), figures);
            row.with_target("within 10 %", (share - 1.0).abs() <= OFF_MAX);
        }
    }
    Ok(())
}

impl Reading {
    fn of(server: &Server) -> Result<Self> {
        let client = Client::new(server.admin.url.parse()?).with_token(&server.admin.token)?;
        let metrics = block_on(client.get("/metrics"))?.ok()?;
        let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
        let seconds = metrics
            .lines()
            .filter(|line| line.starts_with("process_cpu_time_seconds_total"))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        let cpu_us = seconds.sum::<f64>() * 1e6;
        let usage = server.admin.get("usage")?;
        let rows = usage["items"].as_array().context("usage has no items")?;
        let sum = |part: &str| rows.iter().filter_map(|row: &Value| row[part].as_f64()).sum();
        Ok(Self { cpu_us, charged_us: PARTS.map(sum) })
    }
}
