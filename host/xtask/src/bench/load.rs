//! Whole requests under load: Gristmill with plugins in Rust and in Python, the same job in
//! FastAPI, and a bare hyper echo of the same body, in turns.

use anyhow::Result;
use serde_json::json;

use super::clients::Round;
use super::harness::{Bench, ECHO_URL};
use super::loads::{DIGITS, RANKER};
use super::peers::peer::FASTAPI;
use super::rounds::{compare, in_turns};
use crate::shell::step;
use crate::table::Bound::AtLeast;
use crate::{runtimes, setup};

const CONCURRENCY: [u32; 3] = [1, 16, 64];
const ROUNDS: usize = 3;
const ROUND_SECONDS: u32 = 4;

/// The targets, over FastAPI: ranker at concurrency 16, in fresh instances and in ones that stay.
const RUST_MIN: [f64; 2] = [3.0, 4.5];
const PYTHON_MIN: [f64; 2] = [1.0, 2.0];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let python = FASTAPI.install()?;
    if bench.options.build {
        runtimes::build()?;
        setup::build_languages(&bench.gristmill)?;
    }
    let (server, _echo) = (bench.start()?, bench.start_echo()?);
    // It offers both services.
    let _fastapi = FASTAPI.start(&python, RANKER.model())?;
    for (load, pre, post) in [(RANKER, "ranker-pre", "ranker-post"), (DIGITS, "digits", "digits")] {
        let name = load.model();
        let in_python = format!("{name}-python");
        let sources = bench.components.join(format!("{in_python}.tar"));
        server.admin.put_file(&format!("tenants/demo/plugins/{in_python}"), &sources)?;
        for (pipeline, pre, post, reuse) in [
            (format!("{name}-reused"), pre, post, "tenant"),
            (in_python.clone(), &*in_python, &*in_python, "none"),
            (format!("{in_python}-reused"), &in_python, &in_python, "tenant"),
        ] {
            let spec = json!({ "pre": pre, "model": name, "post": post, "instance_reuse": reuse });
            server.admin.put_json(&format!("tenants/demo/pipelines/{pipeline}"), &spec)?;
        }
        let script = load.wrk_script()?;
        let url = format!("{}/{}", server.url, load.path);
        let fastapi_url = format!("http://{}/{name}", FASTAPI.address());
        for concurrency in CONCURRENCY {
            step(&format!("{name} at concurrency {concurrency}"));
            let round = Round { concurrency, seconds: ROUND_SECONDS };
            let by_wrk = |url: &str| round.by_wrk(url, &script);
            let of = |end: &str| by_wrk(&format!("{url}{end}"));
            let [theirs, echo, rust, rust_reused, python, python_reused] = in_turns(
                ROUNDS,
                [
                    &|| by_wrk(&fastapi_url),
                    &|| by_wrk(ECHO_URL),
                    &|| of(""),
                    &|| of("-reused"),
                    &|| of("-python"),
                    &|| of("-python-reused"),
                ],
            )?;
            for (how, ours, least) in [
                ("", rust, RUST_MIN[0]),
                (" instance_reuse: tenant,", rust_reused, RUST_MIN[1]),
                (" in Python,", python, PYTHON_MIN[0]),
                (" in Python, instance_reuse: tenant,", python_reused, PYTHON_MIN[1]),
            ] {
                let (to_fastapi, to_echo) = (compare(&ours, &theirs), compare(&ours, &echo));
                let figures = json!({
                    "ratio_to_fastapi": to_fastapi.ratio,
                    "ratio_to_echo": to_echo.ratio,
                    "gristmill_per_s": to_fastapi.per_s,
                    "fastapi_per_s": to_fastapi.reference_per_s,
                    "echo_per_s": to_echo.reference_per_s,
                });
                let what = format!("{name},{how} concurrency {concurrency}");
                let row = bench.table.row(what, figures);
                if (name, concurrency) == (RANKER.model(), 16) {
                    row.with_bound(to_fastapi.ratio, AtLeast(least), "x FastAPI");
                }
            }
        }
    }
    Ok(())
}
