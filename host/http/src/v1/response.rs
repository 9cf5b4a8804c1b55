//! A plugin's response as a client sees it.
//!
//! A plugin may set headers, but only a few names pass. Proxies act upon `x-accel-redirect`,
//! `x-sendfile` and others, and no list of those is complete. A plugin's own headers begin with
//! `x-plugin-`. All of a response is bounded, and counts against its tenant's budget until it is
//! sent.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{ByteBudget, ErrorCode};
use gristmill_sandbox::Response as PluginResponse;
use gristmill_transport::Problem;
use gristmill_transport::body::{Answer, ResponseBody};
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response, StatusCode};

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

/// The prefix of a plugin's own headers.
const OWN_PREFIX: &str = "x-plugin-";

/// The most bytes of a plugin's text that an error shows.
const SHOWN_BYTES_MAX: usize = 64;

/// The answer with the plugin's response and the headers that pass.
///
/// # Errors
/// `plugin_invalid_output` if the response is larger than `bytes_max`, or a part of it is not
/// valid.
pub(super) fn from_plugin(
    response: PluginResponse,
    bytes_max: usize,
    budget: &Arc<ByteBudget>,
) -> Result<Answer, Problem> {
    checked(response, bytes_max, budget).map_err(|what| {
        let detail = format!("post: plugin's answer cannot be used: {what}");
        Problem::new(ErrorCode::PluginInvalidOutput, detail)
    })
}

fn checked(
    response: PluginResponse,
    bytes_max: usize,
    budget: &Arc<ByteBudget>,
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
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(status)
        .map_err(|_| format!("status {status} is not an HTTP status"))?;
    answer.headers_mut().extend(media_type.map(|value| (CONTENT_TYPE, value)));
    for (name, value) in headers {
        if !passes(&name) {
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
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let parts = essence.split_once('/').filter(|(kind, sub)| is_token(kind) && is_token(sub));
    let value = parts.and_then(|_| HeaderValue::from_str(text).ok());
    value.ok_or_else(|| format!("content type {:?} is not a media type", shown(text)))
}

fn is_token(text: &str) -> bool {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.as_bytes().iter().all(token)
}

fn passes(name: &str) -> bool {
    let own =
        name.get(..OWN_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(OWN_PREFIX));
    own || PASSED.iter().any(|passed| name.eq_ignore_ascii_case(passed))
}

fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(headers: &[(&str, &str)]) -> PluginResponse {
        let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let content_type = "text/plain".to_owned();
        PluginResponse { status: 200, content_type, headers: headers.collect(), body: b"x".into() }
    }

    fn refusal(response: PluginResponse) -> String {
        let outcome = from_plugin(response, 1 << 20, &ByteBudget::new(1 << 20));
        let problem = outcome.map(drop).unwrap_err();
        assert_eq!(problem.code, ErrorCode::PluginInvalidOutput);
        problem.detail
    }

    #[test]
    fn headers_that_proxies_act_upon_do_not_pass() {
        let given = [
            ("Cache-Control", "no-store"),
            ("ETag", "\"1\""),
            ("x-plugin-model", "a"),
            ("X-Plugin-Model", "b"),
            ("x-accel-redirect", "/etc/passwd"),
            ("X-Sendfile", "/etc/passwd"),
            ("x-accel-buffering", "no"),
            ("x-frame-options", "DENY"),
            ("x-request-id", "1"),
            ("x-plugin", "1"),
            ("set-cookie", "a=b"),
            ("location", "/"),
            ("content-length", "7"),
            ("transfer-encoding", "chunked"),
            ("connection", "close"),
            ("link", "</x>; rel=preload"),
            // Headers that do not pass are not checked.
            ("no header", "a\r\nb"),
        ];
        let Ok(answer) = from_plugin(response(&given), 1 << 20, &ByteBudget::new(1 << 20)) else {
            panic!("refused");
        };
        let passed: Vec<_> =
            answer.headers().iter().map(|(name, value)| (name.as_str(), value)).collect();
        let mut names: Vec<_> = passed.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["cache-control", "content-type", "etag", "x-plugin-model", "x-plugin-model"]
        );
    }

    #[test]
    fn an_error_names_the_exceeded_bound() {
        let long = "v".repeat(9000);
        let many: Vec<_> =
            (0..65).map(|index| (format!("x-plugin-{index}"), String::new())).collect();
        let named = |headers| PluginResponse { headers, ..response(&[]) };
        let typed = |text: &str| PluginResponse { content_type: text.into(), ..response(&[]) };
        let cases = [
            (named(many), "65 headers are over the limit of 64"),
            (response(&[("x-a", &long)]), "header \"x-a\" of 9003 bytes is over the limit of 8192"),
            (
                response(&[("x-a", &long[..8000]), ("x-b", &long[..8000]), ("x-c", &long[..8000])]),
                "headers of 24009 bytes in all are over the limit of 16384",
            ),
            (response(&[("x-plugin-a", "b\r\nx-c: d")]), "header \"x-plugin-a\""),
            (response(&[("x-plugin-a b", "c")]), "header \"x-plugin-a b\""),
            (typed(&format!("text/{long}")), "content type of 9005 bytes is over the limit of 256"),
            (typed("text"), "content type \"text\" is not a media type"),
            (typed(""), "content type \"\" is not a media type"),
            (typed("text/plain\r\nx: y"), "is not a media type"),
        ];
        for (response, named) in cases {
            let detail = refusal(response);
            assert!(detail.contains(named), "{named:?} is missing from: {detail}");
        }
    }

    #[test]
    fn all_of_a_response_is_bounded_and_held() {
        let value = "v".repeat(8000);
        let large = || response(&[("x-plugin-a", &value)]);
        let budget = ByteBudget::new(1 << 20);
        let Err(problem) = from_plugin(large(), 8000, &budget).map(drop) else { panic!("taken") };
        assert!(problem.detail.contains("8021 bytes, headers included"), "{}", problem.detail);
        for body in [Vec::new(), b"x".to_vec()] {
            let bytes = 8020 + body.len();
            let answer = from_plugin(PluginResponse { body, ..large() }, 1 << 20, &budget);
            assert_eq!(budget.held(), bytes);
            drop(answer);
            assert_eq!(budget.held(), 0);
        }
    }

    #[test]
    fn an_answer_without_body_needs_no_type() {
        let none =
            PluginResponse { content_type: String::new(), body: Vec::new(), ..response(&[]) };
        let Ok(answer) = from_plugin(none, 0, &ByteBudget::new(0)) else { panic!("refused") };
        assert!(answer.headers().is_empty());
    }
}
