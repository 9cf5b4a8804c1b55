//! The stream of events that pages follow: who gets what, and when it ends.

use serde_json::{Value, json};

use crate::support::admin_api::{make, put_token, secret_in};
use crate::support::client::Client;
use crate::support::planes::Planes;
use crate::support::raw::Raw;
use crate::support::server::Server;

const EVENTS: &str = "/admin/v1/events";

/// The kind and the data of the event that this text ends with.
fn last_event(text: &str) -> (String, Value) {
    let event = &text[text.rfind("event: ").unwrap()..];
    let mut lines = event.lines();
    let kind = lines.next().unwrap()["event: ".len()..].to_owned();
    let data = lines.find_map(|line| line.strip_prefix("data: ")).unwrap();
    (kind, serde_json::from_str(data).unwrap())
}

/// The only event of a client that asks for no stream.
fn event_for(client: &Client) -> Value {
    let answer = client.get(EVENTS);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "text/event-stream");
    assert_eq!(answer.header("cache-control"), "no-store");
    let (kind, data) = last_event(&answer.text());
    assert_eq!(kind, "all");
    data
}

/// A stream of the holder of this token, after its first event.
fn follow(server: &Server, token: &str) -> Raw {
    let head = format!(
        "GET {EVENTS} HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\
         authorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    let mut stream = Raw::sent(&server.admin, &head);
    let first = stream.read_until("\n\n\r\n");
    assert_eq!(last_event(&first).0, "all");
    stream
}

#[test]
fn an_event_has_what_its_reader_may_see() {
    let planes = Planes::open();
    let open = json!({ "open": true });
    for tenant in ["acme", "other"] {
        planes.admin.put_json(&format!("/admin/v1/tenants/{tenant}"), &open).ok();
    }
    let all = event_for(&planes.admin);
    assert_eq!(all["status"]["tenants"].as_object().unwrap().len(), 2);
    assert!(all["metrics"].as_str().unwrap().contains("\ngristmill_"), "{all}");
    let ci = json!({ "role": "deploy", "tenants": ["acme"] });
    let secret = secret_in(&put_token(&planes.admin, "ci", &ci).ok()).unwrap();
    let own_event = event_for(&planes.admin.with_token(&secret));
    let tenants: Vec<_> = own_event["status"]["tenants"].as_object().unwrap().keys().collect();
    assert_eq!(tenants, ["acme"]);
    assert!(
        own_event["metrics"].is_null() && own_event["status"]["process"].is_null(),
        "{own_event}"
    );
    let path = format!("{EVENTS}?a=1");
    planes.admin.get(&path).refused(400, "invalid_request", &["unknown parameter"]);
}

#[test]
fn a_stream_says_what_changes_and_ends_with_its_token() {
    let server = Server::start();
    // The tenant exists before, because another one brings metrics, and then all is sent.
    server.keyed_tenant("acme", "the-key-of-acme-1");
    let token = make(&server, "eyes", &json!({ "role": "read" }));
    let mut stream = follow(&server, &token);
    let release = server.open_tenant("acme");
    loop {
        let text = stream.read_until("\n\n\r\n");
        // Nothing has changed.
        if !text.contains("event: ") {
            continue;
        }
        let (kind, data) = last_event(&text);
        if data["status"]["release"] == release {
            assert_eq!(kind, "changes");
            assert_eq!(data["status"]["tenants"]["acme"]["open"], true);
            assert!(data["status"]["version"].is_null(), "it has not changed: {data}");
            break;
        }
    }
    server.admin.delete("/admin/v1/tokens/eyes").ok();
    assert!(stream.read_to_end().ends_with("0\r\n\r\n"));
}

#[test]
fn streams_end_when_the_server_stops() {
    let server = Server::start();
    let token = make(&server, "eyes", &json!({ "role": "read" }));
    let mut stream = follow(&server, &token);
    server.signal_terminate();
    assert!(stream.read_to_end().ends_with("0\r\n\r\n"));
    let (_, status, setup) = server.wait();
    let log = setup.log();
    assert!(status.success() && !log.contains("still under way"), "{log}");
}
