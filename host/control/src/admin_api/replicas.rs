//! The servers that share the store.

use futures_util::FutureExt;

use crate::admin_api::Control;
use crate::error::ControlError;
use crate::replicas::{KnownReplica, Trouble, Waited};

impl Control {
    /// All servers that share the store, this one among them. None if the store is this server's
    /// alone.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn replicas(&self) -> Result<Option<Vec<KnownReplica>>, ControlError> {
        match &self.replicas {
            Some(replicas) => replicas.all(&self.serving()).boxed().await.map(Some),
            None => Ok(None),
        }
    }

    /// Why the log of other servers cannot be followed, if it cannot.
    pub fn trouble(&self) -> Option<Trouble> {
        self.replicas.as_ref()?.trouble()
    }

    /// Wait until all servers that live serve the release, but not for ever. None if the store is
    /// this server's alone.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn wait_for_all(&self, release: u64) -> Result<Option<Waited>, ControlError> {
        match &self.replicas {
            Some(replicas) => replicas.wait_for(release, || self.serving()).boxed().await.map(Some),
            None => Ok(None),
        }
    }

    /// Say that this server is about to end: the others do not wait for it any more.
    pub async fn leave(&self) {
        if let Some(replicas) = &self.replicas {
            replicas.leave().await;
        }
    }

    /// # Errors
    /// The store cannot be reached, as the last look for releases found.
    pub(super) fn check_reachable(&self) -> Result<(), ControlError> {
        self.replicas.as_ref().map_or(Ok(()), |replicas| replicas.check_reachable())
    }
}
