//! The clients of the benchmarks, each a process of its own: `gristmill bench` and wrk.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::bench::rounds::Measured;
use crate::setup;
use crate::shell::{number, output, program, root, succeeds, target};

/// The size of a round.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    /// The number of connections.
    pub(crate) concurrency: u32,
    pub(crate) seconds: u32,
}

impl Round {
    /// Let `gristmill bench` send the request that `url` and `flags` say.
    ///
    /// # Errors
    /// It cannot be run, or an answer was not a success.
    pub(crate) fn measure(self, gristmill: &Path, url: &str, flags: &[&str]) -> Result<Measured> {
        self.by_gristmill(program(gristmill).arg("bench").arg(url).args(flags), url)
    }

    /// Let `gristmill bench` send the requests of a file of `--targets`, whose answers may take
    /// long.
    ///
    /// # Errors
    /// It cannot be run, or an answer was not a success.
    pub(super) fn measure_targets(self, gristmill: &Path, targets: &Path) -> Result<Measured> {
        let mut bench = program(gristmill);
        bench.args(["bench", "--patience", "60", "--targets"]).arg(targets);
        self.by_gristmill(&mut bench, &targets.display().to_string())
    }

    /// Run a command of `gristmill bench`.
    fn by_gristmill(self, bench: &mut Command, what: &str) -> Result<Measured> {
        bench.current_dir(root()).args(["--output", "json", "--warm-up", "1"]);
        bench.args(["--connections", &self.concurrency.to_string()]);
        bench.args(["--duration", &self.seconds.to_string()]);
        let done = bench.output().context("gristmill bench cannot be run")?;
        let text = String::from_utf8_lossy(&done.stderr);
        let last = text.lines().last().unwrap_or_default();
        ensure!(done.status.success(), "gristmill bench of {what}: {last}");
        let saved: Value = serde_json::from_slice(&done.stdout)?;
        let measured = &saved["measured"][0];
        let errors = &measured["errors"];
        ensure!(errors.is_null(), "{what}: answers that were not a success: {errors}");
        Ok(Measured {
            per_second: number(measured, "/per_second")?,
            p50_us: number(measured, "/latency_us/p50")?,
            p90_us: number(measured, "/latency_us/p90")?,
            p99_us: number(measured, "/latency_us/p99")?,
            client_cpu_us: number(measured, "/client_cpu_us")?,
        })
    }

    /// Let wrk send the request of a script from [`wrk_script`]. It only measures answers a second.
    ///
    /// # Errors
    /// It cannot be run, a connection failed, or an answer was not a success.
    pub(super) fn by_wrk(self, url: &str, script: &Path) -> Result<Measured> {
        let Self { concurrency, seconds } = self;
        let mut wrk = program("wrk");
        wrk.args(["-t1", &format!("-c{concurrency}"), &format!("-d{seconds}s")]);
        let report = output(wrk.args(["--timeout", "10s", "-s"]).arg(script).arg(url))?;
        let is_failure = |line: &&str| line.contains("Non-2xx") || line.contains("Socket errors");
        if let Some(failed) = report.lines().find(is_failure) {
            bail!("{url}: {}", failed.trim());
        }
        let rate = report.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
        let per_second = rate.with_context(|| format!("wrk said:\n{report}"))?.trim().parse()?;
        Ok(Measured { per_second, ..Measured::default() })
    }
}

/// Write wrk's script of a POST to `target/`. wrk is installed if it is missing. The script reads
/// the body once, so that a request runs no Lua.
pub(super) fn wrk_script(name: &str, body: &Path, headers: &[(&str, &str)]) -> Result<PathBuf> {
    if !succeeds(program("sh").args(["-c", "command -v wrk"])) {
        setup::install_packages(&["wrk"])?;
    }
    let path = target().join(format!("wrk-{name}.lua"));
    let mut text = format!(
        "local file = assert(io.open({body:?}, 'rb'))\nwrk.method = 'POST'\nwrk.body = file:read('*a')\n"
    );
    for (header, value) in headers {
        text.push_str(&format!("wrk.headers['{header}'] = '{value}'\n"));
    }
    std::fs::write(&path, text)?;
    Ok(path)
}
