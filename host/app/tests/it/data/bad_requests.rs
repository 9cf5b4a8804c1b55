//! Requests that the data plane refuses, each with a code and its fault. `bad_callers` has those
//! that it refuses before it looks for a pipeline.

use serde_json::{Value, json};

use crate::support::deploy::{processor, ranker_body};
use crate::support::files;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;

const ACME_KEY: &str = "the-key-of-acme-1";

/// Two tenants that need a key, `acme` with the pipeline `digits`.
fn keyed() -> Server {
    let server = Server::start();
    server.keyed_tenant("acme", ACME_KEY);
    server.keyed_tenant("other", "the-key-of-other-1");
    server.digits_for("acme");
    server
}

#[test]
fn an_unknown_pipeline() {
    let server = keyed();
    let answer = server.data.with_token(ACME_KEY).post("/v1/acme/infer/digist", b"");
    let named = ["tenant \"acme\" has no pipeline \"digist\"", "it has: digits"];
    answer.refused(404, "pipeline_not_found", &named);

    let answer = server.data.with_token("the-key-of-other-1").post("/v1/other/infer", b"");
    answer.refused(404, "pipeline_not_found", &["tenant \"other\" has no pipeline"]);
    let answer = server.data.with_token("the-key-of-other-1").post("/v1/other/infer/it", b"");
    answer.refused(404, "pipeline_not_found", &["tenant \"other\" has no pipeline"]);
}

#[test]
fn credentials_of_another_kind_are_not_those_of_nobody() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.digits("acme");
    assert_eq!(server.data.get("/v2/models").status, 200);
    let basic = [("authorization", "Basic dXNlcjpwYXNz")];
    let answer = server.data.send("GET", "/v2/models", &basic, None);
    assert_eq!(answer.status, 401, "{}", answer.text());
}

/// A server whose pipeline takes bodies of up to 100 bytes.
fn small_bodies() -> Server {
    let server = Server::start();
    server.digits("acme");
    server.pipeline("acme", "digits", &processor("digits", json!({ "body_bytes": 100 })));
    server
}

#[test]
fn a_body_that_says_it_is_too_large_is_refused_unread() {
    let server = small_bodies();
    let head = raw::post("/v1/acme/infer", &["connection: close", "content-length: 101"]);
    for begun in ["", "the body's beginning"] {
        let answer = Raw::sent(&server.data, &format!("{head}{begun}")).answer();
        answer.refused(413, "body_too_large", &["limit of 100 bytes"]);
    }
    // A body just within the limit is read, and is not an image.
    server.data.post("/v1/acme/infer", &[b'a'; 100]).refused(415, "unsupported_media_type", &[]);
}

#[test]
fn a_body_that_turns_out_too_large_is_refused_before_its_end() {
    let server = small_bodies();
    let chunked = ["connection: close", "transfer-encoding: chunked"];
    let head = raw::post("/v1/acme/infer", &chunked);
    // 101 bytes in one chunk and in two, and nothing that ends the body.
    let one = format!("{head}65\r\n{}\r\n", "a".repeat(0x65));
    let two = format!("{head}32\r\n{0}\r\n33\r\n{0}a\r\n", "a".repeat(0x32));
    for request in [one, two] {
        let answer = Raw::sent(&server.data, &request).answer();
        answer.refused(413, "body_too_large", &["limit of 100 bytes"]);
    }
}

#[test]
fn a_body_that_does_not_arrive() {
    let server = Server::start();
    server.digits("acme");
    server.pipeline("acme", "digits", &processor("digits", json!({ "timeout_ms": 200 })));
    let head = raw::post("/v1/acme/infer", &["connection: close", "content-length: 9"]);
    let answer = Raw::sent(&server.data, &format!("{head}abc")).answer();
    answer.refused(408, "request_timeout", &["did not arrive within the timeout"]);
}

#[test]
fn what_is_not_a_picture() {
    let server = Server::start();
    server.digits("acme");
    for body in ["", "hello"] {
        let answer = server.data.post("/v1/acme/infer", body.as_bytes());
        answer.refused(415, "unsupported_media_type", &["not a JPEG, PNG, WebP, BMP or GIF"]);
    }
}

#[test]
fn a_truncated_picture() {
    let server = Server::start();
    server.digits("acme");
    for name in ["seven.png", "three.jpg"] {
        let picture = files::sample(name);
        let answer = server.data.post("/v1/acme/infer", &picture[..picture.len() / 100]);
        answer.refused(400, "invalid_request", &["malformed image"]);
    }
    let picture = files::sample("seven.png");
    let answer = server.data.post("/v1/acme/infer", &picture[..picture.len() / 2]);
    answer.refused(400, "invalid_request", &["malformed image"]);
}

#[test]
fn a_truncated_picture_that_is_decoded_leniently() {
    let server = Server::start();
    server.hostile("acme");
    for name in ["seven.png", "three.jpg"] {
        let picture = files::sample(name);
        let early = &picture[..picture.len() * 3 / 4];
        let strict = server.data.post("/v1/acme/infer/hostile?do=pixels", early);
        strict.refused(400, "invalid_request", &["malformed image"]);
        let lenient = "/v1/acme/infer/hostile?do=pixels-lenient";
        let (whole, part) = (server.data.post(lenient, &picture), server.data.post(lenient, early));
        assert_eq!((whole.status, part.status), (200, 200), "{name}: {}", part.text());
        assert_eq!(whole.body.len(), part.body.len(), "{name}");
        assert_ne!(whole.body, part.body, "{name}");
        let same = whole.body.iter().zip(&part.body).take_while(|(byte, other)| byte == other);
        assert!(same.count() > whole.body.len() / 4, "{name}");
    }
}

#[test]
fn a_form_without_its_boundary() {
    let server = Server::start();
    server.digits("acme");
    for kind in ["multipart/form-data", "multipart/form-data; boundary=edge"] {
        let kind = [("content-type", kind)];
        let answer = server.data.send("POST", "/v1/acme/infer", &kind, Some(b"no form at all"));
        answer.refused(400, "invalid_request", &["the multipart body cannot be read"]);
    }
}

/// What `curl -F` sends to a plugin that reads the body.
#[test]
fn a_form_for_a_plugin_that_looks_at_the_body_only() {
    let server = Server::start();
    server.hostile("acme");
    server.ranker("rank");
    let form = [("content-type", "multipart/form-data; boundary=edge")];
    let body = "--edge\r\ncontent-disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\
                \r\nnot a picture\r\n--edge--\r\n";
    let send = |path: &str| server.data.send("POST", path, &form, Some(body.as_bytes()));
    let hint = "the request is a form (multipart/form-data): its body is empty, and the plugin did \
                not look at its parts";
    let answer = send("/v1/acme/infer/hostile?do=thumbnail");
    answer.refused(415, "unsupported_media_type", &["not a JPEG", hint]);
    send("/v1/rank/infer").refused(400, "invalid_request", &["invalid JSON", hint]);
    // This one takes the first part.
    server.digits("read");
    let error = send("/v1/read/infer").refused(415, "unsupported_media_type", &["not a JPEG"]);
    assert!(!error.contains("form"), "{error}");
    // A body without parts.
    let answer = server.data.post("/v1/acme/infer/hostile?do=thumbnail", b"not a picture");
    let error = answer.refused(415, "unsupported_media_type", &["not a JPEG"]);
    assert!(!error.contains("form"), "{error}");
}

#[test]
fn items_that_the_ranker_cannot_take() {
    let server = Server::start();
    server.ranker("acme");
    let rank = |body: &str| server.data.post("/v1/acme/infer", body.as_bytes());
    let (good, short) = (json!([0.5_f32; 32].to_vec()), json!([0.5_f32; 31].to_vec()));
    let body = ranker_body(&[good.clone(), short]).to_string();
    rank(&body).refused(400, "invalid_request", &["items[1].features has 31 numbers, not 32"]);
    rank("{\"items\":[]}").refused(400, "invalid_request", &["items is empty"]);
    rank("{\"items\":[{\"id\":\"a\"}]}").refused(
        400,
        "invalid_request",
        &["missing field `features`"],
    );
    rank("{\"items\":").refused(400, "invalid_request", &["invalid JSON", "line 1"]);

    server.put_json(
        "models/ranker/config",
        &json!({ "max_batch_size": 4, "max_queue_rows": 8, "max_tenant_queue_rows": 8 }),
    );
    let many = |count| ranker_body(&vec![good.clone(); count]).to_string();
    let named = ["request has 9 rows", "queue holds at most 8"];
    rank(&many(9)).refused(422, "unprocessable", &named);
    let ranked: Value = serde_json::from_str(&rank(&many(7)).text()).unwrap();
    assert_eq!(ranked["items"].as_array().map(Vec::len), Some(7), "more than a batch holds");
}

#[test]
fn headers_without_end() {
    let server = Server::start();
    let head =
        format!("GET /livez HTTP/1.1\r\nhost: a\r\nx-long: {}\r\n\r\n", "a".repeat(64 << 10));
    let answer = Raw::sent(&server.data, &head).answer();
    assert_eq!(answer.status, 431);
    assert_eq!(server.data.get("/livez").status, 200);
}

#[test]
fn what_is_not_http() {
    let server = Server::start();
    assert_eq!(Raw::sent(&server.data, "not HTTP at all\r\n\r\n").answer().status, 400);
    assert_eq!(server.data.get("/livez").status, 200);
}

#[test]
fn an_answer_does_not_wait_for_the_next_request() {
    let server = Server::start();
    let one_and_a_bit = "GET /livez HTTP/1.1\r\nhost: a\r\n\r\nGET /li";
    let mut connection = Raw::sent(&server.data, one_and_a_bit);
    assert!(connection.read_until("live").starts_with("HTTP/1.1 200 "));
    connection.send(b"vez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let answer = connection.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "live"));
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let server = Setup::new().flag("--header-timeout-s", "1").start();
    for text in ["", "GET /livez HTTP/1.1\r\nhost: a\r\n"] {
        for plane in [&server.data, &server.admin] {
            let answer = Raw::sent(plane, text).read_to_end();
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
        }
    }
    assert_eq!(server.data.get("/livez").status, 200);
}
