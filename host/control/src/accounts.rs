//! The parts of a tenant that stay the same from snapshot to snapshot: its quota of the host, the
//! last lines of its plugins, and the counters of its pipelines.
//!
//! Invariant: while the desired state has a tenant, the tenant has one quota, with the lines of its
//! plugins, and each of its pipelines one set of counters.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use gristmill_core::{ByteBudget, Destination, Name};
use gristmill_metrics::usage::{Counter, Key, UsageStore};
use gristmill_metrics::{LabelSlots, RequestFigures, RequestTarget};
use gristmill_sandbox::{
    Account, AllLines, BACKGROUND_CALLS_PER_CORE, Neighbours, NoOutgoing, NoStores,
    OUTGOING_AT_ONCE, OutgoingHttp, STORE_KIB, StoreAccess, Stores, TenantOutgoing, TenantStores,
};
use gristmill_snapshot::TenantQuota;
use gristmill_state::{CandidateSpec, Desired, StoreGrant};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The plugin calls of one tenant that may run at the same time, for each core.
const SLOTS_PER_CORE: usize = 8;

/// A tenant by its name and the release that made it: a later one of the same name is another one.
pub(crate) type TenantId = (Name, u64);

/// The shadows of one tenant that run at the same time, and the share of its memory that they have.
const SHADOWS_PER_TENANT: usize = 2;
const SHADOW_BYTES_PART: usize = 8;

/// The HTTP requests to other services that the shadows of a tenant have under way.
const SHADOWS_OUTGOING: usize = OUTGOING_AT_ONCE / SHADOW_BYTES_PART;

/// A tenant has at most this part of the permits of guests that wait for models.
const RESTING_PART: usize = 8;

/// The shadows of all tenants that run at the same time, for each core, and at most this part of
/// the pool of plugin calls.
const SHADOWS_PER_CORE: usize = BACKGROUND_CALLS_PER_CORE;
const SHADOW_POOL_PART: usize = 8;

/// A candidate that its evaluation has aborted.
#[derive(Debug)]
pub(crate) struct Aborted {
    pub(crate) tenant: Name,
    pub(crate) pipeline: Name,
    pub(crate) candidate: CandidateSpec,
    pub(crate) reason: String,
}

/// The quotas and counters of all tenants.
pub(crate) struct Accounts {
    tenants: Mutex<HashMap<TenantId, TenantEntry>>,
    /// The tenants that were asked for since the last time that some were forgotten. The changes
    /// that asked may have been refused.
    asked: Mutex<BTreeSet<TenantId>>,
    /// Bytes of each tenant's requests and answers under way.
    tenant_bytes_max: usize,
    /// Plugin calls of all tenants.
    concurrent_calls: usize,
    /// Where figures and usage come from.
    figures: FigureParts,
    /// The last lines of all tenants' plugins.
    lines: Arc<AllLines>,
    /// All tenants, as those who share the serving threads.
    neighbours: Arc<Neighbours>,
    /// The stores of this server.
    stores: Arc<dyn Stores>,
    /// Sends the HTTP requests of plugins.
    outgoing: Arc<dyn OutgoingHttp>,
    /// The permits of all tenants' shadows.
    pub(crate) shadows: Arc<Semaphore>,
    /// Takes the candidates that are aborted.
    aborted: UnboundedSender<Aborted>,
}

/// Where the figures and the usage of requests come from.
#[derive(Clone)]
pub struct FigureParts {
    /// The slots for figures in all detail.
    pub label_slots: Arc<LabelSlots>,
    /// The usage of all tenants.
    pub usage: Arc<UsageStore>,
}

/// What one tenant has.
struct TenantEntry {
    quota: Arc<TenantQuota>,
    figures: HashMap<RequestTarget, Arc<RequestFigures>>,
    shadows: Option<Shadows>,
    /// The permits of the memory of its calls of stores.
    store_kib: Arc<Semaphore>,
    /// The permits of its HTTP requests to other services.
    outgoing: Arc<Semaphore>,
    /// Counts the bytes of its assets, and of the files that its plugins bring.
    asset_bytes: Arc<ByteBudget>,
}

/// What the shadows of a tenant may take, apart from the tenant's own requests.
#[derive(Clone)]
pub(crate) struct Shadows {
    pub(crate) quota: Arc<TenantQuota>,
    /// The permits of those that run.
    pub(crate) permits: Arc<Semaphore>,
    /// The permits of the memory of their calls of stores.
    store_kib: Arc<Semaphore>,
    /// The permits of their HTTP requests to other services.
    outgoing: Arc<Semaphore>,
}

/// The shadows of all tenants that run at the same time: one, if the pool is small. A pool of one
/// permit is for clients.
fn all_shadows(concurrent_calls: usize) -> usize {
    let least = usize::from(concurrent_calls > 1);
    (cores() * SHADOWS_PER_CORE).min(concurrent_calls / SHADOW_POOL_PART).max(least)
}

impl Accounts {
    /// Also returns the end at which candidates arrive that are aborted.
    pub(crate) fn new(
        tenant_bytes_max: usize,
        concurrent_calls: usize,
        figures: FigureParts,
    ) -> (Self, UnboundedReceiver<Aborted>) {
        let (aborted, arriving) = unbounded_channel();
        let accounts = Self {
            tenants: Mutex::default(),
            asked: Mutex::default(),
            tenant_bytes_max,
            concurrent_calls,
            figures,
            lines: Arc::default(),
            neighbours: Arc::default(),
            stores: Arc::new(NoStores),
            outgoing: Arc::new(NoOutgoing),
            // The pool has permits left for the requests of clients.
            shadows: Arc::new(Semaphore::new(all_shadows(concurrent_calls))),
            aborted,
        };
        (accounts, arriving)
    }

    /// The accounts on a server whose plugins may ask these other systems.
    pub(crate) fn asking(self, stores: Arc<dyn Stores>, outgoing: Arc<dyn OutgoingHttp>) -> Self {
        Self { stores, outgoing, ..self }
    }

    /// A quota that belongs to no tenant.
    pub(crate) fn new_quota(&self) -> TenantQuota {
        let cores = cores();
        // With any number of cores, the pool has permits left for other tenants.
        let pool = self.concurrent_calls;
        let calls = (cores * SLOTS_PER_CORE).min(pool / 2).max(1);
        let bytes = ByteBudget::new(self.tenant_bytes_max);
        // Guests that wait keep their permit for long. Few tenants together cannot take all.
        let resting = calls.min(pool / RESTING_PART).max(1);
        let long_calls = cores.min(calls);
        let calls = Account::new(calls, long_calls, bytes.clone())
            .with_resting(calls, long_calls, resting)
            .among(&self.neighbours);
        TenantQuota { lines: self.lines.of_one(), ..TenantQuota::new(calls, bytes) }
    }

    /// The tenant's quota of the host. Guests are limited by the processor, so a few for each core
    /// keep it busy. More would only let one tenant's runaway plugins displace those of others.
    pub(crate) fn quota(&self, tenant: &TenantId) -> Arc<TenantQuota> {
        self.with_entry(tenant, |entry| entry.quota.clone())
    }

    /// The figures of a tenant's requests to a pipeline or a model. They stay when the pipeline's
    /// plugins or its model change.
    pub(crate) fn figures(&self, tenant: &TenantId, target: RequestTarget) -> Arc<RequestFigures> {
        let new = || self.figures.label_slots.figures(tenant.0.clone(), target.clone()).into();
        self.with_entry(tenant, |entry| {
            entry.figures.entry(target.clone()).or_insert_with(new).clone()
        })
    }

    /// What counts the use of requests to a pipeline with this model, or to the model itself.
    pub(crate) fn usage(
        &self,
        (tenant, since): &TenantId,
        pipeline: Option<&Name>,
        model: &Name,
    ) -> Arc<Counter> {
        let (tenant, pipeline, model) = (tenant.clone(), pipeline.cloned(), model.clone());
        self.figures.usage.counter(&Key { tenant, since: *since, pipeline, model })
    }

    /// What the tenant's shadows share.
    pub(crate) fn shadows(&self, tenant: &TenantId) -> Shadows {
        let new = || {
            let bytes = ByteBudget::new(self.tenant_bytes_max / SHADOW_BYTES_PART);
            let count = SHADOWS_PER_TENANT.min(all_shadows(self.concurrent_calls) / 2).max(1);
            let calls = Account::background(count, bytes.clone());
            let lines = self.lines.of_one();
            let quota = TenantQuota { lines, ..TenantQuota::new(calls, bytes) };
            let [permits, store_kib, outgoing] = [count, STORE_KIB, SHADOWS_OUTGOING]
                .map(|permits| Arc::new(Semaphore::new(permits)));
            Shadows { quota: quota.into(), permits, store_kib, outgoing }
        };
        self.with_entry(tenant, |entry| entry.shadows.get_or_insert_with(new).clone())
    }

    /// The stores that the tenant's plugins, or those of its shadows, may use. None if its document
    /// grants none.
    pub(crate) fn stores(
        &self,
        tenant: &TenantId,
        grants: &BTreeMap<Name, StoreGrant>,
        is_shadow: bool,
    ) -> Option<Arc<TenantStores>> {
        if grants.is_empty() {
            return None;
        }
        let access = |grant: &StoreGrant| match grant {
            StoreGrant::Read => StoreAccess::Read,
            StoreGrant::Write => StoreAccess::Write,
        };
        let granted = grants.iter().map(|(name, grant)| (name.clone(), access(grant))).collect();
        let (kib, quota) = match is_shadow {
            true => {
                let Shadows { store_kib, quota, .. } = self.shadows(tenant);
                (store_kib, quota)
            }
            false => {
                self.with_entry(tenant, |entry| (entry.store_kib.clone(), entry.quota.clone()))
            }
        };
        let stores = TenantStores::new(tenant.0.clone(), self.stores.clone(), granted, kib);
        Some(Arc::new(stores.charging(quota.calls.cpu().clone())))
    }

    /// The services to which the tenant's plugins, or those of its shadows, may send HTTP requests.
    /// None if its document grants none.
    pub(crate) fn outgoing(
        &self,
        tenant: &TenantId,
        granted: &[Destination],
        is_shadow: bool,
    ) -> Option<Arc<TenantOutgoing>> {
        if granted.is_empty() {
            return None;
        }
        let (permits, quota) = match is_shadow {
            true => {
                let Shadows { outgoing, quota, .. } = self.shadows(tenant);
                (outgoing, quota)
            }
            false => self.with_entry(tenant, |entry| (entry.outgoing.clone(), entry.quota.clone())),
        };
        let (client, cpu) = (self.outgoing.clone(), quota.calls.cpu().clone());
        let (tenant, granted) = (tenant.0.clone(), granted.to_vec());
        Some(Arc::new(TenantOutgoing::new(tenant, client, granted, permits, cpu)))
    }

    /// What counts the bytes of the tenant's assets, and of the files that its plugins bring.
    pub(crate) fn asset_bytes(&self, tenant: &TenantId) -> Arc<ByteBudget> {
        self.with_entry(tenant, |entry| entry.asset_bytes.clone())
    }

    /// A function that reports the candidate as aborted, with a reason.
    pub(crate) fn abort(
        &self,
        (tenant, _): &TenantId,
        pipeline: &Name,
        candidate: &CandidateSpec,
    ) -> impl Fn(&str) + Send + Sync + 'static {
        let (tenant, pipeline, candidate) = (tenant.clone(), pipeline.clone(), candidate.clone());
        let aborted = self.aborted.clone();
        move |reason| {
            let (tenant, pipeline) = (tenant.clone(), pipeline.clone());
            let (candidate, reason) = (candidate.clone(), reason.to_owned());
            // Without a receiver the server is ending.
            let _ = aborted.send(Aborted { tenant, pipeline, candidate, reason });
        }
    }

    fn with_entry<T>(&self, tenant: &TenantId, read: impl FnOnce(&mut TenantEntry) -> T) -> T {
        self.asked.lock().insert(tenant.clone());
        let new = || TenantEntry {
            quota: Arc::new(self.new_quota()),
            figures: HashMap::new(),
            shadows: None,
            store_kib: Arc::new(Semaphore::new(STORE_KIB)),
            outgoing: Arc::new(Semaphore::new(OUTGOING_AT_ONCE)),
            // Who loads them bounds them: the bound depends on what serves.
            asset_bytes: ByteBudget::new(usize::MAX),
        };
        read(self.tenants.lock().entry(tenant.clone()).or_insert_with(new))
    }

    /// Of these tenants and of those that were asked for since the last time, forget those that
    /// `desired` does not have, and the plugins and pipelines that it does not have. While a tenant
    /// loads or holds files, it is not forgotten, so that they count for the next change, too.
    pub(crate) fn forget(&self, tenants: &BTreeSet<TenantId>, desired: &Desired) {
        let asked = std::mem::take(&mut *self.asked.lock());
        let mut all = self.tenants.lock();
        for id in asked.union(tenants) {
            let (name, since) = id;
            match desired.tenants.get(name).filter(|tenant| tenant.since == *since) {
                None if all.get(id).is_some_and(TenantEntry::may_hold_files) => {
                    self.asked.lock().insert(id.clone());
                }
                None => drop(all.remove(id)),
                Some(tenant) => {
                    if let Some(TenantEntry { quota, figures, .. }) = all.get_mut(id) {
                        quota.lines.retain(|plugin| tenant.plugins.contains_key(plugin));
                        figures.retain(|target, _| match target {
                            RequestTarget::Pipeline(name) => tenant.pipelines.contains_key(name),
                            RequestTarget::Model(name) => tenant.spec.models.contains(name),
                        });
                    }
                }
            }
        }
    }
}

impl TenantEntry {
    /// Whether something may hold files of the tenant, or is about to.
    fn may_hold_files(&self) -> bool {
        Arc::strong_count(&self.asset_bytes) > 1
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {

    use gristmill_state::{Change, TenantSpec};

    use super::*;
    use crate::testing::{figure_parts, name};

    #[test]
    fn a_later_tenant_of_the_same_name_has_nothing_of_the_earlier_one() {
        let (accounts, _) = Accounts::new(1 << 20, 16, figure_parts());
        let mut desired = Desired::default();
        let put = Change::PutTenant { tenant: name("acme"), spec: TenantSpec::default() };
        desired.apply(1, std::slice::from_ref(&put)).unwrap();
        let (earlier, later) = ((name("acme"), 1), (name("acme"), 3));
        let quota = accounts.quota(&earlier);
        accounts.forget(&BTreeSet::new(), &desired);
        assert!(Arc::ptr_eq(&quota, &accounts.quota(&earlier)));
        // A change that makes it anew, and is refused at first.
        accounts.quota(&later);
        accounts.forget(&BTreeSet::new(), &desired);
        assert!(Arc::ptr_eq(&quota, &accounts.quota(&earlier)));
        desired.apply(3, &[Change::DeleteTenant { tenant: name("acme") }, put]).unwrap();
        assert!(!Arc::ptr_eq(&quota, &accounts.quota(&later)));
        accounts.forget(&[earlier].into(), &desired);
        assert_eq!(accounts.tenants.lock().keys().collect::<Vec<_>>(), [&later]);
    }

    #[test]
    fn a_tenant_is_not_forgotten_while_something_holds_its_files() {
        let (accounts, _) = Accounts::new(1 << 20, 16, figure_parts());
        let tenant = (name("acme"), 1);
        let forget = || accounts.forget(&BTreeSet::new(), &Desired::default());
        let held = accounts.asset_bytes(&tenant).hold(7);
        forget();
        assert_eq!(accounts.asset_bytes(&tenant).held(), 7);
        drop(held);
        forget();
        assert!(accounts.tenants.lock().is_empty());
    }
}
