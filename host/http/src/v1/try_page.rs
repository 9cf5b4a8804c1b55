//! `GET /v1/{tenant}/try`: a page on which anyone tries the pipelines of an open tenant whose
//! document has `try_page`. For all other tenants the path is unknown, as `http::path` says.
//!
//! The page is one file, the same for all tenants (`host/console`). It learns the tenant from its
//! own address and asks `GET /v1/{tenant}` for the pipelines.
//!
//! It stands at the address at which plugins of tenants answer. So its policy runs no script and
//! applies no style but the two in it, by their digests: nothing that a plugin answers can be run
//! in it. It loads nothing and leads nowhere. No other page can frame it, and none that opened it
//! can reach into it: a plugin can answer a form with a page of its own at this address.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gristmill_core::Digest;
use gristmill_transport::body::Answer;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue};

use crate::answers;

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

const PAGE: &str = include_str!("../../../console/dist/try.html");

static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let digest = |tag| STANDARD.encode(Digest::of(content_of(tag).as_bytes()).as_bytes());
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; \
         img-src blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        digest("script"),
        digest("style"),
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// The content of the only element with this tag, which has no attributes.
fn content_of(tag: &str) -> &'static str {
    let inside = PAGE.split_once(&format!("<{tag}>"));
    let content = inside.and_then(|(_, rest)| rest.split_once(&format!("</{tag}>")));
    content.map_or("", |(content, _)| content)
}

/// The answer with the page.
pub(super) fn page() -> Answer {
    let mut answer =
        answers::answer("text/html; charset=utf-8", Bytes::from_static(PAGE.as_bytes()));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // A newer server has another page.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_allows_the_script_and_the_style_of_the_page_alone() {
        for tag in ["script", "style"] {
            assert_eq!(PAGE.matches(&format!("<{tag}")).count(), 1, "{tag}");
            assert!(content_of(tag).len() > 100, "{tag}");
        }
    }
}
