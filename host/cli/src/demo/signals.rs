//! SIGTERM, Ctrl-C and the end of the terminal, which end the server first.

use std::process::Child;
use std::thread;

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{self, SignalKind, signal};

pub(super) struct Signals {
    runtime: Runtime,
    signals: [unix::Signal; 3],
}

impl Signals {
    /// From now on they do not end this process.
    pub(super) fn catch() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let signals = {
            let _entered = runtime.enter();
            let [terminate, interrupt, hang_up] =
                [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
            [signal(terminate)?, signal(interrupt)?, signal(hang_up)?]
        };
        Ok(Self { runtime, signals })
    }

    /// Tell the server at each of them to end.
    pub(super) fn pass_on(self, server: &Child) -> Result<()> {
        let Self { runtime, signals } = self;
        let passing = pass_all(signals, Pid::from_child(server));
        thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(passing))?;
        Ok(())
    }
}

async fn pass_all([mut terminate, mut interrupt, mut hang_up]: [unix::Signal; 3], server: Pid) {
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up.recv() => {}
        }
        // It may have ended by itself.
        let _ = kill_process(server, Signal::TERM);
    }
}
