//! Deeds with the answer of `postprocess`, and with the state that it gets.

use std::sync::atomic::{AtomicU32, Ordering};

use gristmill_plugin::{Prepared, Response};

use crate::{Deed, blank, ends};

/// A deed of `postprocess`.
pub(crate) type Answer = fn() -> Response;

/// Deeds of `preprocess` that return a state which the host may refuse.
pub(crate) const STATES: &[(&str, Deed)] = &[
    ("large-state", |_| Ok(Prepared::new().input("input", blank()?).state(vec![1; 4 << 20]))),
    ("huge-state", |_| Ok(Prepared::new().input("input", blank()?).state(vec![1; 48 << 20]))),
];

const ANSWERS: &[(&str, Answer)] = &[
    ("post-trap", || ends::trap()),
    ("post-loop", || ends::endless()),
    ("huge-response", || Response::new("text/plain", vec![b'x'; 20 << 20])),
    ("bad-status", || Response { status: 99, ..text() }),
    ("bad-header", || text().header("x-plugin-a", "b\r\nx-c: d")),
    ("bad-content-type", || Response::new("text/plain\r\nx-c: d", "")),
    ("huge-content-type", || Response::new(&format!("text/{}", "x".repeat(8 << 20)), "")),
    ("20000-headers", || headers(20_000, 1)),
    ("30000-headers", || headers(30_000, 1)),
    ("40000-headers", || headers(40_000, 1)),
    ("huge-headers", || headers(100, 250_000)),
    ("large-headers", || headers(3, 7 << 10)),
    ("redirect-headers", redirect_headers),
    ("page", || page("text/html; charset=utf-8")),
    ("page-by-comma", || page("text/plain; a=b, text/html")),
    ("picture-with-script", || Response::new("image/svg+xml", SVG)),
    ("see-page", || see_other("https://app.example.com/thanks?label=7")),
    ("see-elsewhere", || see_other("https://app.example.com@evil.example/")),
    ("remember", || Response::new("text/plain", remember())),
];

/// The answer of this name.
pub(crate) fn find(name: &[u8]) -> Option<Answer> {
    let found = ANSWERS.iter().find(|(own, _)| own.as_bytes() == name);
    found.map(|(_, answer)| *answer)
}

fn text() -> Response {
    Response::new("text/plain", "")
}

/// A response with `count` headers of different names, each with a value of `bytes` bytes.
fn headers(count: u32, bytes: usize) -> Response {
    let value = "v".repeat(bytes);
    (0..count).fold(text(), |response, index| response.header(&format!("x-{index}"), &value))
}

/// Headers that a proxy in front of the host, or a browser, may act upon.
fn redirect_headers() -> Response {
    text()
        .header("x-accel-redirect", "/etc/passwd")
        .header("X-Accel-Buffering", "no")
        .header("x-sendfile", "/etc/passwd")
        .header("x-frame-options", "ALLOWALL")
        .header("x-request-id", "/etc/passwd")
        .header("set-cookie", "a=b")
        .header("access-control-allow-origin", "*")
        .header("Access-Control-Allow-Credentials", "true")
        .header("vary", "*")
        .header("x-plugin-own", "1")
}

/// A picture that would run a script at the server's address, if a browser opened it.
const SVG: &str =
    "<svg xmlns='http://www.w3.org/2000/svg'><script>fetch('/v1/demo')</script></svg>";

/// A page that would read what other tenants answer, with a policy that would let it.
fn page(content_type: &str) -> Response {
    let content = "<title>waits</title><script>fetch('/v1/demo').then(() => document.title = 'read', \
                   () => document.title = 'kept apart')</script>";
    Response::new(content_type, content)
        .header("content-security-policy", "sandbox allow-same-origin")
}

/// A redirect, which leads a browser to this page.
fn see_other(location: &str) -> Response {
    Response { status: 303, ..text().header("location", location) }
}

/// The number of calls of this instance. It must be 1: a larger number means that requests share an
/// instance.
fn remember() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    (CALLS.fetch_add(1, Ordering::Relaxed) + 1).to_string()
}
