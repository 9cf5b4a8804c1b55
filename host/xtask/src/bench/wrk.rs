//! wrk, the HTTP client of the benchmarks: installing it, writing its script, and a round of it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::setup;
use crate::shell::{output, program, succeeds, target};

/// Install wrk if it is missing.
pub(super) fn install() -> Result<()> {
    if succeeds(program("sh").args(["-c", "command -v wrk"])) {
        return Ok(());
    }
    setup::install_packages(&["wrk"])
}

/// A round of wrk.
pub(super) struct Round<'a> {
    pub(super) url: &'a str,
    /// From [`write_script`].
    pub(super) script: &'a Path,
    /// The number of connections.
    pub(super) concurrency: u32,
    pub(super) seconds: u32,
}

impl Round<'_> {
    /// Run it. Returns the answers a second.
    ///
    /// # Errors
    /// wrk cannot be run, a connection failed, or an answer was not a success.
    pub(super) fn requests_per_second(&self) -> Result<f64> {
        let Self { url, script, concurrency, seconds } = self;
        let mut wrk = program("wrk");
        wrk.args(["-t1", &format!("-c{concurrency}"), &format!("-d{seconds}s")])
            .args(["--timeout", "10s", "-s"])
            .arg(script)
            .arg(url);
        let report = output(&mut wrk)?;
        let failed =
            report.lines().find(|line| line.contains("Non-2xx") || line.contains("Socket errors"));
        if let Some(failed) = failed {
            bail!("{url}: {}", failed.trim());
        }
        let rate = report.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
        Ok(rate.with_context(|| format!("wrk said:\n{report}"))?.trim().parse()?)
    }
}

/// Write wrk's script to `target/`. It reads the body once, so that a request runs no Lua.
pub(super) fn write_script(name: &str, body: &Path, headers: &[(&str, &str)]) -> Result<PathBuf> {
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
