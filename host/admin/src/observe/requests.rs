//! Tenants, and the requests to their pipelines and models.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use gristmill_core::{Name, Stage};
use gristmill_metrics::{Collected, RequestFigures, family};
use gristmill_snapshot::{Pipeline, Snapshot, Tenant};

use super::parts::Parts;

/// The tenants without metrics of their own, together. It is not the name of any tenant.
const OTHER: &str = "_other";

/// What a tenant uses.
#[derive(Default)]
struct Use {
    bytes: usize,
    calls: usize,
}

pub(crate) fn collect(parts: &Parts, snapshot: &Snapshot, collected: &mut Collected) {
    let figures_of = |tenant| targets_of(tenant).collect::<Vec<_>>();
    let all: Vec<(&Name, &Tenant, Vec<&RequestFigures>)> = snapshot
        .tenants
        .iter()
        .map(|(name, tenant)| (name, &**tenant, figures_of(tenant)))
        .collect();
    let figures: Vec<&RequestFigures> = all.iter().flat_map(|(.., own)| own).copied().collect();
    let places = parts.control.label_slots();
    places.reassign(&figures, Instant::now());
    for own in &figures {
        own.collect(collected);
    }
    places.collect_other(collected);
    places.collect(&figures, collected);
    parts.edges.collect(collected);
    // Staging is a part of a batch's run.
    let stages = Stage::ALL.into_iter().filter(|own| *own != Stage::Staging);
    let mut active: BTreeMap<&str, u64> = stages.map(|stage| (stage.name(), 0)).collect();
    for request in parts.requests.underway() {
        *active.entry(request.stage.name()).or_default() += 1;
    }
    for (stage, count) in active {
        collected.add(family::REQUESTS_ACTIVE, &[stage], count);
    }

    // Tenants have labels of their own if one of their pipelines has.
    let with_place =
        |(.., own): &&(_, _, Vec<&RequestFigures>)| own.iter().any(|figures| figures.has_slot());
    let named: BTreeSet<&Name> = all.iter().filter(with_place).map(|(name, ..)| *name).collect();
    let mut other = Use::default();
    for (name, tenant, _) in &all {
        let own =
            Use { bytes: tenant.quota.bytes.held(), calls: tenant.quota.calls.calls_under_way() };
        if named.contains(name) {
            own.collect(name.as_str(), collected);
            // Not of the others together: a sum over tenants that change would not only grow.
            let refused = tenant.quota.refused.load(Relaxed);
            collected.add(family::TENANT_REFUSED, &[name.as_str()], refused);
        } else {
            other.bytes += own.bytes;
            other.calls += own.calls;
        }
    }
    if named.len() < all.len() {
        other.collect(OTHER, collected);
    }
    collected.add(family::TENANT_BYTES_LIMIT, &[], parts.tenant_bytes_max);
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
