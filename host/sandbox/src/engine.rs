//! The engine that runs plugins: one for the process, with its pool of instances and its clock.
//!
//! Owns what each call needs besides its plugin: the linker, the pool's permits, the threads for
//! long calls, and the thread that ticks. Refuses to know files and compiling.
//!
//! Invariant: a store's epoch deadline is set before anything is instantiated in it, because start
//! functions run there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::{BufferPool, OverBudget};
use gristmill_platform::Share;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use wasmtime::component::Linker;
use wasmtime::{
    CallHook, CallHookHandler, Config, Enabled, Engine, InstanceAllocationStrategy,
    PoolingAllocationConfig, Store, StoreContextMut, UpdateDeadline,
};

use crate::account::{Account, CallPermits, RestPermit, Resting};
use crate::call::CallState;
use crate::capability::{self, States, StoreData};
use crate::compile::compile_config;
use crate::config::SandboxConfig;
use crate::error::CallError;
use crate::grant::{Grant, PerCall};
use crate::guest::Guest;
use crate::idle::{IdleGuests, TenantReuse};
use crate::limiter::{MEMORIES_PER_CALL, TABLES_PER_CALL};
use crate::load_error::LoadError;
use crate::long_calls::LongCalls;
use crate::meter::{CpuExhausted, Meter};
use crate::pause::PausablePermits;
use crate::queue::{Round, Wanted};

/// The time after which a running guest yields and its CPU budget is checked.
const TICK: Duration = Duration::from_millis(1);

/// The least number of memories in the pool. A memory that is free stays as its last plugin had it,
/// so the next call of that plugin maps no pages. With as many memories as plugins in turn, a call
/// takes two thirds of the time. A free memory holds at most `keep_resident_bytes`, and all of them
/// together `retained_bytes`.
const MEMORIES_MIN: u32 = 1024;

/// The smallest page of the processors that this host runs on.
const PAGE_BYTES: usize = 4096;

/// The handles that a call lends to its guest: context and request.
const LENT_HANDLES: usize = 2;

/// The interval at which idle guests are checked.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(250);

/// The interval at which the host is checked for swap that was turned on after the start.
const TICKS_BETWEEN_LOOKS_AT_SWAP: u64 = 5_000;

/// The instances of all plugins at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instances {
    /// Those in a call.
    pub busy: usize,
    /// Those that wait for the second call of their request.
    pub waiting: usize,
    /// Those that are kept for another request.
    pub idle: usize,
    /// The most of each.
    pub max: usize,
}

/// Runs the calls of all plugins.
pub(crate) struct PluginEngine {
    config: SandboxConfig,
    engine: Engine,
    linker: Linker<StoreData>,
    pool: BufferPool,
    permits: Arc<Semaphore>,
    resting: Resting,
    idle: Mutex<Vec<Weak<IdleGuests>>>,
    long_calls: LongCalls,
    ticking: Arc<AtomicBool>,
}

impl PluginEngine {
    /// An engine with its pool, and the thread that ticks its clock.
    ///
    /// # Errors
    /// [`LoadError::Compile`] if wasmtime refuses the configuration, [`LoadError::Cache`] if a
    /// thread cannot be started.
    pub(crate) fn new(config: &SandboxConfig, pool: BufferPool) -> Result<Arc<Self>, LoadError> {
        let engine = Engine::new(&engine_config(config)).map_err(LoadError::Compile)?;
        let mut linker = Linker::new(&engine);
        capability::link(&mut linker).map_err(LoadError::Compile)?;
        let ticking = Arc::new(AtomicBool::new(true));
        tick(&engine, ticking.clone())?;
        let permits = Arc::new(Semaphore::new(config.concurrent_calls as usize));
        let resting = Resting::new(config.concurrent_calls as usize);
        let (config, long_calls, idle) = (config.clone(), LongCalls::new()?, Mutex::default());
        let plugin_engine =
            Self { config, engine, linker, pool, permits, resting, idle, long_calls, ticking };
        let plugin_engine = Arc::new(plugin_engine);
        plugin_engine.long_calls.handle().spawn(drop_expired(Arc::downgrade(&plugin_engine)));
        Ok(plugin_engine)
    }

    /// The idle guests of a plugin in a pipeline whose calls count against `account`.
    pub(crate) fn idle_guests(&self, reuse: &TenantReuse, account: &Account) -> Arc<IdleGuests> {
        let (resting, long) = (self.resting.clone(), self.long_calls.handle().clone());
        let guests = IdleGuests::new(reuse.clone(), account.clone(), resting, long);
        let guests = Arc::new(guests);
        account.add_idle(Arc::<IdleGuests>::downgrade(&guests));
        self.idle.lock().push(Arc::downgrade(&guests));
        guests
    }

    /// The instances now.
    pub(crate) fn instances(&self) -> Instances {
        let max = self.config.concurrent_calls as usize;
        let taken = |permits: &Semaphore| max.saturating_sub(permits.available_permits());
        let Resting { waiting, idle, .. } = &self.resting;
        Instances { busy: taken(&self.permits), waiting: taken(waiting), idle: taken(idle), max }
    }

    /// The bytes that free memories, tables and stacks keep for later instances.
    pub(crate) fn retained_bytes(&self) -> usize {
        let Some(metrics) = self.engine.pooling_allocator_metrics() else { return 0 };
        let stacks = metrics.unused_stack_bytes_resident().unwrap_or_default();
        metrics.unused_memory_bytes_resident() + metrics.unused_table_bytes_resident() + stacks
    }

    pub(crate) fn config(&self) -> &SandboxConfig {
        &self.config
    }

    /// wasmtime's engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn linker(&self) -> &Linker<StoreData> {
        &self.linker
    }

    /// Wait for the permits of a call of `account`, and for one of its guest if it rests.
    pub(crate) async fn permits(
        &self,
        account: &Account,
        wanted: Wanted,
        export: &Round,
    ) -> Result<(CallPermits, Option<RestPermit>), CallError> {
        account.permits(wanted, export, &self.permits, &self.resting).await
    }

    /// The permits of a call that begins, which gives them back while it waits for models.
    pub(crate) fn pausable(
        &self,
        account: &Account,
        export: &Round,
        held: (CallPermits, RestPermit),
    ) -> Arc<PausablePermits> {
        PausablePermits::new(account, (&self.permits, &self.resting), export, held)
    }

    /// The threads that run long calls.
    pub(crate) fn long_calls(&self) -> &LongCalls {
        &self.long_calls
    }

    /// Prepare a guest that stayed for its next call. If its owner has too little memory left, idle
    /// guests make room; none if they do not.
    pub(crate) fn renew(
        &self,
        mut guest: Guest,
        grant: &Grant<'_>,
        meter: Arc<Meter>,
    ) -> Option<Guest> {
        while guest.store.data_mut().renew(grant, meter.clone()).is_err() {
            if !grant.account.drop_oldest_idle() {
                self.long_calls.handle().spawn(async move { drop(guest) });
                return None;
            }
        }
        if guest.wants_faults() {
            guest.store.data().meter.count_faults();
        }
        guest.store.set_hostcall_fuel(grant.limits.hostcall_bytes);
        guest.store.set_epoch_deadline(1);
        Some(guest)
    }

    /// Begin the call of a guest. If its owner has too little memory left for what the call may
    /// pass, idle guests make room.
    ///
    /// # Errors
    /// [`OverBudget`] if they do not.
    pub(crate) fn begin(&self, guest: Guest, account: &Account) -> Result<Guest, OverBudget> {
        while let Err(over) = guest.store.data().begin() {
            if !account.drop_oldest_idle() {
                self.long_calls.handle().spawn(async move { drop(guest) });
                return Err(over);
            }
        }
        Ok(guest)
    }

    /// A store for one call, with its limits and its deadline set. With `takes_turns`, the call
    /// takes turns before each host function.
    pub(crate) fn store(
        &self,
        grant: Grant<'_>,
        meter: Arc<Meter>,
        takes_turns: bool,
    ) -> Store<StoreData> {
        let limits = grant.limits;
        let state = CallState::new(grant, meter, self.pool.clone(), States::grant(&grant));
        let mut store = Store::new(&self.engine, state);
        store.limiter_async(|state| &mut state.limiter);
        store.set_hostcall_fuel(limits.hostcall_bytes);
        // Besides the handles of the call's table, the guest has those of its context and its
        // request.
        store.set_max_component_handles(limits.handles.saturating_add(LENT_HANDLES));
        store.epoch_deadline_callback(|store| {
            if store.data().meter.is_exhausted() {
                return Err(CpuExhausted.into());
            }
            Ok(UpdateDeadline::Yield(1))
        });
        store.set_epoch_deadline(1);
        if takes_turns {
            store.call_hook_async(TakesTurns);
        }
        store
    }
}

/// Takes turns with other calls before each host function. Our own functions do so themselves;
/// those of WASI do not, and a guest that calls them without a loop would not yield otherwise.
struct TakesTurns;

#[async_trait]
impl CallHookHandler<StoreData> for TakesTurns {
    async fn handle_call_event(
        &self,
        store: StoreContextMut<'_, StoreData>,
        event: CallHook,
    ) -> wasmtime::Result<()> {
        if matches!(event, CallHook::CallingHost) {
            store.data().meter.clone().take_turns().await?;
        }
        Ok(())
    }
}

/// Drop guests that are idle for too long, until the engine is dropped.
async fn drop_expired(engine: Weak<PluginEngine>) {
    loop {
        tokio::time::sleep(EXPIRY_INTERVAL).await;
        let Some(engine) = engine.upgrade() else { return };
        let owners_guests: Vec<_> = {
            let mut idle = engine.idle.lock();
            idle.retain(|guests| guests.strong_count() > 0);
            idle.iter().filter_map(Weak::upgrade).collect()
        };
        owners_guests.iter().for_each(|guests| guests.drop_expired());
    }
}

impl Drop for PluginEngine {
    fn drop(&mut self) {
        self.ticking.store(false, Ordering::Relaxed);
    }
}

fn engine_config(sandbox: &SandboxConfig) -> Config {
    // Guests that run, that wait for a model, and that are idle (`Resting`).
    let calls = sandbox.concurrent_calls.saturating_mul(3);
    let memories = calls.saturating_mul(MEMORIES_PER_CALL).max(MEMORIES_MIN);
    let share = sandbox.retained_bytes / memories as usize;
    let keep_resident = sandbox.keep_resident_bytes.min(share) & !(PAGE_BYTES - 1);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(sandbox.instances_max))
        .total_memories(memories)
        .total_tables(calls.saturating_mul(TABLES_PER_CALL))
        .total_stacks(calls)
        .max_core_instances_per_component(sandbox.instances_max)
        .max_memories_per_component(MEMORIES_PER_CALL)
        .max_tables_per_component(TABLES_PER_CALL)
        .max_component_instance_size(1 << 20)
        .max_core_instance_size(1 << 20)
        .max_memory_size(sandbox.memory_bytes_max)
        .table_elements(sandbox.table_elements_max)
        .linear_memory_keep_resident(keep_resident)
        .table_keep_resident(64 << 10)
        .max_unused_warm_slots(memories);
    // This halves the time of a fresh call. But in wasmtime 48 a dirty page that was swapped out
    // can reach the next instance. So it is used only if nothing can be swapped out.
    if host_has_no_swap() {
        pool.pagemap_scan(Enabled::Auto);
    }
    let mut config = compile_config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

fn host_has_no_swap() -> bool {
    // The first line is a header; each further line is a swap area.
    std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() <= 1)
}

/// Tick until the engine is dropped. The thread holds the engine only weakly.
fn tick(engine: &Engine, ticking: Arc<AtomicBool>) -> Result<(), std::io::Error> {
    let engine = engine.weak();
    let mut swap_is_news = host_has_no_swap();
    let run = move || {
        Share::Serving.take("the clock of plugin calls");
        for ticks in 1_u64.. {
            std::thread::sleep(TICK);
            let Some(engine) = engine.upgrade().filter(|_| ticking.load(Ordering::Relaxed)) else {
                return;
            };
            engine.increment_epoch();
            if swap_is_news && ticks.is_multiple_of(TICKS_BETWEEN_LOOKS_AT_SWAP) {
                swap_is_news = host_has_no_swap();
                if !swap_is_news {
                    tracing::error!(
                        "swap was turned on: one plugin call could see memory of another; \
                         turn it off, or restart the server, which then does without pagemap_scan"
                    );
                }
            }
        }
    };
    std::thread::Builder::new().name("epoch-ticker".into()).spawn(run).map(drop)
}

#[cfg(test)]
mod tests;
