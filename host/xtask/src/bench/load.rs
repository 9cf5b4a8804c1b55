//! Whole requests under load: Gristmill, the same job in FastAPI, and a bare hyper echo of the same
//! body, all in one run, their rounds interleaved.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use gristmill_client::Listen;
use serde_json::json;

use super::Shipped;
use super::table::Table;
use crate::server::Server;
use crate::setup;
use crate::shell::{output, program, root, step, succeeds, target};

const CONCURRENCY: [u32; 3] = [1, 16, 64];
const ROUNDS: usize = 3;
const ROUND_SECONDS: u32 = 4;
/// The server's addresses.
const LISTEN: Listen<'_> =
    Listen { data: "127.0.0.1:18080", grpc: "127.0.0.1:18082", admin: "127.0.0.1:18081" };
pub(super) const ECHO: &str = "127.0.0.1:18095";
const FASTAPI: &str = "127.0.0.1:18090";

/// The target: ranker at concurrency 16, against FastAPI.
const RANKER_RATIO_MIN: f64 = 2.5;

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
    FastApi,
    Echo,
}

const PEERS: [Peer; 3] = [Peer::Gristmill, Peer::FastApi, Peer::Echo];

pub(crate) fn run(shipped: &Shipped) -> Result<()> {
    install_wrk()?;
    let python = setup::python_environment("fastapi", "benches/peers/fastapi/requirements.txt")?;

    step("starting Gristmill, FastAPI and the echo");
    let (server, _echo) = start(shipped)?;
    let _fastapi = Running::start(&mut fastapi(&python), FASTAPI)?;

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
        .current_dir(root().join("benches/peers/fastapi"))
        .env("MODELS", root().join("models"));
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
    let script =
        write_script(scenario.name, &scenario.body, &[("content-type", scenario.content_type)])?;
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (peer, rates) in PEERS.into_iter().zip(&mut rates) {
            let url = match peer {
                Peer::Gristmill => format!("{}/v1/demo/infer/{}", server.url, scenario.name),
                Peer::FastApi => format!("http://{FASTAPI}/{}", scenario.name),
                Peer::Echo => format!("http://{ECHO}/"),
            };
            rates.push(requests_per_second(&url, &script, concurrency, ROUND_SECONDS)?);
        }
    }
    let [gristmill, fastapi, echo] = rates.map(median);
    let (to_fastapi, to_echo) = (gristmill / fastapi, gristmill / echo);
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
        let reached = ("at least 2.5 x FastAPI", to_fastapi >= RANKER_RATIO_MIN);
        table.row_to_reach(what, measured, figures, reached);
    } else {
        table.row(what, measured, figures);
    }
    Ok(())
}

pub(super) fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Install wrk if it is missing.
pub(super) fn install_wrk() -> Result<()> {
    if succeeds(program("sh").args(["-c", "command -v wrk"])) {
        return Ok(());
    }
    setup::install_packages(&["wrk"])
}

/// The server as it ships with the demo's tenants, and the echo.
pub(super) fn start(shipped: &Shipped) -> Result<(Server, Running)> {
    let onnxruntime = setup::install_onnxruntime()?;
    let data = target().join("bench-data");
    let server = Server::start(&shipped.gristmill, &data, &onnxruntime, LISTEN)?;
    server.deploy_demo(&shipped.components)?;
    let echo = Running::start(program(shipped.binary("echo")).arg(ECHO), ECHO)?;
    Ok((server, echo))
}

/// One round of wrk; any answer but success is an error.
pub(super) fn requests_per_second(
    url: &str,
    script: &Path,
    concurrency: u32,
    seconds: u32,
) -> Result<f64> {
    let mut wrk = program("wrk");
    wrk.args(["-t1", &format!("-c{concurrency}"), &format!("-d{seconds}s"), "--timeout", "10s"])
        .arg("-s")
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

/// wrk's script: the body is read once, each request costs no Lua.
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

/// A peer's process; stopped when dropped.
pub(super) struct Running(Child);

impl Running {
    /// Start it and wait until it accepts connections.
    pub(super) fn start(command: &mut Command, address: &str) -> Result<Self> {
        let child = command.stdout(Stdio::null()).spawn();
        let mut running = Self(child.with_context(|| format!("cannot start {command:?}"))?);
        let give_up = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(address).is_err() {
            ensure!(Instant::now() < give_up, "{command:?} does not listen on {address}");
            ensure!(running.0.try_wait()?.is_none(), "{command:?} ended");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // uvicorn's workers end with their parent on SIGTERM; on SIGKILL they would stay.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}
