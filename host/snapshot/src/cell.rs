//! The data plane's access to the current snapshot.

use std::sync::Arc;

use crate::picture::Snapshot;

/// The current snapshot, as a view of what the control plane publishes: the control plane keeps the
/// snapshot together with the state that it was built from, and replaces both at once.
pub struct SnapshotCell(Box<dyn Fn() -> Arc<Snapshot> + Send + Sync>);

impl SnapshotCell {
    /// A cell over `current`, which returns the current snapshot. Each request calls `current`, so
    /// it must be quick and must not block.
    pub fn viewing(current: impl Fn() -> Arc<Snapshot> + Send + Sync + 'static) -> Self {
        Self(Box::new(current))
    }

    /// The current snapshot.
    pub fn load(&self) -> Arc<Snapshot> {
        (self.0)()
    }
}
