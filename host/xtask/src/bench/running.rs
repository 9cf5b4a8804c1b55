//! A process beside the server: a peer, an echo, a replay.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::shell::send;

/// The maximum time from its start to its first connection, and from SIGTERM to its end.
const TIME_TO_LISTEN: Duration = Duration::from_secs(60);
const TIME_TO_END: Duration = Duration::from_secs(5);

/// Try until it succeeds, for at most `time`.
pub(super) fn within<T>(time: Duration, attempt: impl Fn() -> Result<T>) -> Result<T> {
    let give_up = Instant::now() + time;
    loop {
        match attempt() {
            Err(_) if Instant::now() < give_up => sleep(Duration::from_millis(250)),
            last => return last,
        }
    }
}

/// A running process; stopped when dropped.
pub(super) struct Running(Child);

impl Running {
    /// Start it and wait until it accepts connections.
    pub(super) fn start(command: &mut Command, address: &str) -> Result<Self> {
        // An earlier process would be measured in its place.
        ensure!(TcpStream::connect(address).is_err(), "something listens on {address} already");
        let child = command.stdout(Stdio::null()).spawn();
        let mut running = Self(child.with_context(|| format!("cannot start {command:?}"))?);
        let give_up = Instant::now() + TIME_TO_LISTEN;
        while TcpStream::connect(address).is_err() {
            ensure!(Instant::now() < give_up, "{command:?} does not listen on {address}");
            ensure!(running.0.try_wait()?.is_none(), "{command:?} ended");
            sleep(Duration::from_millis(50));
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
            sleep(Duration::from_millis(50));
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
