use serde::Deserialize;
use serde_json::json;

use crate::{Failure, testing};

fn invalid_input(failure: Option<Failure>) -> String {
    match failure {
        Some(Failure::InvalidInput(text)) => text,
        other => panic!("{other:?} is not invalid-input"),
    }
}

#[test]
fn a_body_is_read_as_bytes_text_and_json() {
    let request = testing::request().json(&json!({ "a": [1, 2] })).build();
    assert_eq!(request.body_bytes(), b"{\"a\":[1,2]}");
    assert_eq!(request.text().unwrap(), "{\"a\":[1,2]}");
    assert_eq!(request.json::<serde_json::Value>().unwrap(), json!({ "a": [1, 2] }));
    assert_eq!(request.content_type().as_deref(), Some("application/json"));
    assert_eq!(request.body().read(1, 3), b"\"a\"");
    assert_eq!(request.body().slice(1, 3).bytes(), b"\"a\"");
    assert_eq!(request.body().slice(9, 9).bytes(), b"]}");
}

#[test]
fn a_body_of_the_wrong_form_is_the_clients_fault() {
    let request = testing::request().body([b'"', 0xff, b'"']).build();
    assert!(invalid_input(request.text().err()).starts_with("invalid text: "));
    assert!(invalid_input(request.json::<String>().err()).starts_with("invalid JSON: "));
    let request = testing::request().body("[1,\n x]").build();
    assert!(invalid_input(request.json::<Vec<u8>>().err()).contains("line 2 column 2"));
    let deep = testing::request().body("[".repeat(100_000)).build();
    let text = invalid_input(deep.json::<serde_json::Value>().err());
    assert!(text.contains("recursion limit exceeded"), "{text}");
}

#[test]
fn headers_and_query_are_found_by_name() {
    let request = testing::request()
        .header("X-Trace", "a")
        .header("x-trace", "b")
        .query("top", "3")
        .query("empty", "")
        .build();
    assert_eq!(request.header("x-trace").as_deref(), Some("a"));
    assert_eq!(request.header("accept"), None);
    assert_eq!(request.query_value("top").as_deref(), Some("3"));
    assert_eq!(request.query_value("empty").as_deref(), Some(""));
    assert_eq!(request.query_value("bottom"), None);
    assert_eq!(request.query().len(), 2);
}

#[test]
fn a_form_has_its_parts() {
    let request = testing::request()
        .part("note", "hello")
        .file("photo", "a.png", "image/png", [1, 2])
        .build();
    assert_eq!(request.content_type().as_deref(), Some("multipart/form-data"));
    let parts = request.parts();
    assert_eq!(parts[0].name, "note");
    assert_eq!((parts[0].body.bytes(), parts[0].filename.as_deref()), (b"hello".to_vec(), None));
    assert_eq!((parts[1].body.len(), parts[1].filename.as_deref()), (2, Some("a.png")));
    assert_eq!(parts[1].content_type.as_deref(), Some("image/png"));
}

#[test]
fn a_context_has_names_settings_and_time() {
    #[derive(Debug, Deserialize)]
    struct Settings {
        top: u8,
    }
    let context = testing::context()
        .tenant("acme")
        .pipeline("digits")
        .model("cnn")
        .request_id("r1")
        .time_left(5)
        .settings(&json!({ "top": 3 }))
        .build();
    let names = [context.tenant(), context.pipeline(), context.model(), context.request_id()];
    assert_eq!(names, ["acme", "digits", "cnn", "r1"]);
    assert_eq!(context.time_left(), 5);
    assert_eq!(context.settings_as::<Settings>().unwrap().top, 3);
    let empty = testing::context().build().settings_as::<Settings>().unwrap_err();
    let Failure::Internal(text) = empty else { panic!("{empty:?}") };
    assert!(text.starts_with("the pipeline's settings: missing field `top`"), "{text}");
}
