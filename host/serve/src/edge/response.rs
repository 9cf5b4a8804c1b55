//! A plugin's response as a client sees it.
//!
//! A plugin may set headers, but only a few names pass. Proxies act upon `x-accel-redirect`,
//! `x-sendfile` and others, and no list of those is complete. A plugin's own headers begin with
//! `x-plugin-`. A `location` passes with 303 alone, to pages that the tenant's document allows: it
//! leads a browser from a form to the next page. A page of a plugin runs apart from the origin that
//! it came from, which is that of all tenants. All of a response is bounded, and counts against its
//! tenant's budget until it is sent.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{ByteBudget, ErrorCode, Origins};
use gristmill_sandbox::Response as PluginResponse;
use gristmill_transport::Problem;
use gristmill_transport::body::{Answer, ResponseBody, answer_of};
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, StatusCode};

/// The most headers of a response. Those that do not pass count, too.
const HEADERS_MAX: usize = 64;

/// The most bytes of one header, with its name.
const HEADER_BYTES_MAX: usize = 8 << 10;

/// The most bytes of all headers, with their names.
const HEADERS_BYTES_MAX: usize = 16 << 10;

const CONTENT_TYPE_BYTES_MAX: usize = 256;

/// The headers that pass, besides those with [`OWN_PREFIX`].
const PASSED: [&str; 7] = [
    "cache-control",
    "content-disposition",
    "content-language",
    "etag",
    "expires",
    "last-modified",
    "retry-after",
];

/// Parts of the media types that browsers run: HTML, XML with SVG, and documents of several parts.
const OF_PAGES: [&str; 4] = ["html", "xml", "xsl", "multipart"];

/// Media types whose parts have headers of their own, which Firefox takes as those of an answer:
/// `set-cookie`, too.
const OF_PARTS: [&str; 3] =
    ["multipart/x-mixed-replace", "multipart/mixed", "multipart/byteranges"];

/// What a plugin's page may do: all that a page of another site may. It lacks `allow-same-origin`,
/// so its origin is no server's. Links out of it lead to usual pages.
const PAGE_POLICY: &str = "sandbox allow-downloads allow-forms allow-modals allow-popups \
     allow-popups-to-escape-sandbox allow-scripts allow-top-navigation-by-user-activation";

/// The prefix of a plugin's own headers.
const OWN_PREFIX: &str = "x-plugin-";

/// The most bytes of a plugin's text that an error shows.
const SHOWN_BYTES_MAX: usize = 64;

/// The answer with the plugin's response and the headers that pass.
///
/// # Errors
/// `plugin_invalid_output` if the response is larger than `bytes_max`, a part of it is not valid,
/// or it redirects to a page that is not among `redirects`.
pub fn answer_from_plugin(
    response: PluginResponse,
    bytes_max: usize,
    budget: &Arc<ByteBudget>,
    redirects: &Origins,
) -> Result<Answer, Problem> {
    checked(response, bytes_max, budget, redirects).map_err(|what| {
        let detail = format!("post: plugin's answer cannot be used: {what}");
        Problem::new(ErrorCode::PluginInvalidOutput, detail)
    })
}

fn checked(
    response: PluginResponse,
    bytes_max: usize,
    budget: &Arc<ByteBudget>,
    redirects: &Origins,
) -> Result<Answer, String> {
    let PluginResponse { status, content_type, headers, body } = response;
    // An answer without a body needs no content type.
    let media_type = match body.is_empty() && content_type.is_empty() {
        true => None,
        false => Some(media_type(&content_type)?),
    };
    let head_bytes = content_type.len() + check_sizes(&headers)?;
    let all = head_bytes + body.len();
    if all > bytes_max {
        return Err(format!(
            "response of {all} bytes, headers included, is over the limit of {bytes_max}"
        ));
    }
    let body = ResponseBody::from(Bytes::from(body)).held_with_head(head_bytes, budget);
    let mut answer = answer_of(body);
    *answer.status_mut() = StatusCode::from_u16(status)
        .map_err(|_| format!("status {status} is not an HTTP status"))?;
    if is_page(&content_type) {
        let policy = HeaderValue::from_static(PAGE_POLICY);
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    // Otherwise a browser could take a type that it does not know for HTML.
    let nosniff = HeaderValue::from_static("nosniff");
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    answer.headers_mut().extend(media_type.map(|value| (CONTENT_TYPE, value)));
    for (name, value) in headers {
        let is_redirect = answer.status() == StatusCode::SEE_OTHER
            && name.eq_ignore_ascii_case(LOCATION.as_str());
        if is_redirect && !redirects.has_url(&value) {
            return Err(format!(
                "location {:?} is on no origin in the tenant's redirects",
                shown(&value)
            ));
        }
        if !(is_redirect || passes(&name)) {
            tracing::debug!(header = name, "a plugin's header is not passed on");
            continue;
        }
        let header = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(value).ok());
        let unusable = || format!("header {:?}", shown(&name));
        let (name, value) = header.ok_or_else(unusable)?;
        answer.headers_mut().try_append(name, value).map_err(|error| error.to_string())?;
    }
    Ok(answer)
}

/// The bytes of all headers.
///
/// # Errors
/// There are too many headers, or too many bytes in one or all of them.
fn check_sizes(headers: &[(String, String)]) -> Result<usize, String> {
    let count = headers.len();
    if count > HEADERS_MAX {
        return Err(format!("{count} headers are over the limit of {HEADERS_MAX}"));
    }
    let mut all = 0;
    for (name, value) in headers {
        let bytes = name.len() + value.len();
        if bytes > HEADER_BYTES_MAX {
            let name = shown(name);
            return Err(format!(
                "header {name:?} of {bytes} bytes is over the limit of {HEADER_BYTES_MAX}"
            ));
        }
        all += bytes;
    }
    if all > HEADERS_BYTES_MAX {
        return Err(format!(
            "headers of {all} bytes in all are over the limit of {HEADERS_BYTES_MAX}"
        ));
    }
    Ok(all)
}

/// A media type: `type/subtype`, and parameters that a header can carry.
fn media_type(text: &str) -> Result<HeaderValue, String> {
    let len = text.len();
    if len > CONTENT_TYPE_BYTES_MAX {
        return Err(format!(
            "content type of {len} bytes is over the limit of {CONTENT_TYPE_BYTES_MAX}"
        ));
    }
    // As for pages, the whole text counts.
    let lower = text.to_ascii_lowercase();
    if let Some(parts) = OF_PARTS.iter().find(|parts| lower.contains(**parts)) {
        return Err(format!(
            "content type {parts} is not passed on, because its parts could set headers: \
             multipart/form-data is, and so is JSON"
        ));
    }
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let parts = essence.split_once('/').filter(|(kind, sub)| is_token(kind) && is_token(sub));
    let value = parts.and_then(|_| HeaderValue::from_str(text).ok());
    value.ok_or_else(|| format!("content type {:?} is not a media type", shown(text)))
}

/// Whether a browser may run a body of this content type. The whole text counts: some browsers take
/// what follows a comma for the type.
fn is_page(content_type: &str) -> bool {
    let text = content_type.to_ascii_lowercase();
    OF_PAGES.iter().any(|part| text.contains(part))
}

fn is_token(text: &str) -> bool {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.as_bytes().iter().all(token)
}

fn passes(name: &str) -> bool {
    let is_own =
        name.get(..OWN_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(OWN_PREFIX));
    is_own || PASSED.iter().any(|passed| name.eq_ignore_ascii_case(passed))
}

fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)]
}

#[cfg(test)]
mod tests;
