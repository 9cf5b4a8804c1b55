//! The one cell with the serving snapshot and the state that it was built from.
//!
//! Both are replaced at once, so that no reader sees parts of two releases. The data plane's cell
//! is a view of this cell.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use gristmill_core::Name;
use gristmill_metrics::Durations;
use gristmill_snapshot::{ModelState, Pipeline, Snapshot, SnapshotCell, Takes, Tenant};

use crate::desired::Desired;
use crate::fault::{Fault, Part, Subject};

/// The serving state of one release.
#[derive(Default)]
pub struct Serving {
    /// The snapshot of the release.
    pub snapshot: Arc<Snapshot>,
    /// The state that the snapshot was built from.
    pub desired: Arc<Desired>,
    /// The faults of the desired state.
    pub(crate) faulty: BTreeSet<Part>,
    /// The tenants that may differ from those of the snapshot before.
    pub(crate) touched: BTreeSet<Name>,
}

impl Serving {
    /// Whether the fault takes something away that was served. A thing counts as served; of an
    /// earlier version it is looked up, because it may have been the newest one, or out of service.
    pub(crate) fn served(&self, fault: &Fault) -> bool {
        let Some(version) = fault.version else { return true };
        let Snapshot { models, tenants, .. } = &*self.snapshot;
        let is_ok = match &fault.subject {
            Subject::Model(model) => {
                let known = models.get(model).and_then(|own| own.of_version(Some(version)));
                known.map(|served| served.is_ok())
            }
            Subject::Plugin { tenant, plugin } => {
                let own = tenants.get(tenant).and_then(|own| own.plugins.get(plugin));
                own.and_then(|own| own.of_version(Some(version))).map(|loaded| loaded.is_ok())
            }
            _ => Some(true),
        };
        is_ok.unwrap_or_default()
    }

    /// The tenants of which something may differ in `desired`, which was made from the desired
    /// state by changes: those that were changed, and those that have a fault, because what failed
    /// may be loaded since. Besides, a change of a model touches its users.
    pub(crate) fn may_change(&self, desired: &Desired) -> BTreeSet<Name> {
        let faulty = self.faulty.iter().filter_map(|(subject, _)| match subject {
            Subject::Plugin { tenant, .. }
            | Subject::Tenant(tenant)
            | Subject::Pipeline { tenant, .. }
            | Subject::Candidate { tenant, .. }
            | Subject::Key { tenant, .. } => Some(tenant),
            Subject::Model(_) | Subject::ModelConfig(_) | Subject::Token(_) => None,
        });
        desired.touched().iter().chain(faulty).cloned().collect()
    }
}

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
    let shadow = candidates.find_map(|own| match own.takes {
        Takes::Shadow { .. } => own.served.as_ref().ok(),
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
        let snapshot = Arc::new(Snapshot { release: 7, ..Snapshot::default() });
        publisher.publish(Serving { snapshot: snapshot.clone(), ..Serving::default() }.into());
        assert!(Arc::ptr_eq(&cell.load(), &snapshot));
        assert!(Arc::ptr_eq(&publisher.serving().snapshot, &snapshot));
        assert_eq!(before.release, 0, "who holds the one before keeps it");
    }
}
