//! Announcing and starting the server's shutdown.

use tokio_util::sync::CancellationToken;

/// The state of the shutdown: first announced, then begun, at which listeners stop accepting and
/// drain. Clones share the state.
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

    /// Announce the shutdown: the server continues to serve, but is no longer ready.
    pub fn announce(&self) {
        self.announced.cancel();
    }

    /// Begin the shutdown.
    pub fn begin(&self) {
        self.announce();
        self.begun.cancel();
    }

    /// Whether the shutdown was announced.
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
