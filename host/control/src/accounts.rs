//! The parts of a tenant that stay the same from snapshot to snapshot: its quota of the host, the
//! last lines of its plugins, and the counters of its pipelines.
//!
//! Invariant: while the desired state has a tenant, the tenant has one quota, with the lines of its
//! plugins, and each of its pipelines one set of counters.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use gristmill_core::{ByteBudget, Name};
use gristmill_sandbox::Account;
use gristmill_snapshot::{PipelineStatistics, TenantQuota};
use parking_lot::Mutex;

use crate::desired::Desired;

/// The plugin calls of one tenant that may run at the same time, for each core.
const SLOTS_PER_CORE: usize = 8;

/// The quotas and counters of all tenants.
pub(crate) struct Accounts {
    quotas: Mutex<HashMap<Name, Arc<TenantQuota>>>,
    statistics: Mutex<HashMap<Name, HashMap<Name, Arc<PipelineStatistics>>>>,
    /// The tenants that were asked for since the last time that some were forgotten. The changes
    /// that asked may have been refused.
    asked: Mutex<BTreeSet<Name>>,
    /// Bytes of each tenant's requests and answers under way.
    tenant_bytes_max: usize,
    /// Plugin calls of all tenants.
    concurrent_calls: usize,
}

impl Accounts {
    pub(crate) fn new(tenant_bytes_max: usize, concurrent_calls: usize) -> Self {
        Self {
            quotas: Mutex::default(),
            statistics: Mutex::default(),
            asked: Mutex::default(),
            tenant_bytes_max,
            concurrent_calls,
        }
    }

    /// A quota that belongs to no tenant.
    pub(crate) fn new_quota(&self) -> TenantQuota {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // With any number of cores, the pool has places left for other tenants.
        let pool = self.concurrent_calls;
        let calls = (cores * SLOTS_PER_CORE).min(pool / 2).max(1);
        let bytes = ByteBudget::new(self.tenant_bytes_max);
        let calls = Account::new(calls, cores.min(calls), bytes.clone());
        TenantQuota::new(calls, bytes)
    }

    /// The tenant's quota of the host. Guests are limited by the processor, so a few for each core
    /// keep it busy. More would only let one tenant's runaway plugins displace those of others.
    pub(crate) fn quota(&self, tenant: &Name) -> Arc<TenantQuota> {
        self.asked.lock().insert(tenant.clone());
        let new = || Arc::new(self.new_quota());
        self.quotas.lock().entry(tenant.clone()).or_insert_with(new).clone()
    }

    /// The counters of a tenant's pipeline, which it keeps when its plugins or its model change.
    pub(crate) fn statistics(&self, tenant: &Name, pipeline: &Name) -> Arc<PipelineStatistics> {
        self.asked.lock().insert(tenant.clone());
        let mut statistics = self.statistics.lock();
        let own = statistics.entry(tenant.clone()).or_default();
        own.entry(pipeline.clone()).or_default().clone()
    }

    /// Of these tenants and of those that were asked for since the last time, forget those that
    /// `desired` does not have, and the plugins and pipelines that it does not have.
    pub(crate) fn forget(&self, tenants: &BTreeSet<Name>, desired: &Desired) {
        let asked = std::mem::take(&mut *self.asked.lock());
        let (mut quotas, mut statistics) = (self.quotas.lock(), self.statistics.lock());
        for name in asked.union(tenants) {
            let Some(own) = desired.tenants.get(name) else {
                quotas.remove(name);
                statistics.remove(name);
                continue;
            };
            if let Some(quota) = quotas.get(name) {
                quota.lines.retain(|plugin| own.plugins.contains_key(plugin));
            }
            if let Some(statistics) = statistics.get_mut(name) {
                statistics.retain(|pipeline, _| own.pipelines.contains_key(pipeline));
            }
        }
    }
}
