//! The end: told by a signal, announced, and over within the drain timeout whatever still runs.

use std::time::{Duration, Instant};

use anyhow::Result;
use gristmill_http::{GrpcPlane, Shutdown};
use gristmill_snapshot::Snapshot;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the end may take beyond the drain timeout before the process is ended as it is.
const PATIENCE: Duration = Duration::from_secs(3);

/// What running batches have when the drain timeout has passed.
const LAST_BATCH: Duration = Duration::from_millis(500);

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

/// When everything is to have ended. From a little later on nothing is waited for: a thread that
/// does not need the runtime, of which work may hold every thread, ends the process.
pub(super) fn end_within(drain_timeout: Duration) -> Instant {
    let watch = move || {
        std::thread::sleep(drain_timeout + PATIENCE);
        tracing::error!("the drain timeout passed, and something still runs: ending without it");
        std::thread::sleep(PATIENCE / 10);
        std::process::exit(1);
    };
    if let Err(error) = std::thread::Builder::new().name("end".into()).spawn(watch) {
        tracing::warn!(%error, "nothing watches over the end");
    }
    Instant::now() + drain_timeout
}

/// Wait for the batches that still run, a moment in any case: a runtime whose process ends under one
/// may crash.
pub(super) fn rest(snapshot: &Snapshot, until: Instant) {
    let until = until.max(Instant::now() + LAST_BATCH);
    for (model, state) in &snapshot.models {
        let left = until.saturating_duration_since(Instant::now());
        if state.served.as_ref().is_ok_and(|served| !served.lane.rests_within(left)) {
            tracing::warn!(%model, "still runs a batch");
        }
    }
}
