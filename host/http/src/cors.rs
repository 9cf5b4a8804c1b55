//! CORS: which web pages of other origins may call the data plane and read its answers.
//!
//! The policy is that of the tenant that the path names, if its document has `cors`. Otherwise it
//! is the server's, whether the tenant exists or not: so only a tenant with `cors` can be found
//! without a key. A preflight is an answer to `OPTIONS`, for which no edge asks for a key. It and
//! all other answers, errors as well, get their headers here and nowhere else. Those that a plugin
//! sets do not pass. Only the listener's own answers have none: 400 and 431, to bytes that it
//! cannot read as a request.
//!
//! Refuses to know keys: a preflight has none. No answer allows credentials of the browser, which
//! are cookies and the like: the API reads none.

use gristmill_snapshot::{Cors, Snapshot};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW,
    ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};

use crate::path::Path;

/// The headers of requests that the API reads and that a page may set only if they are allowed.
const READ_BY_API: &str = "authorization, content-encoding, content-type, gristmill-receipt, \
                           inference-header-content-length, traceparent, tracestate, x-request-id";

/// Stands for every origin, and for every header of an answer.
const ALL: &str = "*";

/// The policy for requests to this path.
pub(crate) fn policy<'a>(
    path: Option<Path<'_>>,
    snapshot: &'a Snapshot,
    of_server: &'a Cors,
) -> &'a Cors {
    let tenant = path.and_then(Path::tenant).and_then(|name| snapshot.tenants.get(name));
    tenant.and_then(|tenant| tenant.cors.as_ref()).unwrap_or(of_server)
}

/// Add the headers for the page that sent the `request`, if it was a page, to those of its answer.
pub(crate) fn add<'a>(answer: &mut HeaderMap, request: &Parts, policy: impl FnOnce() -> &'a Cors) {
    // Each answer says it, so that no cache gives one page's answer to another page.
    answer.insert(VARY, HeaderValue::from_static("origin"));
    let Some(origin) = request.headers.get(ORIGIN) else { return };
    let Cors { origins, headers, max_age_s } = policy();
    let allowed = match origins.is_any() {
        true => HeaderValue::from_static(ALL),
        false if origin.to_str().is_ok_and(|origin| origins.has(origin)) => origin.clone(),
        false => return,
    };
    answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    let is_preflight = request.method == Method::OPTIONS
        && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let methods = answer.get(ALLOW).filter(|_| is_preflight).cloned();
    match methods {
        Some(methods) => {
            answer.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
            let names =
                headers.iter().fold(READ_BY_API.to_owned(), |names, name| names + ", " + name);
            if let Ok(names) = HeaderValue::try_from(names) {
                answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, names);
            }
            answer.insert(ACCESS_CONTROL_MAX_AGE, (*max_age_s).into());
        }
        None => {
            answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(ALL));
        }
    }
}
