//! Calls of the admin API: paths, tags, uploads, releases and tokens.

use serde_json::{Value, json};

use super::client::{Client, TestAnswer};
use super::server::Server;

pub(crate) const KEY: &str = "the-key-of-acme-1";
pub(crate) const NEW_KEY: &str = "the-key-of-acme-2";

/// The path of something in the admin API.
pub(crate) fn path(below: &str) -> String {
    format!("/admin/v1/{below}")
}

/// Read something of the admin API.
#[track_caller]
pub(crate) fn read(server: &Server, below: &str) -> Value {
    server.admin.get(&path(below)).ok()
}

/// The tag of something, with its quotes.
#[track_caller]
pub(crate) fn tag(server: &Server, below: &str) -> String {
    let answer = server.admin.get(&path(below));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let tag = answer.header("etag").to_owned();
    assert!(tag.len() == 66 && tag.starts_with('"') && tag.ends_with('"'), "{below}: {tag:?}");
    tag
}

/// The answer to a request with this one condition.
pub(crate) fn conditional(
    server: &Server,
    call: (&str, &str),
    condition: (&str, &str),
    body: &[u8],
) -> TestAnswer {
    let (method, below) = call;
    server.admin.send(method, &path(below), &[condition], Some(body))
}

/// The tenant `acme` with a key and the pipeline `digits`, and all its parts.
pub(crate) fn start() -> Server {
    let server = Server::start();
    server.keyed_tenant("acme", KEY);
    server.digits_for("acme");
    server
}

/// The digest of a file, as documents name it.
pub(crate) fn digest(file: &[u8]) -> String {
    gristmill_core::Digest::of(file).to_string()
}

/// Upload a file that a release will name. Returns its digest.
#[track_caller]
pub(crate) fn upload(server: &Server, file: &[u8]) -> String {
    let digest = digest(file);
    let answer = server.admin.put(&path(&format!("blobs/{digest}")), file);
    assert_eq!(answer.ok(), json!({ "digest": digest, "bytes": file.len(), "complete": true }));
    digest
}

/// The answer to a document that is posted.
pub(crate) fn post_to(server: &Server, below: &str, document: &Value) -> TestAnswer {
    server.admin.post(&path(below), document.to_string().as_bytes())
}

/// Make a token. Returns its secret.
#[track_caller]
pub(crate) fn make(server: &Server, name: &str, document: &Value) -> String {
    let answer = put_token(&server.admin, name, document);
    assert_eq!(answer.header("cache-control"), "no-store");
    secret_in(&answer.ok()).unwrap()
}

/// The answer to making or changing a token.
pub(crate) fn put_token(admin: &Client, name: &str, document: &Value) -> TestAnswer {
    admin.put_json(&path(&format!("tokens/{name}")), document)
}

/// The secret in an answer, if it shows one.
pub(crate) fn secret_in(answer: &Value) -> Option<String> {
    answer["secret"].as_str().map(str::to_owned)
}
