//! The processes of a load benchmark: the server with the demo's tenants, and its peers.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gristmill_client::Listen;

use super::shipped::Shipped;
use crate::server::Server;
use crate::setup;
use crate::shell::{program, target};

/// The server's addresses.
const LISTEN: Listen<'_> =
    Listen { data: "127.0.0.1:18080", grpc: "127.0.0.1:18082", admin: "127.0.0.1:18081" };

/// The address of the echo.
pub(super) const ECHO: &str = "127.0.0.1:18095";

/// Start the server as it ships, with the demo's tenants, and the echo.
pub(super) fn start_with_echo(shipped: &Shipped) -> Result<(Server, Running)> {
    let onnxruntime = setup::install_onnxruntime()?;
    let data = target().join("bench-data");
    let server = Server::start(&shipped.gristmill, &data, &onnxruntime, LISTEN)?;
    server.deploy_demo(&shipped.components)?;
    let echo = Running::start(program(shipped.binary("echo")).arg(ECHO), ECHO)?;
    Ok((server, echo))
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
        // SIGTERM, because uvicorn's workers outlive a parent that is ended by SIGKILL.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}
