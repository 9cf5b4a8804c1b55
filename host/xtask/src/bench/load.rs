//! Whole requests under load: Gristmill, the same job in FastAPI, and a bare hyper echo of the same
//! body, in turns.

use anyhow::{Context, Result};
use serde_json::json;

use super::clients::Round;
use super::harness::{Bench, ECHO_URL};
use super::loads::{DIGITS, RANKER};
use super::peers::peer::PEERS;
use super::rounds::{compare, in_turns};
use crate::shell::step;
use crate::table::Bound::AtLeast;

const CONCURRENCY: [u32; 3] = [1, 16, 64];
const ROUNDS: usize = 3;
const ROUND_SECONDS: u32 = 4;

/// The targets, over FastAPI: ranker at concurrency 16, in fresh instances and in ones that stay.
const RATIO_MIN: f64 = 3.0;
const REUSED_RATIO_MIN: f64 = 4.5;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let fastapi = PEERS.iter().find(|peer| peer.name == "fastapi").context("no peer fastapi")?;
    let python = fastapi.install()?;
    let (server, _echo) = (bench.start()?, bench.start_echo()?);
    // It offers both services.
    let _fastapi = fastapi.start(&python, RANKER.model())?;
    for (load, pre, post) in [(RANKER, "ranker-pre", "ranker-post"), (DIGITS, "digits", "digits")] {
        let name = load.model();
        let spec = json!({ "pre": pre, "model": name, "post": post, "instance_reuse": "tenant" });
        server.admin.put_json(&format!("tenants/demo/pipelines/{name}-reused"), &spec)?;
        let script = load.wrk_script()?;
        let url = format!("{}/{}", server.url, load.path);
        let reused_url = format!("{url}-reused");
        let fastapi_url = format!("http://{}/{name}", fastapi.address());
        for concurrency in CONCURRENCY {
            step(&format!("{name} at concurrency {concurrency}"));
            let round = Round { concurrency, seconds: ROUND_SECONDS };
            let by_wrk = |url: &str| round.by_wrk(url, &script);
            let [fresh, reused, theirs, echo] = in_turns(
                ROUNDS,
                [&|| by_wrk(&url), &|| by_wrk(&reused_url), &|| by_wrk(&fastapi_url), &|| {
                    by_wrk(ECHO_URL)
                }],
            )?;
            let (to_fastapi, to_echo) = (compare(&fresh, &theirs), compare(&fresh, &echo));
            let reused = compare(&reused, &theirs);
            let figures = json!({
                "ratio_to_fastapi": to_fastapi.ratio,
                "ratio_to_echo": to_echo.ratio,
                "gristmill_per_s": to_fastapi.per_s,
                "fastapi_per_s": to_fastapi.reference_per_s,
                "echo_per_s": to_echo.reference_per_s,
            });
            let reused_figures =
                json!({ "ratio_to_fastapi": reused.ratio, "gristmill_per_s": reused.per_s });
            for (how, figures, ratio, least) in [
                ("", figures, to_fastapi.ratio, RATIO_MIN),
                (" instance_reuse: tenant,", reused_figures, reused.ratio, REUSED_RATIO_MIN),
            ] {
                let what = format!("{name},{how} concurrency {concurrency}");
                let row = bench.table.row(what, figures);
                if (name, concurrency) == (RANKER.model(), 16) {
                    row.with_bound(ratio, AtLeast(least), "x FastAPI");
                }
            }
        }
    }
    Ok(())
}
