//! The expected answer of a request: `NAME.expected.json` beside it.
//!
//! An expectation checks only the parts that it has.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use gristmill_control::Document;
use gristmill_core::{Digest, ErrorCode};
use gristmill_store::digest_of;
use serde_json::{Map, Value};

use super::compare::Differences;
use super::run::{Answer, Failed};

/// The expected answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Expectation {
    status: Option<u16>,
    content_type: Option<String>,
    body: Option<Body>,
    /// The code of a failure.
    code: Option<ErrorCode>,
    /// The failure's text.
    detail: Option<String>,
}

#[derive(Debug, PartialEq)]
enum Body {
    Json(Value),
    Text(String),
    Sha256(Digest),
}

impl Expectation {
    /// The expectation in a file; none if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, or is faulty.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        let text = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| path.display().to_string())?,
        };
        Self::parse(&text).with_context(|| path.display().to_string()).map(Some)
    }

    fn parse(text: &[u8]) -> Result<Self> {
        let keys: Map<String, Value> =
            serde_json::from_slice(text).context("not a JSON object that describes an answer")?;
        let mut document = Document::new(keys);
        let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| (code.as_str(), *code)).collect();
        let status = document.whole("status");
        let content_type = document.text("content_type");
        let (code, detail) = (document.one_of("code", &codes), document.text("detail"));
        let json = document.value("json").map(Body::Json);
        let text = document.text("text").map(Body::Text);
        let sha256 = document.text("body_sha256").and_then(|text| match text.parse() {
            Ok(digest) => Some(Body::Sha256(digest)),
            Err(error) => {
                document.fault("body_sha256", format_args!(": {error}"));
                None
            }
        });
        let mut bodies: Vec<_> = [json, text, sha256].into_iter().flatten().collect();
        let is_failure = code.is_some() || detail.is_some();
        if bodies.len() > 1 {
            document.fault("json", ": give one of json, text and body_sha256");
        }
        if is_failure && (content_type.is_some() || !bodies.is_empty()) {
            document.fault("code", ": a failure has no content_type and no body");
        }
        let faults = document.finish();
        ensure!(faults.is_empty(), "{}", faults.into_texts().join("; "));
        let body = bodies.pop();
        let expectation = Self { status, content_type, body, code, detail };
        ensure!(expectation != Self::default(), "it expects nothing");
        Ok(expectation)
    }

    /// The expectation that this answer meets; none for a failure that is not the client's fault.
    pub(super) fn of(answer: &Answer) -> Option<Self> {
        match answer {
            Answer::Response { status, content_type, body } => Some(Self {
                status: Some(*status),
                content_type: Some(content_type.clone()),
                body: Some(Body::of(content_type, body)),
                ..Self::default()
            }),
            Answer::Failed(Failed { code, detail, .. }) if answer.status() < 500 => {
                Some(Self { code: Some(*code), detail: Some(detail.clone()), ..Self::default() })
            }
            Answer::Failed(_) => None,
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let mut text = format!("{:#}", self.document());
        text.push('\n');
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn document(&self) -> Value {
        let Self { status, content_type, body, code, detail } = self;
        let body = body.as_ref().map(|body| match body {
            Body::Json(json) => ("json", json.clone()),
            Body::Text(text) => ("text", text.clone().into()),
            Body::Sha256(digest) => ("body_sha256", digest.to_string().into()),
        });
        let members = [
            status.map(|status| ("status", status.into())),
            content_type.clone().map(|content_type| ("content_type", content_type.into())),
            body,
            code.map(|code| ("code", code.as_str().into())),
            detail.clone().map(|detail| ("detail", detail.into())),
        ];
        let members = members.into_iter().flatten();
        Value::Object(members.map(|(key, value): (&str, Value)| (key.to_owned(), value)).collect())
    }

    /// How the answer differs.
    pub(super) fn differences(&self, answer: &Answer, tolerance: f64) -> Differences {
        let mut differences = Differences::default();
        if let Some(status) = self.status
            && status != answer.status()
        {
            differences.add("status", status.to_string(), answer.status().to_string());
        }
        let expects_failure = self.code.is_some() || self.detail.is_some();
        match answer {
            Answer::Failed(failed) if expects_failure => {
                self.compare_failure(failed, &mut differences)
            }
            Answer::Failed(failed) => {
                let has_more = self.content_type.is_some() || self.body.is_some();
                if differences.is_empty() && has_more {
                    differences.add("code", "an answer", failed.code.as_str());
                }
            }
            Answer::Response { .. } if expects_failure => {
                let expected = self.code.map_or("a failure", ErrorCode::as_str);
                differences.add("code", expected, "an answer");
            }
            Answer::Response { content_type, body, .. } => {
                if let Some(expected) = &self.content_type
                    && expected != content_type
                {
                    differences.add("content_type", expected, content_type);
                }
                if let Some(expected) = &self.body {
                    expected.compare(body, tolerance, &mut differences);
                }
            }
        }
        differences
    }

    fn compare_failure(&self, failed: &Failed, differences: &mut Differences) {
        if let Some(code) = self.code
            && code != failed.code
        {
            differences.add("code", code.as_str(), failed.code.as_str());
        }
        if let Some(detail) = &self.detail
            && *detail != failed.detail
        {
            differences.add("detail", detail, &failed.detail);
        }
    }
}

impl Body {
    fn of(content_type: &str, body: &Bytes) -> Self {
        let essence = content_type.split(';').next().unwrap_or_default().trim_end();
        if essence.ends_with("json")
            && let Ok(json) = serde_json::from_slice(body)
            && json != Value::Null
        {
            return Self::Json(json);
        }
        match std::str::from_utf8(body) {
            Ok(text)
                if essence.starts_with("text/") || essence.ends_with("json") || text.is_empty() =>
            {
                Self::Text(text.to_owned())
            }
            _ => Self::Sha256(digest_of(body)),
        }
    }

    fn compare(&self, found: &Bytes, tolerance: f64, differences: &mut Differences) {
        match self {
            Self::Json(expected) => match serde_json::from_slice(found) {
                Ok(found) => differences.add_json(expected, &found, tolerance),
                Err(error) => {
                    let found = format!("{:?}, which is not JSON: {error}", lossy(found));
                    differences.add("$", expected.to_string(), found);
                }
            },
            Self::Text(expected) if expected.as_bytes() == found => {}
            Self::Text(expected) => compare_texts(expected, &lossy(found), differences),
            Self::Sha256(expected) => {
                let digest = digest_of(found);
                if *expected != digest {
                    let found = format!("{digest} ({} bytes)", found.len());
                    differences.add("body_sha256", expected.to_string(), found);
                }
            }
        }
    }
}

/// The first line that differs.
fn compare_texts(expected: &str, found: &str, differences: &mut Differences) {
    let (mut one, mut other) = (expected.split('\n'), found.split('\n'));
    for number in 1_usize.. {
        match (one.next(), other.next()) {
            (None, None) => return,
            (expected, found) if expected == found => {}
            (expected, found) => {
                let shown =
                    |line: Option<&str>| line.map_or("nothing".into(), |line| format!("{line:?}"));
                return differences.add(
                    format!("text, line {number}"),
                    shown(expected),
                    shown(found),
                );
            }
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
