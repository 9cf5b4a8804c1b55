//! Stores in a file of the server: what stays after a restart, whose values they are, and what a
//! damaged file is.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::stores::{asked, configured, granted};

const TABLE: &str = "[stores.sessions]\nembedded = true\nmax_bytes = 1048576\ntimeout_ms = 20000\n";

/// A server with the embedded store `sessions`, which these tenants may change.
fn server(tenants: &[&str]) -> Server {
    let server = configured(TABLE).start();
    for tenant in tenants {
        granted(&server, tenant, json!({ "sessions": "write" }));
    }
    server
}

/// End the server as an operator does.
fn ended(server: Server) -> Setup {
    server.signal_terminate();
    let (log, status, setup) = server.wait();
    assert!(status.success(), "{log}");
    setup
}

#[test]
fn values_stay_after_a_restart_and_belong_to_their_tenant() {
    let server = server(&["acme", "beta"]);
    let set = |tenant: &str| format!("op=set&bucket=sessions&keys=k&value=of-{tenant}");
    for tenant in ["acme", "beta"] {
        assert_eq!(asked(&server, tenant, &set(tenant)), "set");
    }
    let add = "op=increment&bucket=sessions&keys=n&delta=5";
    assert_eq!(asked(&server, "acme", add), "5");
    let server = ended(server).start();
    assert_eq!(asked(&server, "acme", "op=get-many&bucket=sessions&keys=k,n"), "of-acme,5");
    assert_eq!(asked(&server, "beta", "op=get-many&bucket=sessions&keys=k,n"), "of-beta,none");
    assert_eq!(asked(&server, "acme", "op=get&bucket=sessions&keys=beta:k"), "none");
}

#[test]
fn a_value_is_gone_after_its_time() {
    let server = server(&["acme"]);
    let set = |ttl: u64| format!("op=set&bucket=sessions&keys=k{ttl}&value=v&ttl={ttl}");
    assert_eq!(asked(&server, "acme", &set(1)), "set");
    assert_eq!(asked(&server, "acme", &set(10_000_000)), "set");
    eventually("the value is gone", || {
        asked(&server, "acme", "op=get-many&bucket=sessions&keys=k1,k10000000") == "none,v"
    });
}

#[test]
fn increments_of_many_clients_sum_up() {
    let server = server(&["acme"]);
    let add = "op=increment&bucket=sessions&keys=n&delta=1";
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| (0..5).for_each(|_| drop(asked(&server, "acme", add))));
        }
    });
    assert_eq!(asked(&server, "acme", add), "81");
    assert_eq!(asked(&server, "acme", "op=set&bucket=sessions&keys=k&value=v"), "set");
    let wrong = asked(&server, "acme", "op=increment&bucket=sessions&keys=k&delta=1");
    let text = "invalid-argument: store \"sessions\": ERR value is not an integer or out of range";
    assert_eq!(wrong, text);
}

#[test]
fn a_tenant_that_asks_without_end_is_charged_and_others_have_their_turn() {
    const DEEDS: [&str; 2] = ["store-read-loop", "store-write-loop"];
    let server = server(&["acme", "beta"]);
    // CPU time ends the calls, however slow the machine is.
    let patient = processor("hostile", json!({ "timeout_ms": 100_000 }));
    server.put_json("tenants/acme/pipelines/hostile", &patient);
    thread::scope(|scope| {
        let endless = DEEDS.iter().cycle().take(4).map(|deed| {
            let path = format!("/v1/acme/infer/hostile?do={deed}&bucket=sessions");
            let server = &server;
            scope.spawn(move || server.data.post(&path, b""))
        });
        let endless: Vec<_> = endless.collect();
        for value in ["one", "two"] {
            let set = format!("op=set&bucket=sessions&keys=k&value={value}");
            assert_eq!(asked(&server, "beta", &set), "set");
            assert_eq!(asked(&server, "beta", "op=get&bucket=sessions&keys=k"), value);
        }
        for call in endless {
            call.join().unwrap().refused(504, "plugin_timeout", &["250 ms of CPU time"]);
        }
    });
}

#[test]
fn samples_change_nothing() {
    let server = server(&["acme"]);
    let add = "op=increment&bucket=sessions&keys=n&delta=5";
    let mut pipeline = processor("hostile", json!({}));
    let request = json!({ "query": format!("do=store&{add}") });
    pipeline["samples"] = json!([{ "name": "sum", "request": request, "expect": { "text": "5" } }]);
    server.put_json("tenants/acme/pipelines/hostile", &pipeline);
    assert_eq!(asked(&server, "acme", "op=get&bucket=sessions&keys=n"), "none");
}

#[test]
fn a_damaged_file_is_an_error_of_its_store_alone() {
    let setup = configured(&(TABLE.to_owned() + "[stores.other]\nembedded = true\n"));
    let directory = setup.data_dir().join("stores");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("sessions.redb"), "this is no database").unwrap();
    let mut server = setup.start();
    let grants: Value = json!({ "sessions": "write", "other": "write" });
    granted(&server, "acme", grants);
    let broken = asked(&server, "acme", "op=get&bucket=sessions&keys=k");
    assert!(broken.starts_with("unavailable: store \"sessions\": its file cannot be"), "{broken}");
    assert!(!broken.contains("sessions.redb"), "{broken}");
    assert_eq!(asked(&server, "acme", "op=set&bucket=other&keys=k&value=v"), "set");
    server.logs("the file of an embedded store cannot be used");
    server.assert_alive();
    // The operator puts it away.
    fs::remove_file(directory.join("sessions.redb")).unwrap();
    eventually("the store has a new file", || {
        asked(&server, "acme", "op=get&bucket=sessions&keys=k") == "none"
    });
}
