//! The sample plugins in each language answer as those in Rust do, in a fresh instance for each
//! call and in one that stays.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

/// The difference that two numbers may have: languages add and round in another order.
const TOLERANCE: f64 = 1e-4;

/// A server with the samples of this language, as the tenant that has its name, and those of Rust.
#[track_caller]
fn deployed(language: &str) -> Server {
    let server = Setup::new().with_runtimes().start();
    server.digits("rust");
    server.open_tenant(language);
    server.model("ranker");
    server.plugin(language, "digits", &format!("digits-{language}"));
    server.plugin(language, "ranker", &format!("ranker-{language}"));
    server
}

/// Fails unless both pipelines of the language answer as they should.
#[track_caller]
fn assert_serves(language: &str) {
    let server = deployed(language);
    for reuse in ["none", "tenant"] {
        let mut digits = processor("digits", json!({}));
        digits["instance_reuse"] = json!(reuse);
        server.pipeline(language, "digits", &digits);
        let ranker = json!({ "pre": "ranker", "model": "ranker", "post": "ranker",
                             "instance_reuse": reuse });
        server.pipeline(language, "ranker", &ranker);
        for digit in 0..10 {
            let photo = files::digit(digit);
            let ask =
                |tenant: &str| server.data.post(&format!("/v1/{tenant}/infer/digits"), &photo).ok();
            let (expected, answered) = (ask("rust"), ask(language));
            assert!(is_close(&expected, &answered), "{reuse}, {digit}: {expected}, {answered}");
        }
        assert_reads_base64(&server, language);
        server.assert_reads_digits(language);
        server.assert_ranks(language);
    }
}

/// Fails unless the pipeline `digits` reads a photo in JSON, and says what is wrong with other
/// texts.
#[track_caller]
fn assert_reads_base64(server: &Server, tenant: &str) {
    let ask = |image: Value| {
        let json = [("content-type", "application/json")];
        let body = json!({ "image": image }).to_string();
        server.data.send(
            "POST",
            &format!("/v1/{tenant}/infer/digits"),
            &json,
            Some(body.as_bytes()),
        )
    };
    let photo = files::digit(7);
    let text = STANDARD.encode(&photo);
    let answered = server.data.post(&format!("/v1/{tenant}/infer/digits"), &photo).ok();
    let url = format!("data:image/png;base64,{text}");
    let lines = text.as_bytes().chunks(76).map(String::from_utf8_lossy).collect::<Vec<_>>();
    for sent in [&text, &url, &lines.join("\r\n"), &URL_SAFE_NO_PAD.encode(&photo)] {
        assert_eq!(ask(json!(sent)).ok(), answered, "{tenant}: {sent:.40}");
    }
    for (sent, named) in [
        (json!("iVBORw0K!"), "base64 has '!' at position 8"),
        (json!("data:image/png,iVBO"), "has no \";base64\""),
        (json!(7), ""),
        (json!(text[..text.len() / 8 * 4]), "malformed image"),
    ] {
        ask(sent).refused(400, "invalid_request", &[named]);
    }
    ask(json!("TWFu")).refused(415, "unsupported_media_type", &["not a JPEG"]);
}

/// Whether two documents are equal, but for small differences of numbers.
fn is_close(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let number = |number: &serde_json::Number| number.as_f64().unwrap();
            (number(one) - number(other)).abs() <= TOLERANCE
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_close(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(key, one): (&String, &Value)| {
                other.get(key).is_some_and(|other| is_close(one, other))
            };
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

#[test]
fn documents_are_compared_with_a_tolerance() {
    let document = json!({ "a": [1, 0.5], "b": "c" });
    assert!(is_close(&document, &json!({ "b": "c", "a": [1, 0.500_001] })));
    for other in [
        json!({ "a": [1, 0.51], "b": "c" }),
        json!({ "a": [1], "b": "c" }),
        json!({ "a": [1, 0.5], "b": "d" }),
        json!({ "a": [1, 0.5] }),
    ] {
        assert!(!is_close(&document, &other), "{other}");
    }
}

#[test]
fn python_serves() {
    assert_serves("python");
}

#[test]
fn javascript_serves() {
    assert_serves("js");
}

#[test]
fn c_serves() {
    assert_serves("c");
}

#[test]
fn rust_serves_in_instances_that_stay() {
    let server = Server::start();
    server.digits("acme");
    server.ranker("acme");
    let mut digits = processor("digits", json!({}));
    digits["instance_reuse"] = json!("tenant");
    server.pipeline("acme", "digits", &digits);
    let ranker = json!({ "pre": "ranker-pre", "model": "ranker", "post": "ranker-post",
                         "instance_reuse": "tenant" });
    server.pipeline("acme", "ranker", &ranker);
    assert_reads_base64(&server, "acme");
    server.assert_reads_digits("acme");
    server.assert_ranks("acme");
}
