//! The golden samples of a pipeline: requests, each with the answer that it must get.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gristmill_core::Name;
use gristmill_sandbox::Request;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::release::candidate::header_name;
use crate::release::document::Document;
use crate::release::expectation::Expectation;
use crate::schema::NameText;

/// The most samples of a pipeline.
const SAMPLES_MAX: usize = 16;

/// The most bytes of a pipeline's samples as JSON: the log keeps them.
const SAMPLES_BYTES_MAX: usize = 256 << 10;

/// The most headers of a request.
const HEADERS_MAX: usize = 64;

/// The longest content type, query and value of a header.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// A request and the answer that it must get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Its name, which is that of no other sample of the pipeline.
    #[schema(value_type = NameText)]
    pub name: Name,
    /// The request.
    #[schema(value_type = Option<SampleRequest>)]
    pub request: SampleRequest,
    /// The expected answer.
    #[schema(value_type = Option<Expectation>)]
    pub expect: Expectation,
}

/// The request of a sample. At most one of `body`, `json` and `base64` is given; without them its
/// body is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SampleRequest {
    /// The content type, if it is not the usual one.
    #[schema(max_length = 4096, pattern = "^[ -~]*$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The query, as it stands in a URL.
    #[schema(max_length = 4096, pattern = "^[!$-;=?-~]*$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Headers, by their names in lower case: those that a plugin can see.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A text. Its usual content type is `text/plain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// A JSON document. Its usual content type is `application/json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// Any bytes, in Base64. They have no usual content type.
    #[schema(
        pattern = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// Read the key `samples` of a pipeline's document.
pub fn read(document: &mut Document) -> Vec<Sample> {
    const KEY: &str = "samples";
    let samples = document.objects(KEY, Sample::read).unwrap_or_default();
    let count = samples.len();
    if count > SAMPLES_MAX {
        document.fault(KEY, format_args!(" has {count}: the limit is {SAMPLES_MAX}"));
    }
    let bytes = serde_json::to_vec(&samples).map_or(0, |text| text.len());
    if bytes > SAMPLES_BYTES_MAX {
        let text = format!(" take {bytes} bytes as JSON: the limit is {SAMPLES_BYTES_MAX}");
        document.fault(KEY, text);
    }
    let mut names = BTreeSet::new();
    for (index, Sample { name, .. }) in samples.iter().enumerate() {
        if !names.insert(name) {
            let text = format!(" is {:?}, which is the name of an earlier one", name.as_str());
            document.fault(&format!("{KEY}[{index}].name"), text);
        }
    }
    samples
}

impl Sample {
    /// None if the document has no usable name.
    fn read(document: &mut Document) -> Option<Self> {
        let name = document.name("name");
        let name = document.require("name", name);
        let request = document.nested("request", SampleRequest::read);
        let expect = document.nested("expect", Expectation::read);
        Some(Self { name: name?, request, expect })
    }
}

impl SampleRequest {
    fn read(document: &mut Document) -> Self {
        let read = Self {
            content_type: document.text("content_type"),
            query: document.text("query"),
            headers: read_headers(document),
            body: document.text("body"),
            json: document.value("json"),
            base64: document.text("base64"),
        };
        read.check(document);
        read
    }

    fn check(&self, document: &mut Document) {
        let is_sendable = |text: &str| text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        if let Some(text) = &self.content_type
            && !(is_sendable(text) && text.len() <= TEXT_BYTES_MAX)
        {
            document.fault("content_type", " cannot be sent in a header");
        }
        // As `http` reads it.
        let is_query = |byte: u8| matches!(byte, 0x21 | 0x24..=0x3b | 0x3d | 0x3f..=0x7e);
        if let Some(text) = &self.query
            && !(text.bytes().all(is_query) && text.len() <= TEXT_BYTES_MAX)
        {
            document
                .fault("query", " cannot be sent in a URL: blanks and the like are written %20");
        }
        let bodies = [self.body.is_some(), self.json.is_some(), self.base64.is_some()];
        if bodies.into_iter().filter(|is_given| *is_given).count() > 1 {
            document.fault("body", ": give one of body, json and base64");
        }
        if let Some(Err(error)) = self.base64.as_ref().map(|text| STANDARD.decode(text)) {
            document.fault("base64", format_args!(" is not Base64: {error}"));
        }
    }

    /// Its bytes, with the content type that they have unless another is given.
    pub fn content(&self) -> (Bytes, Option<&'static str>) {
        match self {
            Self { body: Some(text), .. } => (text.clone().into(), Some("text/plain")),
            Self { json: Some(json), .. } => (json.to_string().into(), Some("application/json")),
            // The document was checked when it was put.
            Self { base64: Some(text), .. } => {
                (STANDARD.decode(text).unwrap_or_default().into(), None)
            }
            _ => (Bytes::new(), None),
        }
    }
}

/// The headers of a request. Others than those that a plugin can see would do nothing.
fn read_headers(document: &mut Document) -> BTreeMap<String, String> {
    const KEY: &str = "headers";
    let mut headers = BTreeMap::new();
    let all = document.object(KEY).unwrap_or_default();
    if all.len() > HEADERS_MAX {
        document.fault(KEY, format_args!(" has {}: the limit is {HEADERS_MAX}", all.len()));
        return headers;
    }
    for (name, value) in all {
        let at = format!("{KEY}.{}", name.chars().take(80).collect::<String>());
        let lower = header_name(&name).filter(|lower| Request::shows_header(lower));
        let Some(lower) = lower else {
            document.fault(&at, " is not a header that a plugin can see");
            continue;
        };
        let is_text = |byte: u8| (0x20..0x7f).contains(&byte);
        match value.as_str().filter(|value| value.bytes().all(is_text)) {
            Some(value) if value.len() <= TEXT_BYTES_MAX => {
                headers.insert(lower, value.to_owned());
            }
            _ => document.fault(&at, " cannot be sent in a header"),
        }
    }
    headers
}

#[cfg(test)]
mod tests;
