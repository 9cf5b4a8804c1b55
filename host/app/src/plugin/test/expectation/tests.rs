use super::*;

fn response(content_type: &str, body: &str) -> Answer {
    let body = Bytes::from(body.to_owned());
    Answer::Response { status: 200, content_type: content_type.into(), body }
}

fn failed(code: ErrorCode, detail: &str) -> Answer {
    Answer::Failed(Failed { code, detail: detail.into(), internal: None })
}

fn parse(text: &str) -> Expectation {
    Expectation::parse(text.as_bytes()).unwrap()
}

/// The differences, each as `path: expected/found`.
fn differences(expectation: &str, answer: &Answer) -> Vec<String> {
    let found = parse(expectation).differences(answer, 1e-4).first.into_iter();
    found.map(|one| format!("{}: {}/{}", one.path, one.expected, one.found)).collect()
}

#[test]
fn an_answer_meets_the_expectation_that_is_made_of_it() {
    let answers = [
        response("application/json", r#"{"label": 3, "probability": 0.9999883}"#),
        response("application/json", "null"),
        response("text/plain; charset=utf-8", "three\n"),
        response("image/png", "\u{1}png"),
        response("", ""),
        failed(ErrorCode::InvalidRequest, "no rows"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (index, answer) in answers.iter().enumerate() {
        let path = folder.path().join(index.to_string());
        assert!(Expectation::read(&path).unwrap().is_none());
        let made = Expectation::of(answer).unwrap();
        made.write(&path).unwrap();
        let read = Expectation::read(&path).unwrap().unwrap();
        assert_eq!(read, made);
        assert!(read.differences(answer, 0.0).is_empty(), "{read:?}");
    }
}

#[test]
fn a_fault_of_the_plugin_is_no_expectation() {
    assert_eq!(Expectation::of(&failed(ErrorCode::PluginTrapped, "trapped")), None);
    assert_eq!(Expectation::of(&failed(ErrorCode::PluginTimeout, "too slow")), None);
}

#[test]
fn each_part_is_compared_and_named() {
    let answer = response("application/json", r#"{"label": 3}"#);
    let found =
        differences(r#"{"status": 201, "content_type": "a/b", "json": {"label": 4}}"#, &answer);
    assert_eq!(found, ["status: 201/200", "content_type: a/b/application/json", "$.label: 4/3"]);
    let text = response("text/plain", "one\ntwo");
    assert_eq!(differences(r#"{"text": "one\n2"}"#, &text), ["text, line 2: \"2\"/\"two\""]);
    assert_eq!(differences(r#"{"text": "one"}"#, &text), ["text, line 2: nothing/\"two\""]);
    let found = differences(r#"{"json": 1}"#, &text);
    assert!(found[0].starts_with("$: 1/") && found[0].contains("not JSON"), "{found:?}");
    let digest = digest_of(b"one");
    let found = differences(&format!("{{\"body_sha256\": \"{digest}\"}}"), &text);
    assert!(found[0].starts_with("body_sha256: sha256:"), "{found:?}");
}

#[test]
fn an_answer_is_not_a_failure_and_another_failure_is_named() {
    let answer = response("text/plain", "fine");
    let refused = failed(ErrorCode::InvalidRequest, "no rows");
    let expected = r#"{"code": "invalid_request", "detail": "no rows"}"#;
    assert!(differences(expected, &refused).is_empty());
    assert!(differences(r#"{"status": 400}"#, &refused).is_empty());
    assert_eq!(differences(r#"{"status": 200}"#, &refused), ["status: 200/400"]);
    assert_eq!(differences(expected, &answer), ["code: invalid_request/an answer"]);
    assert_eq!(differences(r#"{"text": "fine"}"#, &refused), ["code: an answer/invalid_request"]);
    let other = failed(ErrorCode::Unprocessable, "no columns");
    assert_eq!(
        differences(expected, &other),
        ["code: invalid_request/unprocessable", "detail: no rows/no columns"]
    );
}

#[test]
fn faults_are_named_with_their_values() {
    let said = |text: &str| format!("{:#}", Expectation::parse(text.as_bytes()).unwrap_err());
    let all = said(r#"{"jsn": 1, "status": "200", "code": "oops", "body_sha256": "abc"}"#);
    for part in ["\"jsn\"", "status is \"200\"", "code is \"oops\"", "body_sha256: \"abc\""] {
        assert!(all.contains(part), "{part} in {all}");
    }
    assert!(said(r#"{"json": 1, "text": "1"}"#).contains("one of json, text and body_sha256"));
    assert!(said(r#"{"code": "internal", "text": "1"}"#).contains("no body"));
    assert!(said("{}").contains("expects nothing"));
    assert!(said("[]").contains("not a JSON object"));
}
