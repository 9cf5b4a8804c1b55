//! `gristmill bench` as the client of benchmarks: a process of its own.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell::{program, root};

/// What a round measured.
#[derive(Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    /// The client's own processor time for each answer.
    pub(crate) client_cpu_us: f64,
}

/// The size of a round.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) concurrency: u32,
    pub(crate) seconds: u32,
}

impl Round {
    /// Send the request that `url` and `flags` say.
    ///
    /// # Errors
    /// `gristmill bench` cannot be run, or an answer was not a success.
    pub(crate) fn measure(self, gristmill: &Path, url: &str, flags: &[&str]) -> Result<Measured> {
        let mut bench = program(gristmill);
        bench.current_dir(root()).args(["bench", url, "--output", "json", "--warm-up", "1"]);
        bench.args(["--connections", &self.concurrency.to_string()]);
        bench.args(["--duration", &self.seconds.to_string()]).args(flags);
        let done = bench.output().context("gristmill bench cannot be run")?;
        let text = String::from_utf8_lossy(&done.stderr);
        let last = text.lines().last().unwrap_or_default();
        ensure!(done.status.success(), "gristmill bench of {url}: {last}");
        let saved: Value = serde_json::from_slice(&done.stdout)?;
        let measured = &saved["measured"][0];
        let errors = &measured["errors"];
        ensure!(errors.is_null(), "{url}: answers that were not a success: {errors}");
        let number = |value: &Value| {
            value.as_f64().with_context(|| format!("gristmill bench wrote {saved}"))
        };
        Ok(Measured {
            per_second: number(&measured["per_second"])?,
            p50_us: number(&measured["latency_us"]["p50"])?,
            p90_us: number(&measured["latency_us"]["p90"])?,
            p99_us: number(&measured["latency_us"]["p99"])?,
            client_cpu_us: number(&measured["client_cpu_us"])?,
        })
    }
}
