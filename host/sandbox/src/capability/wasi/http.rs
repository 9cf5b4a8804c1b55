//! `wasi:http`: requests to the destinations that the tenant's document grants, by
//! `wasmtime-wasi-http`, which has the types, and `hooks`, which sends.
//!
//! The library bounds the size of one list of headers, but not how many lists, paths, bodies and
//! answers a guest keeps. So the functions that make them are replaced here: they count first. A
//! guest is told of a request that is not granted by an error code, which has no text. So the
//! reason is a line of the plugin's log.

use gristmill_core::Scheme;
use http::HeaderMap;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler::Host as _;
use wasmtime_wasi_http::p2::bindings::http::types::{
    self, ErrorCode, HeaderError, Host as _, HostFields, HostOutgoingRequest as _,
};
use wasmtime_wasi_http::p2::types::{
    HostFutureIncomingResponse, HostOutgoingRequest, HostOutgoingResponse,
};
use wasmtime_wasi_http::p2::{HeaderResult, add_only_http_to_linker_async};
use wasmtime_wasi_http::{Error, FieldMap, RequestOptions, WasiHttpCtxView, WasiHttpView};

use super::hooks::{FaultLog, WRITTEN_BYTES_MAX};
use super::permitted::Refused;
use super::state::CapabilityState;
use crate::call::CallState;
use crate::capability::http::target::OutgoingTarget;
use crate::capability::log;
use crate::outgoing::{OUTGOING_BUFFER_BYTES, Sending};

/// The interfaces, under the names that `wasmtime-wasi-http` links.
const TYPES: &str = "wasi:http/types@0.2.12";
const HANDLER: &str = "wasi:http/outgoing-handler@0.2.12";

/// The memory of a header beside its name and its value.
const FIELD_BYTES: usize = 256;

/// The memory of a body that a guest writes: two parts wait until they are sent.
const WRITTEN_BODY_BYTES: usize = 2 * WRITTEN_BYTES_MAX;

pub(super) fn link<S>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send + 'static,
{
    add_only_http_to_linker_async(linker)
}

/// Link a function that counts first. `$bytes` says how much of the call's memory it may take.
macro_rules! link_counting {
    (
        $functions:expr, $state:ident,
        $($name:literal($($param:ident: $ty:ty),*), $bytes:expr => $answer:expr;)*
    ) => {
        $($functions.func_wrap(
            $name,
            |mut store: StoreContextMut<'_, CallState<S>>, ($($param,)*): ($($ty,)*)| {
                let $state = store.data_mut();
                let bytes: usize = $bytes;
                $state.hold(bytes)?;
                Ok(($answer,))
            },
        )?;)*
    };
}

type Fields = Resource<FieldMap>;
type Outgoing = Resource<HostOutgoingRequest>;
type Response = Resource<HostOutgoingResponse>;
type ResponseFuture = Resource<HostFutureIncomingResponse>;
type Failed = Resource<types::IoError>;

/// Replace functions of the library.
pub(super) fn link_instead<S>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send + 'static,
{
    let mut functions = linker.instance(TYPES)?;
    link_counting! {
        functions, state,
        "[static]fields.from-list"(entries: Vec<(String, Vec<u8>)>),
            entries.iter().map(|(name, value)| field_bytes(name, value.len())).sum() => {
                let mut http = state.http();
                let made = HostFields::from_list(&mut http, entries);
                told(&mut http, made)?
            };
        "[method]fields.set"(fields: Fields, name: String, values: Vec<Vec<u8>>),
            values.iter().map(|value| field_bytes(&name, value.len())).sum() => {
                let mut http = state.http();
                let set = HostFields::set(&mut http, fields, name, values);
                told(&mut http, set)?
            };
        "[method]fields.append"(fields: Fields, name: String, value: Vec<u8>),
            field_bytes(&name, value.len()) => {
                let mut http = state.http();
                let appended = HostFields::append(&mut http, fields, name, value);
                told(&mut http, appended)?
            };
        // The library copies them when the first of both changes.
        "[method]fields.clone"(fields: Fields),
            fields_bytes(state.http().table.get(&fields)?) => {
                HostFields::clone(&mut state.http(), fields)?
            };
        "[method]outgoing-request.set-method"(request: Outgoing, method: types::Method),
            match &method { types::Method::Other(name) => name.len(), _ => 0 } => {
                state.http().set_method(request, method)?
            };
        "[method]outgoing-request.set-path-with-query"(request: Outgoing, path: Option<String>),
            path.as_ref().map_or(0, String::len) => {
                state.http().set_path_with_query(request, path)?
            };
        "[method]outgoing-request.set-scheme"(request: Outgoing, scheme: Option<types::Scheme>),
            match &scheme { Some(types::Scheme::Other(name)) => name.len(), _ => 0 } => {
                state.http().set_scheme(request, scheme)?
            };
        "[method]outgoing-request.set-authority"(request: Outgoing, authority: Option<String>),
            authority.as_ref().map_or(0, String::len) => {
                state.http().set_authority(request, authority)?
            };
        "[method]outgoing-request.body"(request: Outgoing), WRITTEN_BODY_BYTES => {
                types::HostOutgoingRequest::body(&mut state.http(), request)?
            };
        // It can be sent nowhere, but its body is as large.
        "[method]outgoing-response.body"(response: Response), WRITTEN_BODY_BYTES => {
                types::HostOutgoingResponse::body(&mut state.http(), response)?
            };
        // The client's memory does not count any more when the answer has come to its end. A guest
        // may keep its headers, and a part of its body.
        "[method]future-incoming-response.get"(answer: ResponseFuture),
            match state.http().table.get(&answer)? {
                HostFutureIncomingResponse::Ready(Ok((response, _))) => {
                    fields_bytes(response.headers()) + OUTGOING_BUFFER_BYTES
                }
                _ => 0,
            } => {
                types::HostFutureIncomingResponse::get(&mut state.http(), answer)?
            };
        "http-error-code"(error: Failed), 0 => {
                let http = state.http();
                code_of(http.table.get(&error)?)
            };
    }
    type HandleArguments = (Outgoing, Option<Resource<RequestOptions>>);
    linker.instance(HANDLER)?.func_wrap(
        "handle",
        |mut store: StoreContextMut<'_, CallState<S>>, (request, options): HandleArguments| {
            Ok((store.data_mut().send_outgoing(request, options)?,))
        },
    )
}

/// The code of an error of a stream. The library has no code for those of answers' bodies.
fn code_of(error: &wasmtime::Error) -> Option<ErrorCode> {
    if let Some(code) = error.downcast_ref::<ErrorCode>() {
        return Some(code.clone());
    }
    Some(match error.downcast_ref::<Error>()? {
        Error::HttpResponseTimeout => ErrorCode::HttpResponseTimeout,
        Error::HttpResponseIncomplete => ErrorCode::HttpResponseIncomplete,
        Error::HttpResponseHeaderSectionSize(size) => {
            ErrorCode::HttpResponseHeaderSectionSize(*size)
        }
        Error::HttpResponseBodySize(size) => ErrorCode::HttpResponseBodySize(*size),
        Error::HttpRequestBodySize(size) => ErrorCode::HttpRequestBodySize(*size),
        _ => ErrorCode::HttpProtocolError,
    })
}

/// The memory of headers.
fn fields_bytes(fields: &HeaderMap) -> usize {
    fields.iter().map(|(name, value)| field_bytes(name.as_str(), value.len())).sum()
}

/// The memory of a header.
fn field_bytes(name: &str, value_bytes: usize) -> usize {
    FIELD_BYTES + name.len() + value_bytes
}

/// Where this request goes, or the code of the reason why it goes nowhere.
fn target_of(request: &HostOutgoingRequest) -> Result<OutgoingTarget, ErrorCode> {
    let scheme = match &request.scheme {
        None | Some(types::Scheme::Https) => Scheme::Https,
        Some(types::Scheme::Http) => Scheme::Http,
        Some(types::Scheme::Other(_)) => return Err(ErrorCode::HttpProtocolError),
    };
    let authority = request.authority.as_deref().unwrap_or_default();
    OutgoingTarget::at(scheme, authority).ok_or(ErrorCode::HttpRequestUriInvalid)
}

/// Whether a method makes a tunnel of the connection.
fn is_connect(method: &types::Method) -> bool {
    match method {
        types::Method::Connect => true,
        types::Method::Other(name) => name == "CONNECT",
        _ => false,
    }
}

/// The outcome as the guest gets it.
fn told<T>(
    http: &mut WasiHttpCtxView<'_>,
    outcome: HeaderResult<T>,
) -> wasmtime::Result<Result<T, HeaderError>> {
    match outcome {
        Ok(answer) => Ok(Ok(answer)),
        Err(error) => Ok(Err(http.convert_header_error(error)?)),
    }
}

impl<S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send> CallState<S> {
    /// Begin to send a request, if it is granted. The request and its options are dropped.
    fn send_outgoing(
        &mut self,
        request: Outgoing,
        options: Option<Resource<RequestOptions>>,
    ) -> wasmtime::Result<Result<Resource<HostFutureIncomingResponse>, ErrorCode>> {
        let refused = match self.next_outgoing(&request)? {
            Ok(next) => {
                let (_, http) = self.used();
                http.next = Some(next);
                None
            }
            Err(code) => Some(code),
        };
        let mut http = self.http();
        let times = options.as_ref().map(|options| Resource::new_own(options.rep()));
        let sent = match refused {
            None => match http.handle(request, options) {
                Ok(answer) => Ok(answer),
                Err(error) => Err(error.downcast()?),
            },
            Some(code) => {
                http.table.delete(request)?;
                Err(code)
            }
        };
        // The library leaves them in the table.
        if let Some(times) = times {
            let _times: RequestOptions = http.table.delete(times)?;
        }
        Ok(sent)
    }

    /// What sends this request, or the code of the reason why it may not be sent.
    fn next_outgoing(
        &mut self,
        request: &Outgoing,
    ) -> wasmtime::Result<Result<(Sending, FaultLog), ErrorCode>> {
        let (target, method) = {
            let http = self.http();
            let asked = http.table.get(request)?;
            (target_of(asked), asked.method.clone())
        };
        let target = match target {
            Ok(target) => target,
            Err(code) => return Ok(Err(code)),
        };
        if is_connect(&method) {
            return Ok(Err(ErrorCode::HttpRequestMethodInvalid));
        }
        let log = AsMut::<log::CapabilityState>::as_mut(&mut self.states).share();
        let fault_log = FaultLog { to: target.to_string(), log };
        let changes = !matches!(method, types::Method::Get | types::Method::Head);
        match self.permitted(&target, changes, None) {
            Ok(sending) => Ok(Ok((sending, fault_log))),
            Err(refused) => {
                fault_log.warn(&refused);
                Ok(Err(match refused {
                    Refused::TooMany => ErrorCode::ConnectionLimitReached,
                    Refused::NotGranted(_) | Refused::Trial => ErrorCode::HttpRequestDenied,
                }))
            }
        }
    }
}
