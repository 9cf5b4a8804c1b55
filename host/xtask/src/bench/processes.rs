//! The processes of a load benchmark: the server with the demo's tenants, and its peers.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gristmill_client::Listen;

use super::shipped::Shipped;
use crate::server::Server;
use crate::setup;
use crate::shell::{program, send, target};

/// The server's addresses.
const LISTEN: Listen<'_> =
    Listen { data: "127.0.0.1:18080", grpc: "127.0.0.1:18082", admin: "127.0.0.1:18081" };

/// How long a peer may take to end after SIGTERM.
const TIME_TO_END: Duration = Duration::from_secs(5);

/// The address of the echo.
pub(super) const ECHO: &str = "127.0.0.1:18095";

/// Start the server as it ships, with the demo's tenants.
pub(super) fn start_server(shipped: &Shipped) -> Result<Server> {
    let onnxruntime = setup::install_onnxruntime()?;
    let data = target().join("bench-data");
    let server = Server::start(&shipped.gristmill, &data, &onnxruntime, LISTEN)?;
    server.deploy_demo(&shipped.components)?;
    Ok(server)
}

/// The same, and the echo.
pub(super) fn start_with_echo(shipped: &Shipped) -> Result<(Server, Running)> {
    let server = start_server(shipped)?;
    let echo = Running::start(program(shipped.binary("echo")).arg(ECHO), ECHO)?;
    Ok((server, echo))
}

/// A peer's process; stopped when dropped.
pub(super) struct Running(Child);

impl Running {
    /// Start it and wait until it accepts connections.
    pub(super) fn start(command: &mut Command, address: &str) -> Result<Self> {
        // An earlier process would be measured in its place.
        ensure!(TcpStream::connect(address).is_err(), "something listens on {address} already");
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
        let mut workers = Vec::new();
        add_descendants(self.0.id(), &mut workers);
        // SIGTERM, because uvicorn's workers outlive a parent that is ended by SIGKILL.
        send("TERM", self.0.id());
        let give_up = Instant::now() + TIME_TO_END;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(50));
        }
        // Some servers do not end by themselves, and some leave their workers.
        let _ = self.0.kill();
        let _ = self.0.wait();
        workers.into_iter().for_each(|worker| send("KILL", worker));
    }
}

/// Add the numbers of the processes that `process` has started, directly or not.
fn add_descendants(process: u32, numbers: &mut Vec<u32>) {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|number| number.parse().ok()) {
            numbers.push(child);
            add_descendants(child, numbers);
        }
    }
}
