//! The file with the expected answer of a request: `NAME.expected.json` beside it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use gristmill_core::Digest;
use gristmill_state::{Document, Expectation, SampleAnswer, SampleFailure};
use serde_json::{Map, Value};

/// The expectation in a file; none if there is no such file.
///
/// # Errors
/// The file cannot be read, or is faulty.
pub(super) fn read(path: &Path) -> Result<Option<Expectation>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.with_context(|| path.display().to_string())?,
    };
    parse(&text).with_context(|| path.display().to_string()).map(Some)
}

fn parse(text: &[u8]) -> Result<Expectation> {
    let keys: Map<String, Value> =
        serde_json::from_slice(text).context("not a JSON object that describes an answer")?;
    let mut document = Document::new(keys);
    let read = Expectation::read(&mut document);
    let faults = document.finish();
    ensure!(faults.is_empty(), "{}", faults.into_texts().join("; "));
    let nothing = Expectation { tolerance: read.tolerance, ..Expectation::default() };
    ensure!(read != nothing, "it expects nothing");
    Ok(read)
}

/// The expectation that this answer meets; none for a failure that is not the client's fault.
pub(super) fn of(answer: &SampleAnswer) -> Option<Expectation> {
    match answer {
        SampleAnswer::Response { status, content_type, body } => Some(Expectation {
            status: Some(*status),
            content_type: Some(content_type.clone()),
            ..of_body(content_type, body)
        }),
        SampleAnswer::Failed(SampleFailure { code, detail, status, .. }) if *status < 500 => {
            let (code, detail) = (Some(code.as_str().into()), Some(detail.clone()));
            Some(Expectation { code, detail, ..Expectation::default() })
        }
        SampleAnswer::Failed(_) => None,
    }
}

/// Whether a failure is expected, by the host or in the plugin's own answer.
pub(super) fn is_of_failure(expectation: &Expectation) -> bool {
    expectation.is_failure() || expectation.status.is_some_and(|status| status >= 400)
}

/// The expectation of a body.
fn of_body(content_type: &str, body: &[u8]) -> Expectation {
    let none = Expectation::default();
    let essence = content_type.split(';').next().unwrap_or_default().trim_end();
    if essence.ends_with("json")
        && let Ok(json) = serde_json::from_slice(body)
        && json != Value::Null
    {
        return Expectation { json: Some(json), ..none };
    }
    match std::str::from_utf8(body) {
        Ok(text)
            if essence.starts_with("text/") || essence.ends_with("json") || text.is_empty() =>
        {
            Expectation { text: Some(text.to_owned()), ..none }
        }
        _ => Expectation { body_sha256: Some(Digest::of(body)), ..none },
    }
}

/// Write the file.
///
/// # Errors
/// It cannot be written.
pub(super) fn write(expectation: &Expectation, path: &Path) -> Result<()> {
    let mut text = serde_json::to_string_pretty(expectation)?;
    text.push('\n');
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gristmill_core::ErrorCode;

    use super::*;

    fn response(content_type: &str, body: &str) -> SampleAnswer {
        let body = Bytes::from(body.to_owned());
        SampleAnswer::Response { status: 200, content_type: content_type.into(), body }
    }

    fn failed(status: u16, code: ErrorCode, detail: &str) -> SampleAnswer {
        SampleAnswer::Failed(SampleFailure { status, code, detail: detail.into(), internal: None })
    }

    #[test]
    fn an_answer_meets_the_expectation_that_is_made_of_it() {
        let answers = [
            response("application/json", r#"{"label": 3, "probability": 0.9999883}"#),
            response("application/json", "null"),
            response("text/plain; charset=utf-8", "three\n"),
            response("image/png", "\u{1}png"),
            response("", ""),
            failed(400, ErrorCode::InvalidRequest, "no rows"),
        ];
        let folder = tempfile::tempdir().unwrap();
        for (index, answer) in answers.iter().enumerate() {
            let path = folder.path().join(index.to_string());
            assert!(read(&path).unwrap().is_none());
            let made = of(answer).unwrap();
            write(&made, &path).unwrap();
            let read = read(&path).unwrap().unwrap();
            assert_eq!(read, made);
            assert!(read.mismatches(answer, 0.0).is_empty(), "{read:?}");
        }
    }

    #[test]
    fn a_fault_of_the_plugin_is_no_expectation() {
        assert_eq!(of(&failed(500, ErrorCode::PluginTrapped, "trapped")), None);
        assert_eq!(of(&failed(504, ErrorCode::PluginTimeout, "too slow")), None);
    }

    #[test]
    fn faults_are_named_with_their_values() {
        let faults = |text: &str| format!("{:#}", parse(text.as_bytes()).unwrap_err());
        let all = faults(r#"{"jsn": 1, "status": "200", "code": "oops", "body_sha256": "abc"}"#);
        for part in ["\"jsn\"", "status is \"200\"", "code is \"oops\"", "body_sha256 is \"abc\""] {
            assert!(all.contains(part), "{part} in {all}");
        }
        assert!(
            faults(r#"{"json": 1, "text": "1"}"#).contains("one of json, text and body_sha256")
        );
        assert!(faults("{}").contains("expects nothing"));
        assert!(faults(r#"{"tolerance": 0.1}"#).contains("expects nothing"));
        assert!(faults("[]").contains("not a JSON object"));
    }
}
