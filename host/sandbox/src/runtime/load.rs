//! Loading sources into a runtime, and the component that begins with the memory which this left.

use std::collections::BTreeMap;
use std::io;

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, Instance, Linker, Resource, ResourceTable, ResourceType, WasmList, WasmStr,
};
use wasmtime::{Engine, Module, Store, StoreContextMut};
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::{
    HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView,
};

use super::archive::Archive;
use super::file::RuntimeFile;
use super::image::Image;
use super::parts::{CODE, MEMORY_PAIR, Parts, READ_MEMORY};
use super::stopped::{Functions, Limiter};
use crate::capability::log::{self, Level, link_lines};
use crate::capability::methods::link_instead;
use crate::capability::wasi::{NUMBERS, POLL, RANDOM, SEED};
use crate::init::{Clock, Lines, limits};
use crate::worlds::Roles;

/// The interface of what a runtime asks for while it loads sources.
pub(crate) const LOADING: &str = "gristmill:runtime/loading@0.1.0";
pub(super) const READ_FILE: &str = "read-file";

/// The interface by which the runtime for Python tells its objects.
pub(super) const OBJECTS: &str = "gristmill:runtime/objects@0.1.0";
pub(super) const KEEP_OBJECTS: &str = "keep-objects";

/// The most objects whose addresses a runtime may tell.
const OBJECTS_MAX: usize = 8 << 20;

/// The beginning of the names of the contract's interfaces.
const CONTRACT: &str = "gristmill:plugin/";

/// The export that loads sources.
const LOAD: &str = "load";

/// The part of the paths that the runtime looks up in the standard library.
const LIBRARY: &str = "@library/";

/// The bytes of the address and the length of a list.
const PAIR_BYTES: usize = 8;

/// The random bytes that are given at a time.
const RANDOM_BYTES_MAX: usize = 64 << 10;

/// Why sources cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadSourcesError {
    /// The sources' own fault: an exception, or no class that is exported.
    #[error("{0}{1}")]
    Failed(String, Lines),
    /// It trapped.
    #[error("loading the sources failed: {0}{1}{2}")]
    Trapped(String, Functions, Lines),
    /// It took too long.
    #[error(
        "loading the sources took more than {} s of CPU time{functions}{lines}",
        crate::init::CPU_MAX.as_secs()
    )]
    TooLong {
        /// Where it was.
        functions: Functions,
        /// What it logged until then.
        lines: Lines,
    },
    /// The runtime's fault.
    #[error("the runtime cannot load sources: {0:#}")]
    Runtime(wasmtime::Error),
    /// This host's fault.
    #[error(transparent)]
    Host(#[from] io::Error),
}

/// The component that a loaded plugin is.
pub(crate) struct Loaded {
    pub(crate) component: Vec<u8>,
    pub(crate) roles: Roles,
    /// The memory that an instance begins with.
    pub(crate) memory_bytes: u64,
    pub(crate) image: Image,
}

/// The data of the store in which sources are loaded.
struct LoadState {
    limiter: Limiter,
    lines: Lines,
    files: BTreeMap<String, Vec<u8>>,
    /// The addresses of objects that exist as long as the memory.
    objects: Vec<u32>,
    library: BTreeMap<String, Vec<u8>>,
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for LoadState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Load `sources` into the runtime whose code is `code`.
pub(crate) fn load(
    engine: &Engine,
    runtime: RuntimeFile,
    code: &Module,
    sources: Archive,
) -> Result<Loaded, LoadSourcesError> {
    let tokio = tokio::runtime::Builder::new_current_thread().build()?;
    tokio.block_on(run(engine, runtime, code, sources))
}

async fn run(
    engine: &Engine,
    runtime: RuntimeFile,
    code: &Module,
    sources: Archive,
) -> Result<Loaded, LoadSourcesError> {
    let RuntimeFile { component: runtime, library } = runtime;
    let parts = Parts::of(&runtime)?;
    let component = parts.around(&parts.image)?;
    let component = Component::new(engine, &component).map_err(LoadSourcesError::Runtime)?;
    let mut linker = linker(engine, code).map_err(LoadSourcesError::Runtime)?;
    link_traps(&mut linker, &component).map_err(LoadSourcesError::Runtime)?;
    // A failed growth is no trap, so that the interpreter raises its own error, with the line.
    let limits = limits().trap_on_grow_failure(false).build();
    let mut wasi = WasiCtxBuilder::new();
    wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    wasi.wall_clock(Still).monotonic_clock(Still);
    let Archive { manifest, files } = sources;
    let state = LoadState {
        limiter: Limiter::new(limits),
        lines: Lines::default(),
        files,
        objects: Vec::new(),
        library,
        wasi: wasi.build(),
        table: ResourceTable::new(),
    };
    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_epoch_deadline(1);
    let clock = Clock::start(engine)?;
    let called = call(&linker, &mut store, &component, &manifest.app).await;
    let is_over = clock.stop();
    let (instance, exported) = match called {
        Ok((instance, Ok(exported))) => (instance, exported),
        Ok((_, Err(text))) => return Err(LoadSourcesError::Failed(text, store.into_data().lines)),
        Err(error) => {
            let functions = Functions::of(&store, &store.data().limiter);
            let lines = store.into_data().lines;
            if is_over {
                return Err(LoadSourcesError::TooLong { functions, lines });
            }
            let text = format!("{}", error.root_cause());
            return Err(LoadSourcesError::Trapped(text, functions, lines));
        }
    };
    let roles = Roles::of_exports(&exported).ok_or_else(|| {
        LoadSourcesError::Failed("the sources export no plugin".into(), Lines::default())
    })?;
    if !store.data().table.is_empty() {
        let why = "it keeps a handle of WASI open, such as that of standard output or of a timer: \
                   a call has others";
        return Err(LoadSourcesError::Failed(why.into(), store.into_data().lines));
    }
    // The function that reads the memory was added here.
    store.set_epoch_deadline(u64::MAX / 2);
    let list = read_memory(&mut store, instance).await.map_err(LoadSourcesError::Runtime)?;
    let mut image = Image { bytes: list.as_le_slice(&store).to_vec() };
    // What that function wrote is not the plugin's.
    let pair = MEMORY_PAIR as usize;
    if let Some(answer) = image.bytes.get_mut(pair..pair + PAIR_BYTES) {
        answer.fill(0);
    }
    image.keep_objects(&store.data().objects);
    let memory_bytes = image.bytes.len() as u64;
    let component = parts.around(&image)?;
    Ok(Loaded { component, roles, memory_bytes, image })
}

type Exported = Result<Vec<String>, String>;

async fn call(
    linker: &Linker<LoadState>,
    store: &mut Store<LoadState>,
    component: &Component,
    app: &str,
) -> wasmtime::Result<(Instance, Exported)> {
    let instance = linker.instantiate_async(&mut *store, component).await?;
    let list = read_memory(store, instance).await?;
    let memory = list.as_le_slice(&*store);
    let (address, bytes) = (memory.as_ptr().expose_provenance(), memory.len());
    store.data_mut().limiter.knows_memory(address, bytes);
    let load = instance.get_typed_func::<(&str,), (Exported,)>(&mut *store, LOAD)?;
    let (exported,) = load.call_async(&mut *store, (app,)).await?;
    Ok((instance, exported))
}

async fn read_memory(
    store: &mut Store<LoadState>,
    instance: Instance,
) -> wasmtime::Result<WasmList<u8>> {
    let read = instance.get_typed_func::<(), (WasmList<u8>,)>(&mut *store, READ_MEMORY)?;
    let (list,) = read.call_async(&mut *store, ()).await?;
    Ok(list)
}

fn linker(engine: &Engine, code: &Module) -> wasmtime::Result<Linker<LoadState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    link_instead(&mut linker, |linker| {
        link_random(linker)?;
        link_numbers(linker)?;
        link_poll(linker)
    })?;
    linker.root().module(CODE, code)?;
    link_lines(&mut linker, &[log::INTERFACE], |state: &mut LoadState, level: Level, message| {
        state.lines.push(level, message);
    })?;
    linker.instance(OBJECTS)?.func_wrap(
        KEEP_OBJECTS,
        |mut store: StoreContextMut<'_, LoadState>, (addresses,): (WasmList<u8>,)| {
            let addresses = addresses.as_le_slice(&store).chunks_exact(4);
            let addresses: Vec<_> = addresses
                .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
                .collect();
            let objects = &mut store.data_mut().objects;
            if objects.len() + addresses.len() > OBJECTS_MAX {
                return Err(wasmtime::Error::msg("it has too many objects"));
            }
            objects.extend(addresses);
            Ok(())
        },
    )?;
    linker.instance(LOADING)?.func_wrap(
        READ_FILE,
        |store: StoreContextMut<'_, LoadState>, (path,): (WasmStr,)| {
            let path = path.to_str(&store)?;
            let state = store.data();
            if path.ends_with('/') {
                let folder = path.trim_start_matches('/');
                let files = state.files.iter().filter(|(name, _)| name.starts_with(folder));
                let lines = files.map(|(name, file)| format!("{} {name}\n", file.len()));
                let list = lines.collect::<String>();
                return Ok(((!list.is_empty()).then(|| list.into_bytes()),));
            }
            let file = match path.strip_prefix(LIBRARY) {
                Some(path) => state.library.get(path),
                None => state.files.get(&*path),
            };
            Ok((file.cloned(),))
        },
    )?;
    Ok(linker)
}

/// Link the contract's functions. Each ends the loading, because there is no request.
fn link_traps(linker: &mut Linker<LoadState>, component: &Component) -> wasmtime::Result<()> {
    let (engine, ty) = (linker.engine().clone(), component.component_type());
    for (interface, item) in ty.imports(&engine) {
        let ComponentItem::ComponentInstance(exports) = item.ty else { continue };
        if !interface.starts_with(CONTRACT) || interface == log::INTERFACE {
            continue;
        }
        let mut instance = linker.instance(interface)?;
        for (name, export) in exports.exports(&engine) {
            match export.ty {
                ComponentItem::ComponentFunc(_) => {
                    let called = format!("{interface}#{name}");
                    instance.func_new(name, move |_, _, _, _| {
                        let why = format!("it calls {called}, which it may not while it is loaded");
                        Err(wasmtime::Error::msg(why))
                    })?;
                }
                ComponentItem::Resource(_) => {
                    instance.resource(name, ResourceType::host::<()>(), |_, _| Ok(()))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The same bytes each time. They are not random, and a plugin that draws random numbers while it
/// is loaded has the same ones in all of its instances.
fn link_random(linker: &mut Linker<LoadState>) -> wasmtime::Result<()> {
    for (interface, function) in RANDOM {
        linker.instance(interface)?.func_wrap(
            function,
            |_: StoreContextMut<'_, LoadState>, (len,): (u64,)| {
                let len = usize::try_from(len).ok().filter(|len| *len <= RANDOM_BYTES_MAX);
                let len = len.ok_or_else(|| wasmtime::Error::msg("it asks for random bytes"))?;
                Ok(((0..len).map(|index| index as u8).collect::<Vec<_>>(),))
            },
        )?;
    }
    Ok(())
}

/// Numbers that are the same each time, as the bytes of [`link_random`].
fn link_numbers(linker: &mut Linker<LoadState>) -> wasmtime::Result<()> {
    for (interface, function) in NUMBERS {
        linker
            .instance(interface)?
            .func_wrap(function, |_: StoreContextMut<'_, LoadState>, (): ()| Ok((1_u64,)))?;
    }
    linker
        .instance(SEED)?
        .func_wrap("insecure-seed", |_: StoreContextMut<'_, LoadState>, (): ()| {
            Ok(((1_u64, 1_u64),))
        })
}

/// Nothing can be waited for.
fn link_poll(linker: &mut Linker<LoadState>) -> wasmtime::Result<()> {
    let refused = || wasmtime::Error::msg("it waits, which it may not while it is loaded");
    let mut poll = linker.instance(POLL)?;
    poll.func_wrap(
        "poll",
        move |_: StoreContextMut<'_, LoadState>, _: (WasmList<Resource<DynPollable>>,)| {
            Err::<(Vec<u32>,), _>(refused())
        },
    )?;
    poll.func_wrap(
        "[method]pollable.block",
        move |_: StoreContextMut<'_, LoadState>, _: (Resource<DynPollable>,)| {
            Err::<(), _>(refused())
        },
    )
}

/// A clock that stands still.
struct Still;

impl HostWallClock for Still {
    fn resolution(&self) -> std::time::Duration {
        std::time::Duration::from_secs(1)
    }

    fn now(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

impl HostMonotonicClock for Still {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}
