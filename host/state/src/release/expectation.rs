//! What the answer to a sample request must be: the document that people write.
//!
//! A pipeline's samples have it, and so do the files of `gristmill plugin test`. Only the parts
//! that are given are checked.

use std::ops::RangeInclusive;

use gristmill_core::{Digest, ErrorCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::release::document::{Document, shown};
use crate::schema::{DigestText, ErrorCodeText};

const TOLERANCES: RangeInclusive<f64> = 0.0..=1.0;

/// The expected answer. At most one of `json`, `text` and `body_sha256` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    /// The HTTP status.
    #[schema(minimum = 200, maximum = 599)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The content type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The whole body, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// The whole body, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The digest of the body.
    #[schema(value_type = Option<DigestText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_sha256: Option<Digest>,
    /// Single values of a JSON body, by their JSON pointers (RFC 6901).
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub at: Map<String, Value>,
    /// How far a number that is not whole may be from the expected x: by `tolerance` + `tolerance`
    /// * |x|.
    #[schema(minimum = 0, maximum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// The code of a failure.
    #[schema(value_type = Option<ErrorCodeText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The failure's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Expectation {
    /// Read the expectation that `document` describes. Its faults are the document's.
    pub fn read(document: &mut Document) -> Self {
        let codes = ErrorCode::ALL.iter().map(|code| (code.as_str(), code.as_str()));
        let read = Self {
            status: document.whole("status"),
            content_type: document.text("content_type"),
            json: document.value("json"),
            text: document.text("text"),
            body_sha256: document.digest("body_sha256"),
            at: document.object("at").unwrap_or_default(),
            tolerance: document.number("tolerance", &TOLERANCES),
            code: document.one_of("code", &codes.collect::<Vec<_>>()).map(str::to_owned),
            detail: document.text("detail"),
        };
        read.check(document);
        read
    }

    fn check(&self, document: &mut Document) {
        if let Some(status) = self.status.filter(|status| !(200..=599).contains(status)) {
            document.fault("status", format_args!(" is {status}: must be 200 to 599"));
        }
        for pointer in self.at.keys().filter(|pointer| !is_pointer(pointer)) {
            let shown = shown(&pointer.as_str().into());
            let text = format_args!(
                "at[{shown}]: must be a JSON pointer: empty, or / before each name, such as /top/0"
            );
            document.member_fault("at", pointer, text);
        }
        let bodies = [self.json.is_some(), self.text.is_some(), self.body_sha256.is_some()];
        let bodies = bodies.into_iter().filter(|is_given| *is_given).count();
        if bodies > 1 {
            document.fault("json", ": give one of json, text and body_sha256");
        }
        if !self.at.is_empty() && bodies > usize::from(self.json.is_some()) {
            document.fault("at", ": it is for JSON: give neither text nor body_sha256 beside it");
        }
        let has_answer = self.content_type.is_some() || bodies > 0 || !self.at.is_empty();
        if self.is_failure() && has_answer {
            document.fault("code", ": a failure has no content_type and no body");
        }
    }

    /// Whether a failure is expected, and not an answer.
    pub fn is_failure(&self) -> bool {
        self.code.is_some() || self.detail.is_some()
    }
}

/// Whether the text is a JSON pointer.
pub(super) fn is_pointer(text: &str) -> bool {
    let mut after_tildes = text.split('~').skip(1);
    (text.is_empty() || text.starts_with('/'))
        && after_tildes.all(|rest| rest.starts_with(['0', '1']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Expectation, Vec<String>> {
        let Value::Object(keys) = value else { panic!("{value} is not an object") };
        let mut document = Document::new(keys);
        let read = Expectation::read(&mut document);
        let faults = document.finish();
        if faults.is_empty() { Ok(read) } else { Err(faults.into_texts()) }
    }

    #[test]
    fn a_document_is_read_as_the_log_reads_it() {
        for document in [
            json!({}),
            json!({ "status": 201, "content_type": "a/b", "json": [1, null], "at": { "/0": 1, "": {} },
                "tolerance": 0.5 }),
            json!({ "text": "x" }),
            json!({ "body_sha256": format!("sha256:{}", "0".repeat(64)) }),
            json!({ "status": 400, "code": "invalid_request", "detail": "no" }),
        ] {
            let logged: Expectation = serde_json::from_value(document.clone()).unwrap();
            assert_eq!(serde_json::to_value(&logged).unwrap(), document);
            assert_eq!(read(document), Ok(logged));
        }
    }

    #[test]
    fn every_fault_is_named() {
        let faults = read(json!({
            "status": 99, "json": 1, "text": "1", "code": "oops", "detail": "x", "tolerance": 1.5,
            "body_sha256": "abc", "at": { "top/0": 1, "/a~2": 2, "/~0~1": 3 }, "jsn": 1,
        }));
        let faults = faults.unwrap_err();
        let expected = [
            "body_sha256 is \"abc\": must be sha256:",
            "tolerance is 1.5: must be a number from 0 to 1",
            "code is \"oops\": must be one of invalid_request",
            "status is 99: must be 200 to 599",
            "at[\"/a~2\"]: must be a JSON pointer",
            "at[\"top/0\"]: must be a JSON pointer",
            "json: give one of json, text and body_sha256",
            "at: it is for JSON",
            "code: a failure has no content_type and no body",
            "unknown key \"jsn\"; known are status, content_type, json, text, body_sha256, at, \
             tolerance, code, detail",
        ];
        assert_eq!(faults.len(), expected.len(), "{faults:#?}");
        for (fault, named) in faults.iter().zip(expected) {
            assert!(fault.starts_with(named), "{named}: {faults:#?}");
        }
    }
}
