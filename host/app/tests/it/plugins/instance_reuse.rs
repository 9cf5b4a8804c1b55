//! `instance_reuse`: which calls share an instance of a plugin, and when an instance is dropped.
//!
//! The deeds `count..` of the plugin `hostile` answer with the numbers of both calls among those of
//! their instances.

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::server::Server;

/// A server whose tenant `acme` has the plugin `hostile`.
fn server() -> Server {
    let server = Server::start();
    server.hostile("acme");
    server
}

/// Put the tenant's pipeline with this value of `instance_reuse`.
fn put(server: &Server, tenant: &str, pipeline: &str, reuse: &Value) {
    let spec = json!({
        "pre": "hostile", "model": "digits", "post": "hostile", "instance_reuse": reuse,
    });
    server.pipeline(tenant, pipeline, &spec);
}

fn answer(server: &Server, tenant: &str, pipeline: &str, deed: &str) -> TestAnswer {
    server.data.post(&format!("/v1/{tenant}/infer/{pipeline}?do={deed}"), b"")
}

/// The numbers of both calls.
#[track_caller]
fn counted(server: &Server, pipeline: &str) -> String {
    let answer = answer(server, "acme", pipeline, "count");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

/// The bytes that the tenant `acme` holds.
fn held(server: &Server) -> u64 {
    server.status()["tenants"]["acme"]["bytes_under_way"].as_u64().unwrap()
}

#[test]
fn none_is_the_default_and_each_call_has_a_fresh_instance() {
    let server = server();
    put(&server, "acme", "none", &json!("none"));
    for _ in 0..3 {
        assert_eq!(counted(&server, "hostile"), "1 1");
        assert_eq!(counted(&server, "none"), "1 1");
    }
    eventually("nothing is held", || held(&server) == 0);
}

#[test]
fn both_calls_of_a_request_share_an_instance_and_no_others_do() {
    let server = server();
    put(&server, "acme", "request", &json!("request"));
    for _ in 0..3 {
        assert_eq!(counted(&server, "request"), "1 2");
    }
    eventually("nothing is held", || held(&server) == 0);
    // A request that ends between its calls gives its instance back.
    let wrong = answer(&server, "acme", "request", "wrong-name");
    assert_eq!(wrong.status, 500, "{}", wrong.text());
    eventually("nothing is held", || held(&server) == 0);
}

#[test]
fn two_plugins_of_a_request_share_nothing() {
    let server = server();
    server.plugin("acme", "other", "hostile-wasi");
    let spec = json!({
        "pre": "hostile", "model": "digits", "post": "other", "instance_reuse": "request",
    });
    server.pipeline("acme", "two", &spec);
    let answer = answer(&server, "acme", "two", "count");
    assert_eq!((answer.status, answer.text().as_str()), (200, "count 1"));
}

#[test]
fn instances_of_a_tenant_serve_until_their_count_is_reached() {
    let server = server();
    put(&server, "acme", "warm", &json!({ "mode": "tenant", "max_count": 4 }));
    let answers: Vec<_> = (0..4).map(|_| counted(&server, "warm")).collect();
    assert_eq!(answers, ["1 2", "3 4", "1 2", "3 4"]);
}

#[test]
fn an_idle_instance_counts_against_its_tenant_until_its_time_is_over() {
    let server = server();
    put(&server, "acme", "warm", &json!({ "mode": "tenant", "idle_ms": 1000 }));
    assert_eq!(counted(&server, "warm"), "1 2");
    assert!(held(&server) > 64 << 10, "{} bytes", held(&server));
    eventually("the instance is dropped", || held(&server) == 0);
    assert_eq!(counted(&server, "warm"), "1 2");
}

#[test]
fn an_instance_ends_with_a_trap_and_not_with_a_refusal() {
    let server = server();
    put(&server, "acme", "warm", &json!({ "mode": "tenant", "idle_ms": 600_000 }));
    assert_eq!(counted(&server, "warm"), "1 2");
    answer(&server, "acme", "warm", "count-and-refuse").refused(422, "unprocessable", &["as told"]);
    assert_eq!(counted(&server, "warm"), "4 5");
    let trapped = answer(&server, "acme", "warm", "count-and-trap");
    trapped.refused(500, "plugin_trapped", &[]);
    assert_eq!(counted(&server, "warm"), "1 2");
    answer(&server, "acme", "warm", "loop").refused(504, "plugin_timeout", &[]);
    assert_eq!(counted(&server, "warm"), "1 2");
}

#[test]
fn an_instance_that_grows_is_dropped() {
    let server = server();
    put(&server, "acme", "warm", &json!({ "mode": "tenant", "idle_ms": 600_000 }));
    assert_eq!(counted(&server, "warm"), "1 2");
    let grown = answer(&server, "acme", "warm", "count-and-grow");
    assert_eq!((grown.status, grown.text().as_str()), (200, "3 1"));
}

#[test]
fn an_instance_that_keeps_something_of_the_host_serves_no_further_request() {
    let server = server();
    // `preprocess` keeps a tensor of a megabyte, or `postprocess` keeps the model's outputs.
    for (deed, max_count, first, later) in [
        ("count-and-keep", 1_000_000, "1 1", "2 1"),
        ("count-and-keep-outputs", 999_999, "1 2", "1 2"),
    ] {
        // A change ends the instances.
        let reuse = json!({ "mode": "tenant", "idle_ms": 600_000, "max_count": max_count });
        put(&server, "acme", "warm", &reuse);
        for request in 0..20 {
            let answer = answer(&server, "acme", "warm", deed);
            let counted = if request == 0 { first } else { later };
            assert_eq!((answer.status, answer.text().as_str()), (200, counted), "{deed}");
        }
    }
    let held = held(&server);
    assert!(held < 8 << 20, "{held} bytes");
    // Within its request it stays.
    put(&server, "acme", "request", &json!("request"));
    let kept = answer(&server, "acme", "request", "count-and-keep");
    assert_eq!(kept.text(), "1 2");
}

#[test]
fn pipelines_tenants_and_versions_share_no_instance() {
    let server = server();
    server.hostile("globex");
    let reuse = json!({ "mode": "tenant", "idle_ms": 600_000 });
    let all = [("acme", "warm"), ("acme", "other"), ("globex", "warm")];
    // A change of a tenant ends its instances.
    all.iter().for_each(|(tenant, pipeline)| put(&server, tenant, pipeline, &reuse));
    for (tenant, pipeline) in all {
        let answer = answer(&server, tenant, pipeline, "count");
        assert_eq!(answer.text(), "1 2", "{tenant}/{pipeline}");
    }
    assert_eq!(counted(&server, "warm"), "3 4");
    // Another version: the file has one more section, which says nothing.
    let mut file = files::plugin("hostile");
    file.extend([0, 2, 1, b'x']);
    server.put("tenants/acme/plugins/hostile", &file);
    assert_eq!(counted(&server, "warm"), "1 2");
    let foreign = answer(&server, "globex", "warm", "count");
    assert_eq!(foreign.text(), "3 4", "another tenant's instances stay");
}

#[test]
fn many_requests_at_once_get_their_own_instances() {
    let server = server();
    put(&server, "acme", "request", &json!("request"));
    put(&server, "acme", "warm", &json!({ "mode": "tenant", "max_idle": 2 }));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(counted(&server, "request"), "1 2");
                    counted(&server, "warm");
                }
            });
        }
    });
    // Two instances stay, not sixteen.
    let one = 512 << 10;
    eventually("all but two are dropped", || held(&server) < 3 * one);
}

#[test]
fn a_wrong_value_is_refused_by_name() {
    let server = server();
    let spec = json!({
        "pre": "hostile", "model": "digits", "post": "hostile",
        "instance_reuse": { "mode": "tenants", "max_idle": 65 },
    });
    let path = "/admin/v1/tenants/acme/pipelines/wrong";
    let refused = server.admin.put_json(path, &spec);
    let named = ["instance_reuse.mode is \"tenants\": must be one of none, request, tenant"];
    refused.refused(422, "unprocessable", &named);
}
