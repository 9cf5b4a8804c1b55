//! The end: told by a signal, announced, and over within the drain timeout whatever still runs.

use std::time::Duration;

use anyhow::Result;
use gristmill_http::{GrpcPlane, Shutdown};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::process;

/// What the end may take beyond the drain timeout before the process is ended as it is.
const PATIENCE: Duration = Duration::from_secs(6);

/// What the log has to be written in.
const LAST_LINE: Duration = Duration::from_millis(300);

/// The signals that end the server.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn new() -> Result<Self> {
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    /// Wait for the next one.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Be no longer ready, and serve on for `delay` or until the next signal: whoever sends requests
/// here has to hear of it first.
pub(super) async fn announce(
    signals: &mut Signals,
    shutdown: &Shutdown,
    grpc: &mut GrpcPlane,
    delay: Duration,
) {
    shutdown.announce();
    grpc.announce_shutdown().await;
    if delay > Duration::ZERO {
        let delay_s = delay.as_secs();
        tracing::info!(delay_s, "about to shut down: serving on, but not ready");
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = signals.next() => {}
        }
    }
    tracing::info!("shutting down: finishing requests under way");
}

/// End the process a little after `drain_timeout`, whatever still runs: by a thread that does not need
/// the runtime, of which work may hold every thread.
pub(super) fn end_within(drain_timeout: Duration) {
    let watch = move || {
        std::thread::sleep(drain_timeout + PATIENCE);
        tracing::error!("the drain timeout passed, and something still runs: ending without it");
        std::thread::sleep(LAST_LINE);
        process::end_at_once();
    };
    if let Err(error) = std::thread::Builder::new().name("end".into()).spawn(watch) {
        tracing::warn!(%error, "nothing watches over the end");
    }
}
