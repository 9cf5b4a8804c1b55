//! The files of the console, a page for people over this API (`host/console`). They are the same
//! for everyone and say nothing about this server, so they need no token: the page asks for one,
//! and sends it with each call.
//!
//! The page shows texts that tenants made. Its policy lets it run and load nothing but these files.

use bytes::Bytes;
use http::HeaderValue;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

use crate::answer::AdminAnswer;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// A file of the program.
struct File {
    path: &'static str,
    media_type: &'static str,
    content: &'static [u8],
}

static FILES: [File; 4] = [
    File {
        path: "/",
        media_type: "text/html; charset=utf-8",
        content: include_bytes!("../../console/dist/index.html"),
    },
    File {
        path: "/app.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_bytes!("../../console/dist/app.js"),
    },
    File {
        path: "/app.css",
        media_type: "text/css; charset=utf-8",
        content: include_bytes!("../../console/dist/app.css"),
    },
    // The page shows the section of an error's code.
    File {
        path: "/troubleshooting.md",
        media_type: "text/markdown; charset=utf-8",
        content: include_bytes!("../../docs/troubleshooting.md"),
    },
];

/// The file at this path. None if there is none.
pub(crate) fn file(path: &str) -> Option<AdminAnswer> {
    let file = FILES.iter().find(|file| file.path == path)?;
    let answer = AdminAnswer::page(&Bytes::from_static(file.content), file.media_type)
        .with_header(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY))
        .with_header(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .with_header(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
        // A browser asks each time, so that a newer server's page is not mixed with an older one's.
        .with_header(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Some(answer)
}
