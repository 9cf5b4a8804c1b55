//! Running a plugin's `init`, and making a component of which every instance begins with the memory
//! that `init` left.
//!
//! This happens once, in the child that compiles the plugin. `init` can write to the log, and every
//! other import traps: it has no clock, no random numbers and no resources. So the snapshot depends
//! on the file alone. Refuses to know how code is compiled and kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gristmill_core::PluginLimits;
use rustix::time::{ClockId, clock_gettime};
use wasmtime::component::{Component, Instance, Lift, Linker, WasmList};
use wasmtime::{Engine, Store, StoreLimits, StoreLimitsBuilder};
use wasmtime_wizer::{ComponentInstanceState, Wizer};

use crate::capability::log::{self, Level, link_lines};
use crate::capability::v0_2;
use crate::limiter::{MEMORIES_PER_CALL, TABLES_PER_CALL};

/// The name of the export.
pub(crate) const EXPORT: &str = "init";

/// The CPU time that `init` may take.
pub(crate) const CPU_MAX: Duration = Duration::from_secs(10);

/// The interval at which its time is checked.
const TICK: Duration = Duration::from_millis(20);

/// The last log lines of `init`, which an error shows, and the length of each.
const LINES_MAX: usize = 20;
const LINE_BYTES_MAX: usize = 1 << 10;

/// Why a plugin cannot begin with the memory that `init` leaves.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InitError {
    /// The component cannot be prepared for a snapshot.
    #[error("its memory cannot be saved after `init`: {0:#}")]
    Unsupported(wasmtime::Error),
    /// The instance cannot be made, or `init` trapped.
    #[error("`init` failed: {0}{1}")]
    Trapped(String, Lines),
    /// `init` returned an error.
    #[error("`init` failed: {0}{1}")]
    Failed(String, Lines),
    /// `init` took too long.
    #[error("`init` took more than {} s of CPU time{lines}", CPU_MAX.as_secs())]
    TooLong {
        /// What it logged until then.
        lines: Lines,
    },
    /// The runtime for it cannot be made.
    #[error(transparent)]
    Host(#[from] std::io::Error),
}

/// The last lines that `init` wrote.
#[derive(Debug, Default)]
pub(crate) struct Lines(VecDeque<String>);

impl std::fmt::Display for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|line| write!(f, "; it logged: {line}"))
    }
}

/// The data of the store in which `init` runs.
struct InitState {
    limits: StoreLimits,
    lines: Lines,
}

/// Run `init` of `component`, and return the component that begins after it.
pub(crate) fn after_init(engine: &Engine, component: &[u8]) -> Result<Vec<u8>, InitError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(run(engine, component))
}

async fn run(engine: &Engine, component: &[u8]) -> Result<Vec<u8>, InitError> {
    let wizer = Wizer::new();
    let (context, instrumented) =
        wizer.instrument_component(component).map_err(InitError::Unsupported)?;
    let instrumented = Component::new(engine, &instrumented).map_err(InitError::Unsupported)?;
    let mut linker = Linker::new(engine);
    let interfaces = [log::INTERFACE, v0_2::LOG];
    let linked = link_lines(&mut linker, &interfaces, |state: &mut InitState, level, message| {
        state.lines.push(level, message);
    });
    linked
        .and_then(|()| linker.define_unknown_imports_as_traps(&instrumented))
        .map_err(InitError::Unsupported)?;
    let limits = limits().trap_on_grow_failure(true).build();
    let mut store = Store::new(engine, InitState { limits, lines: Lines::default() });
    store.limiter(|state| &mut state.limits);
    store.set_epoch_deadline(1);
    let clock = Clock::start(engine)?;
    let called = call(&linker, &mut store, &instrumented).await;
    let is_over = clock.stop();
    let instance = match called {
        Ok((instance, Ok(()))) => instance,
        Ok((_, Err(text))) => return Err(InitError::Failed(text, store.into_data().lines)),
        Err(_) if is_over => return Err(InitError::TooLong { lines: store.into_data().lines }),
        Err(error) => {
            let text = format!("{}", error.root_cause());
            return Err(InitError::Trapped(text, store.into_data().lines));
        }
    };
    // The functions that read the memory were added by the tool. They need no time worth counting.
    store.set_epoch_deadline(u64::MAX / 2);
    let mut state = Snapshot { store: &mut store, instance, failed: None };
    let component = wizer.snapshot_component(&context, &mut state).await;
    match state.failed {
        None => component.map_err(InitError::Unsupported),
        Some(error) => Err(InitError::Unsupported(error)),
    }
}

/// The limits of an instance that is made at an upload.
pub(crate) fn limits() -> StoreLimitsBuilder {
    let most = PluginLimits::default();
    StoreLimitsBuilder::new()
        .memory_size(most.memory_bytes)
        .memories(MEMORIES_PER_CALL as usize)
        .table_elements(most.table_elements)
        .tables(TABLES_PER_CALL as usize)
        .instances(most.instances)
}

type Returned = Result<(), String>;

async fn call(
    linker: &Linker<InitState>,
    store: &mut Store<InitState>,
    component: &Component,
) -> wasmtime::Result<(Instance, Returned)> {
    let instance = linker.instantiate_async(&mut *store, component).await?;
    let init = instance.get_typed_func::<(), (Returned,)>(&mut *store, EXPORT)?;
    let (returned,) = init.call_async(&mut *store, ()).await?;
    Ok((instance, returned))
}

impl Lines {
    pub(crate) fn push(&mut self, level: Level, message: &str) {
        if self.0.len() == LINES_MAX {
            self.0.pop_front();
        }
        let message = &message[..message.floor_char_boundary(LINE_BYTES_MAX)];
        let level = match level {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        self.0.push_back(format!("{level}: {message:?}"));
    }
}

/// Ends the guest by the engine's epoch when this process has used up the time.
pub(crate) struct Clock {
    stopped: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Clock {
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let timer = Self { stopped: Arc::default(), over: Arc::default() };
        let (engine, stopped, over) = (engine.clone(), timer.stopped.clone(), timer.over.clone());
        let begun = cpu_time();
        let watch = move || {
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(TICK);
                if cpu_time().saturating_sub(begun) > CPU_MAX {
                    over.store(true, Ordering::Relaxed);
                    engine.increment_epoch();
                    return;
                }
            }
        };
        std::thread::Builder::new().name("init-clock".into()).spawn(watch)?;
        Ok(timer)
    }

    /// Whether the time was over.
    pub(crate) fn stop(self) -> bool {
        self.stopped.store(true, Ordering::Relaxed);
        self.over.load(Ordering::Relaxed)
    }
}

/// The CPU time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Reads the state of the instance through functions that the tool has added. It asks for functions
/// that it made itself, so an error is one of the tool.
struct Snapshot<'a> {
    store: &'a mut Store<InitState>,
    instance: Instance,
    failed: Option<wasmtime::Error>,
}

impl Snapshot<'_> {
    async fn value<R: Lift + Send + Sync + 'static>(
        &mut self,
        instance: &str,
        function: &str,
    ) -> wasmtime::Result<R> {
        let missing = || wasmtime::Error::msg(format!("{instance} has no {function}"));
        let of = self.instance.get_export_index(&mut *self.store, None, instance);
        let of = of.ok_or_else(missing)?;
        let index = self.instance.get_export_index(&mut *self.store, Some(&of), function);
        let index = index.ok_or_else(missing)?;
        let function = self.instance.get_typed_func::<(), (R,)>(&mut *self.store, index)?;
        Ok(function.call_async(&mut *self.store, ()).await?.0)
    }

    async fn number<R>(&mut self, instance: &str, function: &str) -> R
    where
        R: Lift + Send + Sync + Default + 'static,
    {
        match self.value(instance, function).await {
            Ok(value) => value,
            Err(error) => {
                self.failed.get_or_insert(error);
                R::default()
            }
        }
    }
}

impl ComponentInstanceState for Snapshot<'_> {
    async fn call_func_ret_list_u8(
        &mut self,
        instance: &str,
        function: &str,
        contents: impl FnOnce(&[u8]) + Send,
    ) {
        match self.value::<WasmList<u8>>(instance, function).await {
            Ok(list) => contents(list.as_le_slice(&*self.store)),
            Err(error) => {
                self.failed.get_or_insert(error);
            }
        }
    }

    async fn call_func_ret_s32(&mut self, instance: &str, function: &str) -> i32 {
        self.number(instance, function).await
    }

    async fn call_func_ret_s64(&mut self, instance: &str, function: &str) -> i64 {
        self.number(instance, function).await
    }

    async fn call_func_ret_f32(&mut self, instance: &str, function: &str) -> u32 {
        self.number::<f32>(instance, function).await.to_bits()
    }

    async fn call_func_ret_f64(&mut self, instance: &str, function: &str) -> u64 {
        self.number::<f64>(instance, function).await.to_bits()
    }
}
