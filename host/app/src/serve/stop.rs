//! The shutdown. The first signal announces it, the next one ends the delay before the drain, and
//! one more ends the process at once. The process ends within the drain timeout, even if work still
//! runs.

use std::time::Duration;

use anyhow::Result;
use gristmill_http::GrpcPlane;
use gristmill_log::Log;
use gristmill_transport::Shutdown;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::process;

/// The time that the end may take beyond the drain timeout.
const PATIENCE: Duration = Duration::from_secs(1);

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

    /// Wait for the next signal.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Make the server not ready, and continue to serve for `delay` or until the next signal, so that
/// load balancers notice.
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
        tracing::info!(delay_s, "shutting down soon: still serving, but not ready");
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = signals.next() => {}
        }
    }
    tracing::info!("shutting down: finishing requests under way");
}

/// End the process at the next signal, or a little after `drain_timeout`, even if work still runs.
/// A separate thread with its own runtime does that, because work may hold every thread of the
/// server.
pub(super) fn end_within(drain_timeout: Duration, mut signals: Signals, log: Log) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let watch = runtime.and_then(|runtime| {
        let watch = move || {
            let is_signalled = runtime.block_on(async {
                tokio::select! {
                    () = tokio::time::sleep(drain_timeout + PATIENCE) => false,
                    () = signals.next() => true,
                }
            });
            if is_signalled {
                tracing::warn!(
                    "another signal: ending at once, without waiting for requests under way"
                );
            } else {
                tracing::error!("the drain timeout passed: ending although some work still runs");
            }
            end(&log)
        };
        std::thread::Builder::new().name("end".into()).spawn(watch)
    });
    if let Err(error) = watch {
        tracing::warn!(%error, "cannot start the thread that bounds the time of the shutdown");
    }
}

/// End the process when the log is written. Work that still runs is left behind.
pub(super) fn end(log: &Log) -> ! {
    log.flush();
    process::end(0)
}
