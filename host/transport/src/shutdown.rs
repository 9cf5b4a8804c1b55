//! Announcing and beginning the server's shutdown.

use tokio_util::sync::CancellationToken;

/// The state of the shutdown. It is first announced and then begun. When it begins, listeners stop
/// accepting and drain. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    announced: CancellationToken,
    begun: CancellationToken,
}

impl Shutdown {
    /// A shutdown that is not announced yet.
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

    /// A token for one connection. Connections do not share one, because waiting for a token locks
    /// it at each poll.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.begun.child_token()
    }
}
