//! wrk on the server, compared with wrk on an echo of the same body.

use anyhow::Result;
use serde_json::json;

use super::scenario::Scenario;
use crate::bench::processes::ECHO;
use crate::bench::rounds::{in_turns, median};
use crate::bench::table::{Table, Verdict};
use crate::bench::wrk;
use crate::server::Server;
use crate::shell::step;

const ROUNDS: usize = 3;
const ROUND_SECONDS: u32 = 4;

/// A model, and how many connections ask for it.
pub(super) struct OverEcho {
    pub(super) scenario: &'static Scenario,
    pub(super) concurrency: u32,
    /// The target.
    pub(super) ratio_min: Option<f64>,
}

impl OverEcho {
    /// Measure the server and the echo in turns, and add the row.
    pub(super) fn measure(&self, server: &Server, table: &mut Table) -> Result<()> {
        let Self { scenario, concurrency, ratio_min } = *self;
        let name = format!("{}, HTTP, wrk, concurrency {concurrency}", scenario.model);
        step(&name);
        let (url, echo_url) = (scenario.url(server), format!("http://{ECHO}/"));
        let script = scenario.write_script()?;
        let measure = |url: &str| {
            let script = script.as_path();
            wrk::Round { url, script, concurrency, seconds: ROUND_SECONDS }.requests_per_second()
        };
        let (ours, echoes) = in_turns(ROUNDS, || measure(&url), || measure(&echo_url))?;
        let (per_s, echo) = (median(ours), median(echoes));
        let ratio = per_s / echo;
        let words = format!("{ratio:4.2} x echo   (gristmill {per_s:6.0}/s, echo {echo:6.0}/s)");
        let figures = json!({ "ratio_to_echo": ratio, "per_s": per_s, "echo_per_s": echo });
        match ratio_min {
            Some(least) => {
                let verdict = Verdict::new(format!("at least {least} x echo"), ratio >= least);
                table.row_to_reach(name, words, figures, verdict);
            }
            None => table.row(name, words, figures),
        }
        Ok(())
    }
}
