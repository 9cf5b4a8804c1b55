//! Whether the load generator, `gristmill bench`, is fast enough for a client: beside wrk on the
//! same work.

use anyhow::Result;
use serde_json::json;

use super::clients::Round;
use super::harness::{Bench, ECHO_URL};
use super::loads::{DIGITS, RANKER};
use super::rounds::{compare, in_turns, median_of};
use crate::shell::step;
use crate::table::Bound::AtMost;

const CONCURRENCY: [u32; 2] = [16, 64];
/// Odd, so that there is a median.
const ROUNDS: usize = 5;
const ROUND_SECONDS: u32 = 4;

/// The targets: how far the throughputs may be apart, and the client's own CPU time for an
/// answer.
const OFF_MAX: f64 = 0.05;
const CPU_US_MAX: f64 = 12.0;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let (server, _echo) = (bench.start()?, bench.start_echo()?);
    for load in [RANKER, DIGITS] {
        let script = load.wrk_script()?;
        let gristmill_url = format!("{}/{}", server.url, load.path);
        for (name, url) in [("echo", ECHO_URL), ("gristmill", gristmill_url.as_str())] {
            for concurrency in CONCURRENCY {
                let what = format!("{}, {name}, concurrency {concurrency}", load.model());
                step(&what);
                let round = Round { concurrency, seconds: ROUND_SECONDS };
                let [rounds, of_wrk] = in_turns(
                    ROUNDS,
                    [&|| round.measure(&bench.gristmill, url, &load.flags()), &|| {
                        round.by_wrk(url, &script)
                    }],
                )?;
                let compared = compare(&rounds, &of_wrk);
                let figures = compared.figures("per_s", "their_per_s");
                let row = bench.table.row(format!("{what}, over wrk"), figures);
                row.with_target("within 5 %", (compared.ratio - 1.0).abs() <= OFF_MAX);
                let cpu_us = median_of(&rounds, |round| round.client_cpu_us);
                let what = format!("{what}: the client's own CPU time");
                let row = bench.table.row(what, json!({ "client_cpu_us": cpu_us }));
                row.with_bound(cpu_us, AtMost(CPU_US_MAX), "us");
            }
        }
    }
    Ok(())
}
