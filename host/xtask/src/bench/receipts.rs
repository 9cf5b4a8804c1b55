//! Receipts under load: what all requests were charged, over the processor time of the server.

use anyhow::{Context, Result};
use gristmill_client::http::Request;
use gristmill_client::{Client, block_on};
use serde_json::{Value, json};

use super::own_client::Round;
use super::services::{self, Load};
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use crate::server::Server;
use crate::shell::step;

const CONCURRENCY: [u32; 2] = [1, 16];
const ROUND_SECONDS: u32 = 8;

/// The parts of a charge that are processor time.
const PARTS: [&str; 3] = ["plugin_cpu_us", "model_us", "host_cpu_us"];

/// How far the sum may be from the processor time.
const OFF_MAX: f64 = 0.10;

/// The server's processor time, and the sums of all requests' charges, in microseconds.
struct Seen {
    cpu_us: f64,
    charged_us: [f64; PARTS.len()],
}

pub(crate) fn run(shipped: &Shipped) -> Result<()> {
    let server = services::start(shipped)?;
    let mut table = Table::new("receipts", "cargo xtask bench receipts");
    for Load { name, path, sent } in services::LOADS {
        for concurrency in CONCURRENCY {
            let what = format!("{name}, concurrency {concurrency}");
            step(&what);
            let before = Seen::now(&server)?;
            let round = Round { concurrency, seconds: ROUND_SECONDS };
            round.measure(&shipped.gristmill, &format!("{}/{path}", server.url), &sent)?;
            let after = Seen::now(&server)?;
            let cpu_us = after.cpu_us - before.cpu_us;
            let shares: Vec<f64> = after
                .charged_us
                .iter()
                .zip(before.charged_us)
                .map(|(after, before)| (after - before) / cpu_us)
                .collect();
            let share: f64 = shares.iter().sum();
            let parts: Vec<_> = PARTS
                .iter()
                .zip(&shares)
                .map(|(part, share)| format!("{part} {share:.2}"))
                .collect();
            table.row_to_reach(
                format!("{what}: charged over the processor time"),
                format!("{share:.2} ({})", parts.join(", ")),
                json!({ "share": share, "parts": shares, "cpu_us": cpu_us }),
                Verdict::new("within 10 %", (share - 1.0).abs() <= OFF_MAX),
            );
        }
    }
    table.finish()
}

impl Seen {
    fn now(server: &Server) -> Result<Self> {
        let metrics = Request::get("/metrics").body(Default::default())?;
        let client = Client::new(server.admin.url.parse()?).with_token(&server.admin.token)?;
        let metrics = block_on(client.send(metrics))?.ok()?;
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
