//! WASI 0.2, by `wasmtime-wasi`, as far as a plugin may have it.
//!
//! | interfaces | what a plugin gets |
//! |---|---|
//! | clocks, io, poll | all; waiting ends at the request's deadline |
//! | random | random bytes of the operating system |
//! | cli | no arguments, no environment, an empty standard input, no terminal |
//! | stdout, stderr | each line is a line of the log |
//! | exit | ends the call |
//! | filesystem | nothing is opened, so nothing can be opened |
//! | sockets | they link; every creation is refused |
//! | http, outgoing | requests to the destinations that the tenant's document grants |
//!
//! What a call needs is made at its first use, so that other plugins pay nothing. Functions of
//! which `wasmtime-wasi` does not bound the work are replaced here. Before each of the others, the
//! call takes turns with other calls (`engine::TakesTurns`).

mod hooks;
mod http;
mod output;
mod permitted;
mod state;
mod streams;
mod waits;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, WasmList, WasmStr};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::io::poll::{Host as _, HostPollable as _};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::ResolveAddressStream;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, Network};

pub(super) use self::permitted::Refused;
pub(crate) use self::state::CapabilityState;
use super::log;
use super::methods::link_instead;
use crate::call::CallState;
use crate::error::CallLimit;
use crate::limiter::Limited;

/// The interfaces that it links.
pub(crate) const INTERFACES: &[&str] = &[
    "wasi:cli/environment@0.2",
    "wasi:cli/exit@0.2",
    "wasi:cli/stdin@0.2",
    "wasi:cli/stdout@0.2",
    "wasi:cli/stderr@0.2",
    "wasi:cli/terminal-input@0.2",
    "wasi:cli/terminal-output@0.2",
    "wasi:cli/terminal-stdin@0.2",
    "wasi:cli/terminal-stdout@0.2",
    "wasi:cli/terminal-stderr@0.2",
    "wasi:clocks/monotonic-clock@0.2",
    "wasi:clocks/wall-clock@0.2",
    "wasi:filesystem/preopens@0.2",
    "wasi:filesystem/types@0.2",
    "wasi:http/outgoing-handler@0.2",
    "wasi:http/types@0.2",
    "wasi:io/error@0.2",
    "wasi:io/poll@0.2",
    "wasi:io/streams@0.2",
    "wasi:random/insecure@0.2",
    "wasi:random/insecure-seed@0.2",
    "wasi:random/random@0.2",
    "wasi:sockets/instance-network@0.2",
    "wasi:sockets/ip-name-lookup@0.2",
    "wasi:sockets/network@0.2",
    "wasi:sockets/tcp@0.2",
    "wasi:sockets/tcp-create-socket@0.2",
    "wasi:sockets/udp@0.2",
    "wasi:sockets/udp-create-socket@0.2",
];

/// The beginnings of those that give a plugin nothing outside of its instance.
const POWERLESS: [&str; 6] =
    ["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/", "wasi:sockets/"];

/// Whether an import gives a plugin nothing outside of its instance, as the table above says.
pub(crate) fn is_powerless(import: &str) -> bool {
    POWERLESS.iter().any(|beginning| import.starts_with(beginning))
}

/// The version of these interfaces, without the third number.
pub(crate) const VERSION: &str = "@0.2";

/// Whether an import is this interface. Of those of WASI 0.2, any third number of the version is.
pub(crate) fn is_named(import: &str, interface: &str) -> bool {
    import.strip_prefix(interface).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('.') && interface.ends_with(VERSION)
    })
}

/// Whether an import is an interface of WASI.
pub(crate) fn is_wasi(import: &str) -> bool {
    import.starts_with("wasi:")
}

/// The names under which `wasmtime-wasi` links the interfaces of which functions are replaced. They
/// have its version of WASI: under another name, the replacements would be an interface beside it.
pub(crate) const POLL: &str = "wasi:io/poll@0.2.12";
const NAMES: &str = "wasi:sockets/ip-name-lookup@0.2.12";
pub(crate) const RANDOM: [(&str, &str); 2] = [
    ("wasi:random/random@0.2.12", "get-random-bytes"),
    ("wasi:random/insecure@0.2.12", "get-insecure-random-bytes"),
];

/// The functions of the same package that need no bound.
pub(crate) const NUMBERS: [(&str, &str); 2] = [
    ("wasi:random/random@0.2.12", "get-random-u64"),
    ("wasi:random/insecure@0.2.12", "get-insecure-random-u64"),
];
pub(crate) const SEED: &str = "wasi:random/insecure-seed@0.2.12";

/// Maximum events that a call waits for at a time.
const POLLED_MAX: usize = 1024;

/// Random bytes that are made between two questions whether to go on.
const RANDOM_BYTES_PER_PART: usize = 64 << 10;

pub(crate) fn link<S>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send + 'static,
{
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    http::link(linker)?;
    link_instead(linker, |linker| {
        link_poll(linker)?;
        streams::link(linker)?;
        http::link_instead(linker)?;
        for (interface, function) in RANDOM {
            linker.instance(interface)?.func_wrap_async(
                function,
                |mut store: StoreContextMut<'_, CallState<S>>, (len,): (u64,)| {
                    Box::new(async move { Ok((store.data_mut().random_bytes(len).await?,)) })
                },
            )?;
        }
        link_resolve(linker)
    })
}

/// Link the function that looks up names. It refuses every name before it is copied.
fn link_resolve<S>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()>
where
    S: Send + 'static,
{
    type LookUpArguments = (Resource<Network>, WasmStr);
    linker.instance(NAMES)?.func_wrap(
        "resolve-addresses",
        |_: StoreContextMut<'_, CallState<S>>, _: LookUpArguments| {
            let refused: Result<Resource<ResolveAddressStream>, _> =
                Err(ErrorCode::PermanentResolverFailure);
            Ok((refused,))
        },
    )
}

/// Link the functions that wait for events.
fn link_poll<S>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send + 'static,
{
    type Polled = (WasmList<Resource<DynPollable>>,);
    let mut poll = linker.instance(POLL)?;
    poll.func_wrap_async(
        "poll",
        |mut store: StoreContextMut<'_, CallState<S>>, (pollables,): Polled| {
            Box::new(async move {
                if pollables.len() > POLLED_MAX {
                    let events = pollables.len();
                    return Err(
                        Limited::Call(CallLimit::Polled { limit: POLLED_MAX, events }).into()
                    );
                }
                let pollables = (0..pollables.len()).filter_map(|at| pollables.get(&mut store, at));
                let pollables = pollables.collect::<wasmtime::Result<Vec<_>>>()?;
                let state = store.data_mut();
                state.meter.take_turns().await?;
                let waits = state.waits();
                let table = state.ctx().table;
                Ok((waits.until(table.poll(pollables)).await??,))
            })
        },
    )?;
    poll.func_wrap_async(
        "[method]pollable.block",
        |mut store: StoreContextMut<'_, CallState<S>>, (pollable,): (Resource<DynPollable>,)| {
            Box::new(async move {
                let state = store.data_mut();
                state.meter.take_turns().await?;
                let waits = state.waits();
                let table = state.ctx().table;
                waits.until(table.block(pollable)).await?
            })
        },
    )
}

impl<S> CallState<S> {
    async fn random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.before_copying(len).await?;
        let mut bytes = vec![0; len];
        for part in bytes.chunks_mut(RANDOM_BYTES_PER_PART) {
            getrandom::fill(part)?;
            self.may_go_on()?;
        }
        Ok(bytes)
    }
}
