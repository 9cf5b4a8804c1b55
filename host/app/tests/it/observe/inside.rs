//! Looking into a running server: profiles of its CPU time, the requests under way, and the
//! figures of its process.

use std::io::Write;
use std::net::TcpStream;
use std::thread;

use serde_json::{Value, json};

use crate::support::admin_api::make;
use crate::support::cli::Cli;
use crate::support::deploy::processor;
use crate::support::eventually::eventually_some;
use crate::support::files;
use crate::support::load::under_load;
use crate::support::server::Server;
use crate::support::setup::ADMIN_TOKEN;

const PROFILE: &str = "/admin/v1/debug/profile";

/// A server with a pipeline whose plugin can be told to loop.
fn server() -> Server {
    let server = Server::start();
    server.hostile("acme");
    let limits = json!({ "cpu_ms": 10_000, "timeout_ms": 300_000 });
    server.pipeline("acme", "slow", &processor("hostile", limits));
    server
}

#[test]
fn a_profile_names_functions_of_the_host_and_of_plugins() {
    let server = server();
    let cli = Cli::of(&server);
    let loops = |_| server.data.post("/v1/acme/infer/slow?do=loop", b"").status;
    under_load(1, loops, |_| {
        // The plugin's own function, on the threads for long calls.
        let picture = eventually_some("the plugin is seen", || {
            let answer = server.admin.get(&format!("{PROFILE}?seconds=1"));
            assert_eq!((answer.status, answer.header("content-type")), (200, "image/svg+xml"));
            let picture = answer.text();
            (picture.contains("preprocess (acme/hostile)") && picture.contains("long-calls"))
                .then_some(picture)
        });
        assert!(picture.starts_with("<svg"), "{picture}");
        let file = cli.folder().join("cpu.pb.gz");
        let path = file.to_str().unwrap();
        let output = cli.ok(&["profile", "--seconds", "1", "--file", path]);
        assert_eq!(output, format!("written to {path}\n"));
        assert!(std::fs::read(&file).unwrap().starts_with(&[0x1f, 0x8b]));
    });
}

#[test]
fn one_profile_is_recorded_at_a_time_and_ends_with_its_caller() {
    let server = Server::start();
    let head = format!(
        "GET {PROFILE}?seconds=60 HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {ADMIN_TOKEN}\r\n\r\n"
    );
    let begin = || {
        let mut first = TcpStream::connect(server.admin.authority()).unwrap();
        first.write_all(head.as_bytes()).unwrap();
        first
    };
    let short = || server.admin.get(&format!("{PROFILE}?seconds=1&format=pprof"));
    // The short one may be the first to be read; then the long one is refused.
    let first = eventually_some("the second is refused", || {
        let first = begin();
        let mut refused = (0..5).map(|_| short()).filter(|answer| answer.status == 409);
        refused.next()?.refused(409, "conflict", &["recorded already"]);
        Some(first)
    });
    drop(first);
    let answer =
        eventually_some("the first ends", || Some(short()).filter(|answer| answer.status == 200));
    assert_eq!(answer.header("content-type"), "application/vnd.google.protobuf+gzip");
}

#[test]
fn profiles_are_for_administrators_and_bounded() {
    let server = Server::start();
    for (query, named) in [
        ("seconds=0", "seconds is \"0\": must be 1 to 60"),
        ("seconds=61", "must be 1 to 60"),
        ("seconds=ten", "seconds is \"ten\""),
        ("format=png", "format is \"png\": must be svg or pprof"),
        ("hz=9", "unknown parameter \"hz\""),
    ] {
        server.admin.get(&format!("{PROFILE}?{query}")).refused(400, "invalid_request", &[named]);
    }
    let reader = make(&server, "reader", &json!({ "role": "read" }));
    server.admin.with_token(&reader).get(PROFILE).refused(403, "forbidden", &[]);
    let ended = Cli::of(&server).run(&["profile", "--file", "cpu.png"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("must end in .svg or .pb.gz"), "{ended:?}");
}

#[test]
fn requests_under_way_are_seen_with_stage_and_age() {
    let server = server();
    server.open_tenant("other");
    let cli = Cli::of(&server);
    let token = make(&server, "own", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let others = make(&server, "others", &json!({ "role": "deploy", "tenants": ["other"] }));
    let items = |client: &crate::support::client::Client| -> Vec<Value> {
        client.get("/admin/v1/requests").ok()["items"].as_array().unwrap().clone()
    };
    thread::scope(|scope| {
        let slow = scope.spawn(|| server.data.post("/v1/acme/infer/slow?do=loop", b""));
        let seen = eventually_some("the request is in its plugin", || {
            let request = items(&server.admin).into_iter().next()?;
            (request["stage"] == "pre").then_some(request)
        });
        let expected = json!(["acme", "slow", "digits"]);
        assert_eq!(json!([seen["tenant"], seen["pipeline"], seen["model"]]), expected, "{seen}");
        assert!(seen["age_ms"].as_f64() > Some(0.0), "{seen}");
        assert_eq!(items(&server.admin.with_token(&token))[0]["id"], seen["id"]);
        assert_eq!(items(&server.admin.with_token(&others)), Vec::<Value>::new());
        let table = cli.ok(&["requests"]);
        assert!(table.contains("STAGE") && table.contains("slow"), "{table}");
        let status = server.status();
        assert_eq!(status["requests"]["under_way"], 1, "{status}");
        assert!(status["requests"]["oldest_ms"].as_f64() > Some(0.0), "{status}");
        let metrics = server.admin.get("/metrics").text();
        assert!(metrics.contains("gristmill_request_active{stage=\"pre\"} 1\n"), "{metrics}");
        slow.join().unwrap().refused(504, "plugin_timeout", &[]);
    });
    assert_eq!(items(&server.admin), Vec::<Value>::new());
    server.data.post("/v1/acme/infer/slow", &files::digit(1));
    assert_eq!(items(&server.admin), Vec::<Value>::new());
    assert_eq!(cli.json(&["requests"]), json!([]));
}

#[test]
fn the_status_has_the_figures_of_the_process() {
    let server = Server::start();
    let process = server.status()["process"].take();
    let number = |part: &str| process[part].as_u64().unwrap_or_else(|| panic!("{part}: {process}"));
    assert!(number("resident_bytes") > 1 << 20 && number("heap_bytes") > 1 << 20, "{process}");
    assert!(number("resident_peak_bytes") >= number("resident_bytes"), "{process}");
    assert!(number("heap_peak_bytes") >= number("heap_bytes"), "{process}");
    assert!(number("threads") > 1 && number("open_files") > 1, "{process}");
    assert!(process["started"].as_str().unwrap().ends_with('Z') && number("uptime_s") < 3600);
}
