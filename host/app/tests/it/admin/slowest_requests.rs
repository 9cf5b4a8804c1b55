//! The slowest requests that a server keeps.

use serde_json::json;

use crate::support::admin_api::make;
use crate::support::client::Client;
use crate::support::files;
use crate::support::server::Server;

const SLOWEST: &str = "/admin/v1/requests/slowest";

fn ids(client: &Client, query: &str) -> Vec<String> {
    let answer = client.get(&format!("{SLOWEST}{query}")).ok();
    let items = answer["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn slow_requests_are_kept_with_their_stages_for_those_who_may_see_them() {
    let server = Server::start();
    for tenant in ["demo", "other"] {
        server.open_tenant(tenant);
        server.digits_for(tenant);
        let (path, id) = (format!("/v1/{tenant}/infer/digits"), format!("of-{tenant}"));
        let headers = [("x-request-id", id.as_str())];
        server.data.send("POST", &path, &headers, Some(&files::sample("seven.png"))).ok();
        server.data.send("POST", &path, &headers, Some(b"no picture"));
    }
    // A request without a pipeline is nobody's.
    server.data.post("/v1/demo/infer/none", b"").refused(404, "pipeline_not_found", &["none"]);
    let answer = server.admin.get(&format!("{SLOWEST}?tenant=demo")).ok();
    let items = answer["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "{answer}");
    let of = |code: &str| items.iter().find(|item| item["code"] == code).unwrap();
    let answered = of("ok");
    for (key, value) in [("id", "of-demo"), ("tenant", "demo"), ("pipeline", "digits")] {
        assert_eq!(answered[key], value, "{answer}");
    }
    for stage in ["pre", "queue", "infer", "post"] {
        assert!(answered["stages_us"][stage].is_u64(), "{answer}");
    }
    assert_eq!(answered["receipt"]["rows"], 1);
    assert!(of("unsupported_media_type")["stages_us"]["infer"].is_null(), "{answer}");
    let work = |item: &serde_json::Value| {
        let read = item["stages_us"]["read"].as_u64().unwrap_or_default();
        item["took_us"].as_u64().unwrap() - read
    };
    assert!(work(&items[0]) >= work(&items[1]), "{answer}");

    assert_eq!(ids(&server.admin, "").len(), 4);
    assert_eq!(ids(&server.admin, "?limit=1").len(), 1);
    let ci = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["other"] }));
    let ci = server.admin.with_token(&ci);
    assert_eq!(ids(&ci, ""), ["of-other", "of-other"]);
    assert!(ids(&ci, "?tenant=demo").is_empty());
}
