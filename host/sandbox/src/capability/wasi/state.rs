//! What an instance has of WASI, and what its call may send.

use std::any::Any;
use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::p2::body::{HostFutureTrailers, HostIncomingBody, HostOutgoingBody};
use wasmtime_wasi_http::p2::types::{
    HostFutureIncomingResponse, HostIncomingResponse, HostOutgoingRequest, HostOutgoingResponse,
};
use wasmtime_wasi_http::{FieldMap, WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::hooks::Http;
use super::output::Output;
use super::waits::Waits;
use crate::account::Sleepers;
use crate::call::CallState;
use crate::capability::log::{self, Level};
use crate::grant::{Grant, PerCall};

/// Maximum bytes of one list of headers, as the library counts them.
const FIELDS_BYTES_MAX: usize = 32 << 10;

/// What an instance has of WASI.
pub(crate) struct CapabilityState {
    /// Made at its first use.
    used: Option<Box<Used>>,
    /// The owner's calls that wait.
    sleepers: Arc<Sleepers>,
    http: Http,
}

pub(super) struct Used {
    context: WasiCtx,
    /// WASI's resources. They are apart from the call's table, because an instance may keep them:
    /// a C library keeps its standard output open.
    table: ResourceTable,
    http: WasiHttpCtx,
    outputs: [Output; 2],
}

impl CapabilityState {
    /// Forget the clocks and the random numbers of earlier calls. False if the instance keeps a
    /// resource.
    pub(crate) fn forget(&mut self) -> bool {
        let is_empty = self.used.as_ref().is_none_or(|used| used.table.is_empty());
        if is_empty {
            self.used = None;
        }
        is_empty
    }

    /// What the call may send.
    pub(super) fn outgoing(&mut self) -> &mut Http {
        &mut self.http
    }

    /// Whether the instance keeps requests, answers or headers, which were counted for a call.
    pub(crate) fn keeps_requests(&mut self) -> bool {
        self.used
            .as_mut()
            .is_some_and(|used| used.table.iter_mut().any(|entry| is_of_request(entry)))
    }
}

/// Whether a resource belongs to a request. The streams of bodies are children of such ones.
fn is_of_request(entry: &(dyn Any + Send)) -> bool {
    entry.is::<FieldMap>()
        || entry.is::<HostOutgoingRequest>()
        || entry.is::<HostOutgoingResponse>()
        || entry.is::<HostOutgoingBody>()
        || entry.is::<HostFutureIncomingResponse>()
        || entry.is::<HostIncomingResponse>()
        || entry.is::<HostIncomingBody>()
        || entry.is::<HostFutureTrailers>()
}

impl PerCall for CapabilityState {
    fn grant(grant: &Grant<'_>) -> Self {
        let (sleepers, http) = (grant.account.sleepers.clone(), Http::granted(grant));
        Self { used: None, sleepers, http }
    }

    fn end(&mut self, _: bool) {
        if let Some(used) = &self.used {
            used.outputs.iter().for_each(Output::end_line);
        }
        self.http.end();
    }

    /// Streams and clocks that the instance has opened stay open.
    fn renew(&mut self, grant: &Grant<'_>) {
        self.http = Http::granted(grant);
    }
}

impl<S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send> WasiView for CallState<S> {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let (used, _) = self.used();
        WasiCtxView { ctx: &mut used.context, table: &mut used.table }
    }
}

impl<S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send> CallState<S> {
    /// What the instance has of WASI, and what the call may send.
    pub(super) fn used(&mut self) -> (&mut Used, &mut Http) {
        let used = match AsMut::<CapabilityState>::as_mut(&mut self.states).used.take() {
            Some(used) => used,
            None => {
                let handles = self.limits.handles;
                Box::new(Used::new(
                    AsMut::<log::CapabilityState>::as_mut(&mut self.states),
                    handles,
                ))
            }
        };
        let state = AsMut::<CapabilityState>::as_mut(&mut self.states);
        (state.used.insert(used), &mut state.http)
    }

    /// What the call needs to wait.
    pub(in crate::capability) fn waits(&mut self) -> Waits {
        let permits = self.models.as_ref().map(|models| models.permits.clone());
        let state = AsMut::<CapabilityState>::as_mut(&mut self.states);
        let (sleepers, is_lookup) = (state.sleepers.clone(), state.http.has_sent());
        Waits { sleepers, permits, meter: self.meter.clone(), is_lookup }
    }
}

impl Used {
    fn new(log: &mut log::CapabilityState, handles: usize) -> Self {
        let lines = log.share();
        let outputs = [Output::new(Level::Info, lines.clone()), Output::new(Level::Warn, lines)];
        let [stdout, stderr] = outputs.clone();
        let mut builder = WasiCtxBuilder::new();
        builder.stdout(stdout).stderr(stderr);
        builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        let mut table = ResourceTable::new();
        table.set_max_capacity(handles);
        Self { context: builder.build(), table, http: http_context(), outputs }
    }
}

impl<S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send> WasiHttpView for CallState<S> {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let (used, http) = self.used();
        WasiHttpCtxView { hooks: http, table: &mut used.table, ctx: &mut used.http }
    }
}

/// What the library needs of a new instance.
fn http_context() -> WasiHttpCtx {
    let mut context = WasiHttpCtx::new();
    context.set_field_size_limit(FIELDS_BYTES_MAX);
    context
}
