//! Telling listeners, and everyone who waits, that the server is about to end.

use tokio_util::sync::CancellationToken;

/// Tells that the server is about to end, and listeners to stop accepting and to drain. Clones
/// share the state.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    announced: CancellationToken,
    begun: CancellationToken,
}

impl Shutdown {
    /// A shutdown that was neither announced nor begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Say that the server is about to end, while it serves on: it is no longer ready.
    pub fn announce(&self) {
        self.announced.cancel();
    }

    /// Begin the shutdown.
    pub fn begin(&self) {
        self.announce();
        self.begun.cancel();
    }

    /// Whether it was announced.
    pub fn is_announced(&self) -> bool {
        self.announced.is_cancelled()
    }

    /// Wait until it begins.
    pub async fn begun(&self) {
        self.begun.cancelled().await;
    }

    /// A token of its own for one connection. Waiting for a token locks it at each poll, so
    /// connections do not share one.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.begun.child_token()
    }
}
