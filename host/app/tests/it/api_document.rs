//! The description of the admin API: an OpenAPI document and a page, for everyone.

use serde_json::Value;

use crate::support::server::Server;

/// The document that the repository keeps.
const KEPT: &str = include_str!("../../../admin/openapi.json");

const DOCUMENT: &str = "/admin/v1/openapi.json";
const PAGE: &str = "/admin/v1/docs";

#[test]
fn the_document_is_the_one_that_is_kept() {
    let server = Server::start();
    let answer = server.admin.without_token().get(DOCUMENT);
    assert_eq!(answer.header("content-type"), "application/json");
    let (served, kept): (Value, Value) = (answer.ok(), serde_json::from_str(KEPT).unwrap());
    assert_eq!(served["openapi"], "3.1.0");
    for key in ["info", "paths", "components"] {
        for (name, kept) in kept[key].as_object().unwrap() {
            assert_eq!(&served[key][name], kept, "{key}: {name}: run cargo xtask docs");
        }
    }
    assert!(
        served == kept,
        "the document has more than the one that is kept: run cargo xtask docs"
    );
}

#[test]
fn the_page_runs_no_script_and_loads_nothing() {
    let server = Server::start();
    let answer = server.admin.without_token().get(PAGE);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    let policy = answer.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    let page = answer.text();
    assert!(page.contains("<code>/admin/v1/tenants/{tenant}</code>"), "{page}");
    for without in ["<script", "http:", "https:", " src=", "@import", "url("] {
        assert!(!page.contains(without), "{without}");
    }
}

#[test]
fn both_are_for_readers_only_and_have_tags() {
    let server = Server::start();
    let anyone = server.admin.without_token();
    for path in [DOCUMENT, PAGE] {
        let tag = anyone.get(path).header("etag").to_owned();
        let known = anyone.send("GET", path, &[("if-none-match", &tag)], None);
        assert_eq!((known.status, known.body.len()), (304, 0));
        let answer = anyone.send("OPTIONS", path, &[], None);
        assert_eq!((answer.status, answer.header("allow")), (204, "GET, HEAD, OPTIONS"));
        anyone.put(path, b"{}").refused(405, "method_not_allowed", &["not allowed here"]);
        let refused = anyone.get(&format!("{path}?a=1"));
        refused.refused(400, "invalid_request", &["unknown parameter \"a\""]);
        // A wrong token makes no difference.
        assert_eq!(server.admin.with_token("not-the-admin-token").get(path).status, 200);
    }
    anyone.get("/admin/v1/status").refused(401, "unauthenticated", &["an admin token is needed"]);
}
