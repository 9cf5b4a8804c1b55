//! What serves, and the state that it was made from.

use std::collections::BTreeSet;
use std::sync::Arc;

use gristmill_core::Name;
use gristmill_snapshot::Snapshot;

use crate::desired::Desired;
use crate::fault::{Fault, FaultyPart, Subject};

/// The serving state of one release.
#[derive(Default)]
pub struct Serving {
    /// The snapshot of the release.
    pub snapshot: Arc<Snapshot>,
    /// The state that the snapshot was built from.
    pub desired: Arc<Desired>,
    /// The faults of the desired state.
    pub faulty: BTreeSet<FaultyPart>,
    /// The tenants that may differ from those of the snapshot before.
    pub touched: BTreeSet<Name>,
}

impl Serving {
    /// Whether the fault takes something away that was served. A thing counts as served; of an
    /// earlier version it is looked up, because it may have been the newest one, or out of service.
    pub fn served(&self, fault: &Fault) -> bool {
        let Some(version) = fault.version else { return true };
        let Snapshot { models, tenants, .. } = &*self.snapshot;
        let is_ok = match &fault.subject {
            Subject::Model(model) => {
                let served = models.get(model).and_then(|model| model.of_version(Some(version)));
                served.map(|served| served.is_ok())
            }
            Subject::Plugin { tenant, plugin } => {
                let state = tenants.get(tenant).and_then(|tenant| tenant.plugins.get(plugin));
                state
                    .and_then(|plugin| plugin.of_version(Some(version)))
                    .map(|loaded| loaded.is_ok())
            }
            Subject::Asset { tenant, asset } => {
                let state = tenants.get(tenant).and_then(|tenant| tenant.assets.get(asset));
                state.and_then(|asset| asset.of_version(Some(version))).map(|loaded| loaded.is_ok())
            }
            _ => Some(true),
        };
        is_ok.unwrap_or_default()
    }

    /// The tenants of which something may differ in `desired`, which was made from the desired
    /// state by changes: those that were changed, and those that have a fault, because what failed
    /// may be loaded since. Besides, a change of a model touches its users.
    pub fn may_change(&self, desired: &Desired) -> BTreeSet<Name> {
        let faulty = self.faulty.iter().filter_map(|(subject, _)| match subject {
            Subject::Plugin { tenant, .. }
            | Subject::Asset { tenant, .. }
            | Subject::Tenant(tenant)
            | Subject::Pipeline { tenant, .. }
            | Subject::Candidate { tenant, .. }
            | Subject::Key { tenant, .. } => Some(tenant),
            Subject::Model(_) | Subject::ModelConfig(_) | Subject::Token(_) => None,
        });
        desired.touched().iter().chain(faulty).cloned().collect()
    }
}
