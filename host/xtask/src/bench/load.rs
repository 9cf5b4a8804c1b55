//! Whole requests under load: Gristmill, the same job in FastAPI, and a bare hyper echo of the same
//! body, all in one run, their rounds interleaved.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::json;

use super::processes::{ECHO, Running, start_with_echo};
use super::rounds::median;
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use super::wrk;
use crate::server::Server;
use crate::setup;
use crate::shell::{program, root, step};

const CONCURRENCY: [u32; 3] = [1, 16, 64];
const ROUNDS: usize = 3;
const ROUND_SECONDS: u32 = 4;
const FASTAPI: &str = "127.0.0.1:18090";

/// The targets: ranker at concurrency 16, against FastAPI, in fresh instances and in ones that
/// stay.
const RANKER_RATIO_MIN: f64 = 3.0;
const RANKER_REUSED_RATIO_MIN: f64 = 4.5;

/// The end of the names of the pipelines with `instance_reuse: tenant`.
const REUSED: &str = "-reused";

/// A request and its path.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) body: PathBuf,
    pub(super) content_type: &'static str,
}

/// The server that answers.
#[derive(Clone, Copy, PartialEq)]
enum Peer {
    Gristmill,
    /// With instances that stay.
    Reused,
    FastApi,
    Echo,
}

const PEERS: [Peer; 4] = [Peer::Gristmill, Peer::Reused, Peer::FastApi, Peer::Echo];

pub(crate) fn run(shipped: &Shipped) -> Result<()> {
    wrk::install()?;
    let python = setup::python_environment("fastapi", "benches/peers/fastapi/requirements.txt")?;

    step("starting Gristmill, FastAPI and the echo");
    let (server, _echo) = start_with_echo(shipped)?;
    let _fastapi = Running::start(&mut fastapi(&python), FASTAPI)?;

    for (name, pre, post) in
        [("ranker", "ranker-pre", "ranker-post"), ("digits", "digits", "digits")]
    {
        let spec = json!({ "pre": pre, "model": name, "post": post, "instance_reuse": "tenant" });
        server.admin.put_json(&format!("tenants/demo/pipelines/{name}{REUSED}"), &spec)?;
    }
    let mut table = Table::new("load", "cargo xtask bench load");
    for scenario in scenarios() {
        for concurrency in CONCURRENCY {
            measure(&server, &scenario, concurrency, &mut table)?;
        }
    }
    table.finish()
}

pub(super) fn scenarios() -> [Scenario; 2] {
    [
        Scenario {
            name: "ranker",
            body: root().join("benches/scenarios/ranker.json"),
            content_type: "application/json",
        },
        Scenario {
            name: "digits",
            body: root().join("models/digits/samples/7.png"),
            content_type: "image/png",
        },
    ]
}

fn fastapi(python: &Path) -> Command {
    let (host, port) = FASTAPI.split_once(':').unwrap_or((FASTAPI, "8090"));
    let mut command = program(python);
    command
        .args(["-m", "uvicorn", "app:app", "--workers", "2", "--no-access-log"])
        .args(["--log-level", "warning", "--host", host, "--port", port])
        .current_dir(root().join("benches/peers/fastapi"));
    command
}

/// Measure every peer and add the row.
fn measure(
    server: &Server,
    scenario: &Scenario,
    concurrency: u32,
    table: &mut Table,
) -> Result<()> {
    step(&format!("{} at concurrency {concurrency}", scenario.name));
    let headers = [("content-type", scenario.content_type)];
    let script = wrk::write_script(scenario.name, &scenario.body, &headers)?;
    let mut rates = PEERS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (peer, rates) in PEERS.into_iter().zip(&mut rates) {
            let url = match peer {
                Peer::Gristmill => format!("{}/v1/demo/infer/{}", server.url, scenario.name),
                Peer::Reused => {
                    format!("{}/v1/demo/infer/{}{REUSED}", server.url, scenario.name)
                }
                Peer::FastApi => format!("http://{FASTAPI}/{}", scenario.name),
                Peer::Echo => format!("http://{ECHO}/"),
            };
            let (url, script) = (url.as_str(), script.as_path());
            let round = wrk::Round { url, script, concurrency, seconds: ROUND_SECONDS };
            rates.push(round.requests_per_second()?);
        }
    }
    let [gristmill, reused, fastapi, echo] = rates.map(median);
    let (to_fastapi, to_echo) = (gristmill / fastapi, gristmill / echo);
    let reused_to_fastapi = reused / fastapi;
    let what = format!("{}, concurrency {concurrency}", scenario.name);
    let measured = format!(
        "{to_fastapi:5.2} x FastAPI, {to_echo:4.2} x echo   (gristmill {gristmill:6.0}/s, fastapi {fastapi:6.0}/s, echo {echo:6.0}/s)"
    );
    let figures = json!({
        "ratio_to_fastapi": to_fastapi,
        "ratio_to_echo": to_echo,
        "gristmill_per_s": gristmill,
        "fastapi_per_s": fastapi,
        "echo_per_s": echo,
    });
    if (scenario.name, concurrency) == ("ranker", 16) {
        let target = format!("at least {RANKER_RATIO_MIN} x FastAPI");
        let reached = Verdict::new(target, to_fastapi >= RANKER_RATIO_MIN);
        table.row_to_reach(what, measured, figures, reached);
    } else {
        table.row(what, measured, figures);
    }
    let what = format!("{}, instance_reuse: tenant, concurrency {concurrency}", scenario.name);
    let measured = format!("{reused_to_fastapi:5.2} x FastAPI   (gristmill {reused:6.0}/s)");
    let figures = json!({ "ratio_to_fastapi": reused_to_fastapi, "gristmill_per_s": reused });
    if (scenario.name, concurrency) == ("ranker", 16) {
        let target = format!("at least {RANKER_REUSED_RATIO_MIN} x FastAPI");
        let reached = Verdict::new(target, reused_to_fastapi >= RANKER_REUSED_RATIO_MIN);
        table.row_to_reach(what, measured, figures, reached);
    } else {
        table.row(what, measured, figures);
    }
    Ok(())
}
