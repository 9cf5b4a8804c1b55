//! Releases, replicas, plugins, jobs, connections and the log.

use std::collections::BTreeMap;

use gristmill_control::ControlFigures;
use gristmill_metrics::{Collected, family};
use gristmill_snapshot::{Pipeline, Snapshot};

use super::observed::Observed;

pub(crate) fn collect(observed: &Observed, snapshot: &Snapshot, collected: &mut Collected) {
    let ControlFigures { swaps, builds, compiles, instances, lag } = observed.control.figures();
    collected.add(family::TARGET_INFO, &[observed.version], 1_u64);
    collected.add(family::RELEASE, &[], snapshot.release);
    collected.add(family::RELEASES, &[], swaps.count());
    collected.add(family::SWAP_DURATION, &[], swaps);
    collected.add(family::BUILD_DURATION, &[], builds);
    collected.add(family::COMPILE_DURATION, &[], compiles);
    if let Some(lag) = lag {
        collected.add(family::REPLICA_LAG, &[], lag.as_secs_f64());
        collected.add(family::STORE_TROUBLE, &[], observed.control.trouble().is_some());
    }
    for (state, count) in
        [("busy", instances.busy), ("waiting", instances.waiting), ("idle", instances.idle)]
    {
        collected.add(family::PLUGIN_INSTANCES, &[state], count);
    }
    collected.add(family::PLUGIN_INSTANCES_LIMIT, &[], instances.max);
    collect_objects(snapshot, collected);

    let mut jobs: BTreeMap<[&str; 2], usize> = BTreeMap::new();
    for job in observed.control.jobs() {
        let state = if job.running.is_some() { "running" } else { "queued" };
        *jobs.entry([job.job, state]).or_default() += 1;
    }
    for (attributes, count) in jobs {
        collected.add(family::JOBS, &attributes, count);
    }
    for (plane, connections) in &observed.connections {
        collected.add(family::CONNECTIONS, &[plane], connections.open());
        collected.add(family::CONNECTIONS_LIMIT, &[plane], connections.max());
    }
    collected.add(family::LOG_DROPPED, &[], observed.log.dropped());
}

/// How many things there are, and how many of them do not serve.
fn collect_objects(snapshot: &Snapshot, collected: &mut Collected) {
    let mut plugins = (0_u64, 0_u64);
    let mut pipelines = (0_u64, 0_u64);
    let mut models = (0_u64, 0_u64);
    let count = |(all, out): &mut (u64, u64), serves: bool| {
        *all += 1;
        *out += u64::from(!serves);
    };
    for tenant in snapshot.tenants.values() {
        for plugin in tenant.plugins.values() {
            count(&mut plugins, plugin.newest.is_ok());
        }
        for pipeline in tenant.pipelines.values() {
            count(&mut pipelines, matches!(pipeline, Pipeline::Ready(_)));
        }
    }
    for model in snapshot.models.values() {
        let serves = model.served.as_ref().is_ok_and(|served| served.lane.refusal().is_none());
        count(&mut models, serves);
    }
    collected.add(family::OBJECTS, &["tenants"], snapshot.tenants.size());
    for (what, (all, out)) in [("pipelines", pipelines), ("plugins", plugins), ("models", models)] {
        collected.add(family::OBJECTS, &[what], all);
        collected.add(family::OUT_OF_SERVICE, &[what], out);
    }
}
