//! The answer to a sample, and whether it is as expected.

use bytes::Bytes;
use gristmill_core::{Digest, ErrorCode};
use gristmill_snapshot::Mismatches;
use serde_json::Value;

use crate::release::expectation::Expectation;
use crate::release::sample::Sample;

/// Maximum bytes of a sample's answer that is compared as JSON. As a document it takes many times
/// as much memory.
const JSON_BYTES_MAX: usize = 1 << 20;

/// The tolerance of a sample that names none, as in `gristmill plugin test`.
const TOLERANCE: f64 = 1e-4;

/// The answer that a client would get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleAnswer {
    /// The plugin's response.
    Response {
        /// The HTTP status.
        status: u16,
        /// The content type; it may be empty.
        content_type: String,
        /// The body.
        body: Bytes,
    },
    /// The request got no response.
    Failed(SampleFailure),
}

/// The reason for which a request got no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleFailure {
    /// The HTTP status.
    pub status: u16,
    /// The code.
    pub code: ErrorCode,
    /// The text for the client.
    pub detail: String,
    /// The plugin's own words, which a client does not get.
    pub internal: Option<String>,
}

impl SampleAnswer {
    /// The status of the HTTP answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::Response { status, .. } | Self::Failed(SampleFailure { status, .. }) => *status,
        }
    }
}

impl Sample {
    /// How the answer differs. A sample that expects neither a status nor a failure expects 200.
    pub fn mismatches(&self, answer: &SampleAnswer) -> Mismatches {
        let Self { expect, .. } = self;
        if let SampleAnswer::Response { body, .. } = answer
            && (expect.json.is_some() || !expect.at.is_empty())
            && body.len() > JSON_BYTES_MAX
        {
            let mut mismatches = Mismatches::default();
            let expected = format!("at most {JSON_BYTES_MAX} bytes of JSON");
            mismatches.add("$", expected, format!("{} bytes", body.len()));
            return mismatches;
        }
        let status = expect.status.or_else(|| (!expect.is_failure()).then_some(200));
        expect.compare(status, answer, TOLERANCE)
    }
}

impl Expectation {
    /// How the answer differs. Numbers that are not whole may differ by the expectation's own
    /// tolerance, or by `tolerance` if it has none.
    pub fn mismatches(&self, answer: &SampleAnswer, tolerance: f64) -> Mismatches {
        self.compare(self.status, answer, tolerance)
    }

    fn compare(&self, status: Option<u16>, answer: &SampleAnswer, tolerance: f64) -> Mismatches {
        let mut mismatches = Mismatches::default();
        if let Some(status) = status.filter(|status| *status != answer.status()) {
            mismatches.add("status", status.to_string(), answer.status().to_string());
        }
        match answer {
            SampleAnswer::Failed(failure) if self.is_failure() => {
                self.compare_failure(failure, &mut mismatches);
            }
            SampleAnswer::Failed(failure) => {
                if mismatches.is_empty() && self.has_answer() {
                    mismatches.add("code", "an answer", failure.code.as_str());
                }
            }
            SampleAnswer::Response { .. } if self.is_failure() => {
                mismatches.add("code", self.code.as_deref().unwrap_or("a failure"), "an answer");
            }
            SampleAnswer::Response { content_type, body, .. } => {
                if let Some(expected) = &self.content_type
                    && expected != content_type
                {
                    mismatches.add("content_type", expected, content_type);
                }
                let tolerance = self.tolerance.unwrap_or(tolerance);
                self.compare_body(body, tolerance, &mut mismatches);
            }
        }
        mismatches
    }

    fn has_answer(&self) -> bool {
        let whole = self.json.is_some() || self.text.is_some() || self.body_sha256.is_some();
        whole || self.content_type.is_some() || !self.at.is_empty()
    }

    fn compare_failure(&self, failure: &SampleFailure, mismatches: &mut Mismatches) {
        let actual = failure.code.as_str();
        if let Some(code) = self.code.as_deref().filter(|code| *code != actual) {
            mismatches.add("code", code, actual);
        }
        if let Some(detail) = &self.detail
            && *detail != failure.detail
        {
            mismatches.add("detail", detail, &failure.detail);
        }
    }

    fn compare_body(&self, body: &[u8], tolerance: f64, mismatches: &mut Mismatches) {
        if let Some(expected) = &self.text
            && expected.as_bytes() != body
        {
            compare_texts(expected, &lossy(body), mismatches);
        }
        if let Some(expected) = self.body_sha256 {
            let digest = Digest::of(body);
            if expected != digest {
                let actual = format!("{digest} ({} bytes)", body.len());
                mismatches.add("body_sha256", expected.to_string(), actual);
            }
        }
        if self.json.is_none() && self.at.is_empty() {
            return;
        }
        let actual = match serde_json::from_slice(body) {
            Ok(actual) => actual,
            Err(error) => {
                let start = &body[..body.len().min(60)];
                let text = format!("{:?}, which is not JSON: {error}", lossy(start));
                let expected = self.json.as_ref().map_or("JSON".into(), Value::to_string);
                return mismatches.add("$", expected, text);
            }
        };
        if let Some(expected) = &self.json {
            mismatches.add_json(expected, &actual, tolerance);
        }
        for (pointer, expected) in &self.at {
            mismatches.add_at(pointer, expected, &actual, tolerance);
        }
    }
}

/// The first line that differs.
fn compare_texts(expected: &str, actual: &str, mismatches: &mut Mismatches) {
    let (mut one, mut other) = (expected.split('\n'), actual.split('\n'));
    for number in 1_usize.. {
        match (one.next(), other.next()) {
            (None, None) => return,
            (expected, actual) if expected == actual => {}
            (expected, actual) => {
                let shown =
                    |line: Option<&str>| line.map_or("nothing".into(), |line| format!("{line:?}"));
                let line = format!("text, line {number}");
                return mismatches.add(line, shown(expected), shown(actual));
            }
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
