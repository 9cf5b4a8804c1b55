use serde_json::json;

use super::*;

fn response(content_type: &str, body: &str) -> SampleAnswer {
    let body = Bytes::from(body.to_owned());
    SampleAnswer::Response { status: 200, content_type: content_type.into(), body }
}

fn failed(code: ErrorCode, detail: &str) -> SampleAnswer {
    let detail = detail.into();
    SampleAnswer::Failed(SampleFailure { status: 400, code, detail, internal: None })
}

fn mismatches(expectation: Value, answer: &SampleAnswer) -> Vec<String> {
    let expectation: Expectation = serde_json::from_value(expectation).unwrap();
    let mismatches = expectation.mismatches(answer, 1e-4).first;
    mismatches.iter().map(ToString::to_string).collect()
}

#[test]
fn each_part_is_compared_and_named() {
    let answer = response("application/json", r#"{"label": 3}"#);
    let expected = json!({ "status": 201, "content_type": "a/b", "json": { "label": 4 } });
    assert_eq!(
        mismatches(expected, &answer),
        [
            "status: expected 201, found 200",
            "content_type: expected a/b, found application/json",
            "$.label: expected 4, found 3",
        ]
    );
    let at = json!({ "at": { "/label": 4, "/top": 1 } });
    let texts = mismatches(at, &answer);
    assert_eq!(texts, ["$.label: expected 4, found 3", "$.top: expected 1, found nothing"]);
    let text = response("text/plain", "one\ntwo");
    let line_2 = ["text, line 2: expected \"2\", found \"two\""];
    assert_eq!(mismatches(json!({ "text": "one\n2" }), &text), line_2);
    let gone = ["text, line 2: expected nothing, found \"two\""];
    assert_eq!(mismatches(json!({ "text": "one" }), &text), gone);
    for json in [json!({ "json": 1 }), json!({ "at": { "/a": 1 } })] {
        let texts = mismatches(json, &text);
        assert!(texts[0].starts_with("$: ") && texts[0].contains("not JSON"), "{texts:?}");
    }
    let texts = mismatches(json!({ "body_sha256": Digest::of(b"one") }), &text);
    assert!(texts[0].starts_with("body_sha256: expected sha256:"), "{texts:?}");
}

#[test]
fn the_expectations_own_tolerance_goes_first() {
    let answer = response("application/json", "1.05");
    assert!(mismatches(json!({ "json": 1.0, "tolerance": 0.1 }), &answer).is_empty());
    assert_eq!(mismatches(json!({ "json": 1.0 }), &answer).len(), 1);
}

/// Of a sample with this expectation.
fn of_sample(expectation: Value, answer: &SampleAnswer) -> Vec<String> {
    let sample = json!({ "name": "one", "request": {}, "expect": expectation });
    let sample: Sample = serde_json::from_value(sample).unwrap();
    sample.mismatches(answer).first.iter().map(ToString::to_string).collect()
}

#[test]
fn a_sample_expects_success_unless_it_says_otherwise() {
    let refused = failed(ErrorCode::InvalidRequest, "no rows");
    assert_eq!(of_sample(json!({}), &refused), ["status: expected 200, found 400"]);
    for expected in [json!({ "status": 400 }), json!({ "code": "invalid_request" })] {
        assert!(of_sample(expected, &refused).is_empty());
    }
}

#[test]
fn a_samples_answer_that_is_too_large_for_a_document_differs() {
    let answer = response("application/json", &format!("[{}]", " ".repeat(1 << 20)));
    let texts = of_sample(json!({ "json": [] }), &answer);
    assert_eq!(texts, ["$: expected at most 1048576 bytes of JSON, found 1048578 bytes"]);
    assert!(of_sample(json!({ "status": 200 }), &answer).is_empty());
}

#[test]
fn an_answer_is_not_a_failure_and_another_failure_is_named() {
    let answer = response("text/plain", "fine");
    let refused = failed(ErrorCode::InvalidRequest, "no rows");
    let expected = json!({ "code": "invalid_request", "detail": "no rows" });
    assert!(mismatches(expected.clone(), &refused).is_empty());
    assert!(mismatches(json!({ "status": 400 }), &refused).is_empty());
    let ok = json!({ "status": 200 });
    assert_eq!(mismatches(ok, &refused), ["status: expected 200, found 400"]);
    let texts = mismatches(expected.clone(), &answer);
    assert_eq!(texts, ["code: expected invalid_request, found an answer"]);
    let texts = mismatches(json!({ "text": "fine" }), &refused);
    assert_eq!(texts, ["code: expected an answer, found invalid_request"]);
    let other = failed(ErrorCode::Unprocessable, "no columns");
    assert_eq!(
        mismatches(expected, &other),
        [
            "code: expected invalid_request, found unprocessable",
            "detail: expected no rows, found no columns",
        ]
    );
}
