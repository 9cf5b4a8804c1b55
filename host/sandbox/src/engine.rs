//! The engine: one for the process, with its pool of instances and its clock.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use gristmill_child::JobStatus;
use gristmill_core::{BufferPool, Digest, ErrorCode, PluginLimits};
use tokio::sync::Semaphore;
use wasmtime::component::Linker;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    UpdateDeadline,
};

use crate::account::{Account, Places};
use crate::admit::{Bounds, check_head};
use crate::artifact::{ArtifactCache, Cached};
use crate::call::CallState;
use crate::compile::{CompileRequest, Compiler};
use crate::long_calls::LongCalls;
use crate::meter::{CpuExhausted, Meter};
use crate::plugin::{Grant, Plugin};
use crate::{CallError, LoadError, capability};

/// How often a running guest yields and its CPU budget is looked at.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// How often the host is looked at for swap that was turned on after the start.
const TICKS_BETWEEN_LOOKS_AT_SWAP: u64 = 5_000;

/// Memories that an instance of a plugin may have. Not a setting, as tables are not: each reserves address space in
/// every place of the pool, and toolchains make one.
const MEMORIES_PER_CALL: u32 = 2;

/// Tables that an instance of a plugin may have.
const TABLES_PER_CALL: u32 = 8;

/// The size of the pool.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// Calls running at the same time; further ones wait.
    pub concurrent_calls: u32,
    /// The largest linear memory of any plugin.
    pub memory_bytes_max: usize,
    /// The largest table of any plugin.
    pub table_elements_max: usize,
    /// How much of a memory is reset by writing instead of by giving its pages back; at least a
    /// guest's initial memory, or each call pays for page faults.
    pub keep_resident_bytes: usize,
    /// The most core modules that an instance of a plugin may have.
    pub instances_max: u32,
    /// Where compiled code is cached.
    pub cache_directory: PathBuf,
    /// Where plugins are compiled.
    pub compiler: Compiler,
}

impl SandboxConfig {
    /// The defaults, caching under `cache_directory`.
    pub fn new(cache_directory: PathBuf) -> Self {
        let limits = PluginLimits::default();
        Self {
            concurrent_calls: 256,
            memory_bytes_max: limits.memory_bytes,
            table_elements_max: limits.table_elements,
            keep_resident_bytes: 512 << 10,
            instances_max: limits.instances as u32,
            cache_directory,
            compiler: Compiler::InProcess,
        }
    }

    /// What an instance of a plugin may have, where nothing else is configured.
    pub(crate) fn default_bounds() -> Bounds {
        Self::new(PathBuf::new()).bounds()
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            instances: self.instances_max.into(),
            memories: MEMORIES_PER_CALL.into(),
            tables: TABLES_PER_CALL.into(),
        }
    }
}

/// Loads and calls plugins.
pub struct Sandbox {
    config: SandboxConfig,
    engine: Engine,
    linker: Linker<CallState>,
    cache: ArtifactCache,
    pool: BufferPool,
    permits: Arc<Semaphore>,
    long_calls: LongCalls,
    ticking: Arc<AtomicBool>,
}

impl Sandbox {
    /// An engine with its pool, and the thread that ticks its clock.
    pub fn new(config: &SandboxConfig, pool: BufferPool) -> Result<Arc<Self>, LoadError> {
        let compile = |error: wasmtime::Error| LoadError::Compile(format!("{error:#}"));
        let engine = Engine::new(&engine_config(config)).map_err(compile)?;
        let mut linker = Linker::new(&engine);
        capability::link(&mut linker).map_err(compile)?;
        let cache = ArtifactCache::open(&config.cache_directory, &engine)?;
        let ticking = Arc::new(AtomicBool::new(true));
        tick(&engine, ticking.clone())?;
        let permits = Arc::new(Semaphore::new(config.concurrent_calls as usize));
        let (config, long_calls) = (config.clone(), LongCalls::new()?);
        Ok(Arc::new(Self { config, engine, linker, cache, pool, permits, long_calls, ticking }))
    }

    /// Load an uploaded file: from the cache, else admitted and compiled; then checked against the
    /// contract.
    pub async fn load(self: &Arc<Self>, digest: Digest, file: Bytes) -> Result<Plugin, LoadError> {
        let loaded = self.cached_or_compiled(digest, file).await;
        if let Err(error) = &loaded
            && error.code() == ErrorCode::Internal
        {
            tracing::error!(%digest, error = error.in_full(), "a plugin cannot be compiled");
        }
        loaded
    }

    async fn cached_or_compiled(
        self: &Arc<Self>,
        digest: Digest,
        file: Bytes,
    ) -> Result<Plugin, LoadError> {
        check_head(&file)?;
        let (engine, bounds) = (self.cache.engine().to_owned(), self.config.bounds());
        let request = CompileRequest { digest, engine, bounds };
        let sandbox = self.clone();
        let found = blocking(move || match sandbox.cache.get(&sandbox.engine, &request) {
            Some(cached) => Ok((Some(sandbox.plugin(cached)), None)),
            None => Ok((None, Some((sandbox.cache.aside()?, request)))),
        });
        let (aside, request) = match found.await? {
            (Some(plugin), _) => return plugin,
            (None, Some(missing)) => missing,
            (None, None) => return Err(LoadError::Cache(std::io::ErrorKind::NotFound.into())),
        };
        let answer = aside.as_file().try_clone()?;
        self.config.compiler.run(request.clone(), file, answer).await?;
        let sandbox = self.clone();
        blocking(move || {
            let cached = sandbox.cache.keep(&sandbox.engine, &request, aside)?;
            sandbox.plugin(cached)
        })
        .await
    }

    fn plugin(self: &Arc<Self>, cached: Cached) -> Result<Plugin, LoadError> {
        let Cached { component, about } = cached;
        Plugin::load(self.clone(), component, about.roles(), about.imports)
    }

    /// Remove the compiled code of all other plugins from the disk. Those that run run on.
    pub async fn retain_compiled(self: &Arc<Self>, keep: HashSet<Digest>) -> Result<(), LoadError> {
        let sandbox = self.clone();
        blocking(move || Ok(sandbox.cache.retain(&keep)?)).await
    }

    /// The plugins that are being compiled or wait for it.
    pub fn jobs(&self) -> Vec<JobStatus> {
        match &self.config.compiler {
            Compiler::Child { runner, .. } => runner.status(),
            Compiler::InProcess => Vec::new(),
        }
    }

    /// The size of the pool.
    pub fn config(&self) -> &SandboxConfig {
        &self.config
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn linker(&self) -> &Linker<CallState> {
        &self.linker
    }

    /// Wait for a place for a call of `account`.
    pub(crate) async fn places(&self, account: &Account) -> Result<Places, CallError> {
        account.places(&self.permits).await
    }

    /// The threads that run long calls.
    pub(crate) fn long_calls(&self) -> &LongCalls {
        &self.long_calls
    }

    /// A store for one call, its limits and its clock set.
    pub(crate) fn store(&self, grant: Grant<'_>, meter: Arc<Meter>) -> Store<CallState> {
        let limits = grant.limits;
        let state = CallState::new(grant, meter, self.pool.clone());
        let mut store = Store::new(&self.engine, state);
        store.limiter_async(|state| &mut state.limiter);
        store.set_hostcall_fuel(limits.hostcall_bytes);
        store.set_max_component_handles(limits.handles);
        store.epoch_deadline_callback(|store| {
            if store.data().meter.is_exhausted() {
                return Err(CpuExhausted.into());
            }
            Ok(UpdateDeadline::Yield(1))
        });
        store.set_epoch_deadline(1);
        store
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.ticking.store(false, Ordering::Relaxed);
    }
}

fn engine_config(sandbox: &SandboxConfig) -> Config {
    let calls = sandbox.concurrent_calls;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(sandbox.instances_max))
        .total_memories(calls.saturating_mul(MEMORIES_PER_CALL))
        .total_tables(calls.saturating_mul(TABLES_PER_CALL))
        .total_stacks(calls)
        .max_core_instances_per_component(sandbox.instances_max)
        .max_memories_per_component(MEMORIES_PER_CALL)
        .max_tables_per_component(TABLES_PER_CALL)
        .max_component_instance_size(1 << 20)
        .max_core_instance_size(1 << 20)
        .max_memory_size(sandbox.memory_bytes_max)
        .table_elements(sandbox.table_elements_max)
        .linear_memory_keep_resident(sandbox.keep_resident_bytes)
        .table_keep_resident(64 << 10)
        .max_unused_warm_slots(calls);
    // Halves a fresh call, but in wasmtime 48 a page that was swapped out dirty can reach the next
    // instance: only where nothing can be swapped out.
    if host_has_no_swap() {
        pool.pagemap_scan(Enabled::Auto);
    }
    let mut config = compile_config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// All of the configuration that compiled code depends on.
pub(crate) fn compile_config() -> Config {
    let mut config = Config::new();
    config
        .concurrency_support(false)
        .epoch_interruption(true)
        .memory_init_cow(true)
        .wasm_component_model(true)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(16));
    config
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LoadError> + Send + 'static,
) -> Result<T, LoadError> {
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other)?
}

fn host_has_no_swap() -> bool {
    // A header line, then a line for each swap area.
    std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() <= 1)
}

/// Tick until the sandbox is gone. The thread holds the engine only weakly.
fn tick(engine: &Engine, ticking: Arc<AtomicBool>) -> Result<(), std::io::Error> {
    let engine = engine.weak();
    let mut swap_is_news = host_has_no_swap();
    let run = move || {
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
