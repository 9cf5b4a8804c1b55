//! What needs no token: the description of the API, a document for programs and a page for people,
//! and the files of the console. They are the same for everyone and say nothing about this server,
//! and browsers send no token for them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gristmill_core::Digest;
use gristmill_transport::{Allowed, Checked, Problem};
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderValue, Response};
use serde_json::Value;
use utoipa::openapi::schema::ObjectBuilder;

use crate::answer::AdminAnswer;
use crate::body::AdminBody;
use crate::conditions::conditions;
use crate::console;
use crate::docs::{STYLE, page};
use crate::operation::{Operation, PREFIX, text};
use crate::resource::no_parameters;

const DOCUMENT: &str = "openapi.json";
const PAGE: &str = "docs";
const HTML: &str = "text/html; charset=utf-8";

/// What this module answers.
pub(crate) fn operations() -> Vec<Operation> {
    vec![
        Operation::public(DOCUMENT, "Read this document").reads_with(ObjectBuilder::new()),
        Operation::public(PAGE, "Read this document as a page").reads_as("text/html", text()),
    ]
}

/// The document and the page.
pub(crate) struct Pages {
    document: Bytes,
    page: Bytes,
    policy: HeaderValue,
}

impl Pages {
    /// # Errors
    /// The document cannot be written as JSON.
    pub(crate) fn new(document: &Value) -> Result<Self, serde_json::Error> {
        let mut text = serde_json::to_vec(document)?;
        text.push(b'\n');
        // Nothing is loaded, run, sent or embedded; the page's own style is allowed by its digest.
        let style = STANDARD.encode(Digest::of(STYLE.as_bytes()).as_bytes());
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        );
        let policy = HeaderValue::try_from(policy);
        Ok(Self {
            document: text.into(),
            page: page(document).into(),
            policy: policy.unwrap_or(HeaderValue::from_static("default-src 'none'")),
        })
    }

    /// The answer to a request with this head. None if it is for something else.
    pub(crate) fn answer(&self, head: &Parts) -> Option<Result<Response<AdminBody>, Problem>> {
        let path = head.uri.path();
        let answer = match path.strip_prefix(PREFIX) {
            None => console::file(path)?,
            Some(DOCUMENT) => AdminAnswer::page(&self.document, "application/json"),
            Some(PAGE) => AdminAnswer::page(&self.page, HTML)
                .with_header(CONTENT_SECURITY_POLICY, self.policy.clone())
                .with_header(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
                .with_header(REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            Some(_) => return None,
        };
        Some(read(head, answer))
    }
}

fn read(head: &Parts, answer: AdminAnswer) -> Result<Response<AdminBody>, Problem> {
    if let Checked::Options = Allowed::Get.check(&head.method)? {
        return Ok(Allowed::Get.options().map(Bytes::into));
    }
    no_parameters(head.uri.query())?;
    answer.for_reader(&conditions(&head.headers)?, head.uri.path())
}
