//! The edge of `/v1`: the parts of a plugin's answer that reach the client, encodings, methods.

use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::support::client::TestAnswer;
use crate::support::files;
use crate::support::server::Server;

const DIGITS: &str = "/v1/acme/infer/digits";

fn answered(deed: &str) -> TestAnswer {
    let server = Server::start();
    server.hostile("acme");
    server.data.post(&format!("/v1/acme/infer/patient?do={deed}"), b"")
}

#[test]
fn headers_that_proxies_obey_do_not_pass() {
    let answer = answered("redirect-headers");
    assert_eq!((answer.status, answer.text().as_str()), (200, ""));
    let mut names: Vec<_> = answer.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    let expected = [
        "content-length",
        "content-type",
        "date",
        "gristmill-provider",
        "gristmill-release",
        "server-timing",
        "vary",
        "x-content-type-options",
        "x-plugin-own",
        "x-request-id",
    ];
    assert_eq!(names, expected);
    assert_ne!(answer.header("x-request-id"), "/etc/passwd");
    assert_eq!(answer.header("vary"), "origin");
}

#[test]
fn a_page_of_a_plugin_does_not_run_with_the_origin_of_the_server() {
    let server = Server::start();
    server.hostile("acme");
    for deed in ["page", "page-by-comma", "picture-with-script"] {
        let answer = server.data.post(&format!("/v1/acme/infer/patient?do={deed}"), b"");
        assert_eq!(answer.status, 200, "{deed}: {}", answer.text());
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{deed}");
        let policies = answer.headers.get_all("content-security-policy");
        let policies: Vec<_> = policies.iter().map(|policy| policy.to_str().unwrap()).collect();
        assert_eq!(policies.len(), 1, "{deed}: {policies:?}");
        let mut words = policies[0].split(' ');
        assert_eq!(words.next(), Some("sandbox"), "{deed}");
        assert!(words.all(|word| word != "allow-same-origin"), "{deed}: {policies:?}");
    }
}

#[test]
fn what_goes_before_a_body_is_bounded() {
    for (deed, named) in [
        ("40000-headers", "40000 headers are over the limit of 64"),
        ("large-headers", "in all are over the limit of 16384"),
        ("huge-content-type", "content type of 8388613 bytes is over the limit of 256"),
    ] {
        answered(deed).refused(500, "plugin_invalid_output", &["post", named]);
    }
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_body_may_be_compressed() {
    let server = Server::start();
    server.digits("acme");
    let post = |encoding: &str, body: &[u8]| {
        server.data.send("POST", DIGITS, &[("content-encoding", encoding)], Some(body))
    };
    let picture = files::digit(5);
    for (encoding, body) in [
        ("gzip", gzipped(&picture)),
        ("Deflate", deflated(&picture)),
        ("identity", picture.clone()),
    ] {
        assert_eq!(post(encoding, &body).ok()["label"], 5, "{encoding}");
    }
    let unknown = ["gzip and deflate are supported"];
    post("br", &picture).refused(415, "unsupported_media_type", &unknown);
    post("gzip, gzip", &picture).refused(415, "unsupported_media_type", &unknown);
    post("gzip", &picture).refused(400, "invalid_request", &["the body is not valid gzip"]);
    let bomb = gzipped(&vec![0; 17 << 20]);
    let limit = ["decompressed body is over the limit of 16777216 bytes"];
    post("gzip", &bomb).refused(413, "body_too_large", &limit);
}

#[test]
fn head_is_get_without_a_body_and_options_tell_the_methods() {
    let server = Server::start();
    server.digits("acme");
    for path in ["/livez", "/readyz", "/v1/acme", "/v2", "/v2/health/ready", "/v1/acme/v2/models"] {
        let (get, head) = (server.data.get(path), server.data.send("HEAD", path, &[], None));
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        assert_eq!(head.header("content-length"), get.body.len().to_string(), "{path}");
        assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
    }
    let options = |path: &str| {
        let answer = server.data.send("OPTIONS", path, &[], None);
        (answer.status, answer.header("allow").to_owned(), answer.body.len())
    };
    for path in ["/livez", "/v1/nobody", "/v2/models/digits"] {
        assert_eq!(options(path), (204, "GET, HEAD, OPTIONS".into(), 0), "{path}");
    }
    for path in [DIGITS, "/v1/nobody/infer", "/v2/models/digits/infer"] {
        assert_eq!(options(path), (204, "POST, OPTIONS".into(), 0), "{path}");
    }
    assert_eq!(options("/nowhere").0, 404);
    assert_eq!(server.admin.send("HEAD", "/admin/v1/status", &[], None).status, 200);
}

#[test]
fn a_refused_change_says_that_its_connection_closes() {
    let server = Server::start();
    let refused = |body: &[u8]| {
        let answer = server.admin.without_token().put("/admin/v1/tenants/acme", body);
        (answer.status, answer.header("connection").to_owned())
    };
    // The rest of a short body is read, and the rest of a long one is not.
    assert_eq!(refused(b"{}"), (401, String::new()));
    assert_eq!(refused(&vec![b' '; 4 << 20]), (401, "close".into()));
}
