//! Tenants, and the requests to their pipelines and models.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use gristmill_core::{Name, Stage};
use gristmill_metrics::{Collected, RequestFigures, family};
use gristmill_snapshot::{Pipeline, Snapshot, Tenant};

use super::observed::Observed;

/// The tenants without metrics of their own, together. It is not the name of any tenant.
const OTHER: &str = "_other";

/// What a tenant uses.
#[derive(Default)]
struct Use {
    bytes: usize,
    calls: usize,
}

pub(crate) fn collect(observed: &Observed, snapshot: &Snapshot, collected: &mut Collected) {
    let figures_of = |tenant| targets_of(tenant).collect::<Vec<_>>();
    let all: Vec<(&Name, &Tenant, Vec<&RequestFigures>)> = snapshot
        .tenants
        .iter()
        .map(|(name, tenant)| (name, &**tenant, figures_of(tenant)))
        .collect();
    let figures: Vec<&RequestFigures> =
        all.iter().flat_map(|(.., figures)| figures).copied().collect();
    let slots = observed.control.label_slots();
    slots.reassign(&figures, Instant::now());
    for target_figures in &figures {
        target_figures.collect(collected);
    }
    slots.collect_other(collected);
    slots.collect(&figures, collected);
    observed.edges.collect(collected);
    // Staging is a part of a batch's run, and a look-up a part of a plugin's call.
    let is_own = |stage: &Stage| !matches!(stage, Stage::Staging | Stage::Lookup);
    let stages = Stage::ALL.into_iter().filter(is_own);
    let mut active: BTreeMap<&str, u64> = stages.map(|stage| (stage.name(), 0)).collect();
    for request in observed.requests.underway() {
        *active.entry(request.stage.name()).or_default() += 1;
    }
    for (stage, count) in active {
        collected.add(family::REQUESTS_ACTIVE, &[stage], count);
    }

    // Tenants have labels of their own if one of their pipelines has.
    let with_place = |(.., figures): &&(_, _, Vec<&RequestFigures>)| {
        figures.iter().any(|figures| figures.has_slot())
    };
    let named: BTreeSet<&Name> = all.iter().filter(with_place).map(|(name, ..)| *name).collect();
    let mut other = Use::default();
    for (name, tenant, _) in &all {
        let tenant_use =
            Use { bytes: tenant.quota.bytes.held(), calls: tenant.quota.calls.calls_under_way() };
        if named.contains(name) {
            tenant_use.collect(name.as_str(), collected);
            // Not of the others together: a sum over tenants that change would not only grow.
            let refused = tenant.quota.refused.load(Relaxed);
            collected.add(family::TENANT_REFUSED, &[name.as_str()], refused);
        } else {
            other.bytes += tenant_use.bytes;
            other.calls += tenant_use.calls;
        }
    }
    if named.len() < all.len() {
        other.collect(OTHER, collected);
    }
    collected.add(family::TENANT_BYTES_LIMIT, &[], observed.tenant_bytes_max);
}

impl Use {
    fn collect(&self, tenant: &str, collected: &mut Collected) {
        collected.add(family::TENANT_BYTES, &[tenant], self.bytes);
        collected.add(family::TENANT_PLACES, &[tenant], self.calls);
    }
}

/// The figures of a tenant's pipelines, and of its requests to models.
fn targets_of(tenant: &Tenant) -> impl Iterator<Item = &RequestFigures> {
    let pipelines = tenant.pipelines.values().filter_map(|pipeline| match pipeline {
        Pipeline::Ready(route) => Some(&*route.figures),
        Pipeline::Unavailable(_) => None,
    });
    pipelines.chain(tenant.models.values().map(|direct| &*direct.figures))
}
