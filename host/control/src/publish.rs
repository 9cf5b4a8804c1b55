//! The one cell with the serving snapshot and the state that it was built from.
//!
//! Both are replaced at once, so that no reader sees parts of two releases. The data plane's cell
//! is a view of this cell.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use gristmill_metrics::Durations;
use gristmill_snapshot::{ModelState, Pipeline, SnapshotCell, Takes, Tenant};
use gristmill_state::Serving;

/// The cell in which releases are published.
pub(crate) struct Publisher {
    current: Arc<ArcSwap<Serving>>,
    cell: Arc<SnapshotCell>,
    /// How long it took to put each release in force.
    swaps: Durations,
}

impl Default for Publisher {
    /// A cell with an empty snapshot.
    fn default() -> Self {
        let current = Arc::new(ArcSwap::<Serving>::default());
        let viewed = current.clone();
        let cell = Arc::new(SnapshotCell::viewing(move || viewed.load().snapshot.clone()));
        Self { current, cell, swaps: Durations::default() }
    }
}

impl Publisher {
    /// The cell that the data plane reads.
    pub(crate) fn cell(&self) -> &Arc<SnapshotCell> {
        &self.cell
    }

    /// How long it took to put each release in force.
    pub(crate) fn swaps(&self) -> &Durations {
        &self.swaps
    }

    /// The current state.
    pub(crate) fn serving(&self) -> Arc<Serving> {
        self.current.load_full()
    }

    /// Serve this from now on. Requests under way keep their snapshot. Only the settings of models'
    /// queues and the quotas of tenants apply to all requests at once.
    pub(crate) fn publish(&self, serving: Arc<Serving>) {
        let began = Instant::now();
        let tenants = &serving.snapshot.tenants;
        let before = self.current.load();
        let is_one_gone = serving.touched.iter().any(|tenant| !tenants.contains_key(tenant));
        let versions = serving.snapshot.models.values().flat_map(ModelState::versions);
        for served in versions.filter_map(|(_, served)| served.as_ref().ok()) {
            served.lane.put_in_force();
            // This takes time for each tenant, under the lock of the queue.
            if is_one_gone {
                served.lane.retain_tenants(|tenant| tenants.contains_key(tenant));
            }
        }
        for name in &serving.touched {
            let Some(tenant) = tenants.get(name) else { continue };
            let before = before.snapshot.tenants.get(name);
            if !before.is_some_and(|before| Arc::ptr_eq(before, tenant)) {
                put_in_force(tenant);
            }
        }
        self.current.store(serving);
        self.swaps.add(began.elapsed());
    }
}

/// Let the limits of a tenant hold, and those of its shadows.
fn put_in_force(tenant: &Tenant) {
    let now = Instant::now();
    tenant.quota.put_in_force(&tenant.limits, now);
    let mut candidates = tenant.pipelines.values().filter_map(|pipeline| match pipeline {
        Pipeline::Ready(route) => route.candidate.as_ref(),
        Pipeline::Unavailable(_) => None,
    });
    // All shadows of a tenant have one quota.
    let shadow = candidates.find_map(|candidate| match candidate.takes {
        Takes::Shadow { .. } => candidate.served.as_ref().ok(),
        Takes::Traffic => None,
    });
    if let Some(shadow) = shadow {
        shadow.quota.put_in_force(&tenant.limits.for_shadows(), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_planes_cell_shows_what_was_published_last() {
        let publisher = Publisher::default();
        let cell = publisher.cell().clone();
        let before = cell.load();
        assert_eq!(before.release, 0);
        let snapshot = Arc::new(gristmill_snapshot::Snapshot { release: 7, ..Default::default() });
        publisher.publish(Serving { snapshot: snapshot.clone(), ..Serving::default() }.into());
        assert!(Arc::ptr_eq(&cell.load(), &snapshot));
        assert!(Arc::ptr_eq(&publisher.serving().snapshot, &snapshot));
        assert_eq!(before.release, 0, "who holds the one before keeps it");
    }
}
