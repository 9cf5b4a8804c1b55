//! A server's process. If its test fails, the last lines of its log are shown.

use std::fs;
use std::path::PathBuf;
use std::thread;

use gristmill_client::ServerProcess;

/// How many lines are shown, and how much of each.
const SHOWN_LINES: usize = 20;
const SHOWN_BYTES: usize = 300;

pub(super) struct Process {
    pub(super) server: ServerProcess,
    /// Where standard error goes.
    pub(super) log: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.server.kill();
        if thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
            let shown: Vec<_> =
                last.iter().map(|line| &line[..line.floor_char_boundary(SHOWN_BYTES)]).collect();
            eprintln!("the server's last lines:\n{}", shown.join("\n"));
        }
    }
}
