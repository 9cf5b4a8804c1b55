//! Answers to valid requests.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::deploy::processor;
use crate::support::eventually::eventually_some;
use crate::support::files;
use crate::support::load::under_load;
use crate::support::server::Server;
use crate::support::setup::ADMIN_TOKEN;

const DIGITS: &str = "/v1/acme/infer/digits";

#[track_caller]
fn assert_label(answer: &TestAnswer, digit: usize) {
    let reading = answer.ok();
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(reading["label"], digit);
    let probability = reading["probability"].as_f64().unwrap();
    assert!((0.9..=1.0).contains(&probability), "{reading}");
    assert_eq!(reading["top"][0], json!({ "label": digit, "probability": reading["probability"] }));
}

#[test]
fn a_picture_goes_in_and_its_label_comes_out() {
    let server = Server::start();
    server.digits("acme");
    for digit in 0..10 {
        assert_label(&server.data.post(DIGITS, &files::digit(digit)), digit);
    }
    assert_label(&server.data.post(DIGITS, &files::sample("seven.png")), 7);
    assert_label(&server.data.post(DIGITS, &files::sample("three.jpg")), 3);
}

#[test]
fn a_picture_may_come_as_a_form() {
    let server = Server::start();
    server.digits("acme");
    let mut body =
        b"--edge\r\ncontent-disposition: form-data; name=\"photo\"; filename=\"3.jpg\"\r\n\
        content-type: image/jpeg\r\n\r\n"
            .to_vec();
    body.extend(files::sample("three.jpg"));
    body.extend(b"\r\n--edge--\r\n");
    let form = [("content-type", "multipart/form-data; boundary=edge")];
    assert_label(&server.data.send("POST", DIGITS, &form, Some(&body)), 3);
}

#[test]
fn the_ranker_orders_items_by_their_recorded_scores() {
    let server = Server::start();
    server.ranker("acme");
    server.assert_ranks("acme");
}

#[test]
fn a_tenant_can_see_its_pipelines() {
    let server = Server::start();
    server.keyed_tenant("acme", "the-key-of-acme-1");
    server.digits_for("acme");
    let release = server.release();
    let expected = json!({
        "tenant": "acme",
        "release": release,
        "default_pipeline": "digits",
        "pipelines": [{ "name": "digits", "state": "ready" }],
    });
    let data = server.data.with_token("the-key-of-acme-1");
    assert_eq!(data.get("/v1/acme").ok(), expected);
    let named = ["an API key of tenant \"acme\" is needed"];
    server.data.get("/v1/acme").refused(401, "unauthenticated", &named);
}

#[test]
fn any_of_a_tenants_keys_opens_it() {
    let server = Server::start();
    let keys = ["the-first-key-of-acme", "the-second-key-of-acme"];
    server.put_json("tenants/acme", &json!({ "api_keys": keys }));
    server.digits_for("acme");
    for key in keys {
        assert_label(&server.data.with_token(key).post(DIGITS, &files::digit(4)), 4);
    }
}

#[test]
fn health_needs_no_key() {
    let server = Server::start();
    for (path, text) in [("/livez", "live"), ("/readyz", r#"{"status":"ready"}"#)] {
        let answer = server.data.get(path);
        assert_eq!((answer.status, answer.text().as_str()), (200, text));
    }
}

#[test]
fn a_request_keeps_its_id_or_gets_one() {
    let server = Server::start();
    server.digits("acme");
    let request_id = [("x-request-id", "order-66")];
    let answer = server.data.send("POST", DIGITS, &request_id, Some(&files::digit(1)));
    assert_eq!(answer.header("x-request-id"), "order-66");

    let (one, other) = (server.data.get("/livez"), server.data.get("/livez"));
    assert!(!one.header("x-request-id").is_empty());
    assert_ne!(one.header("x-request-id"), other.header("x-request-id"));

    let refused = server.data.send("GET", "/v1/nobody", &request_id, None);
    let problem: Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!(
        (refused.header("x-request-id"), &problem["request_id"]),
        ("order-66", &"order-66".into())
    );
}

#[test]
fn an_error_has_the_form_that_clients_of_openai_read() {
    let server = Server::start();
    server.digits("acme");
    for path in [DIGITS, "/v1/acme/infer/nothing", "/v1/nobody/infer", "/nothing"] {
        let refused = server.data.send("POST", path, &[], Some(b"no picture"));
        let problem: Value = serde_json::from_slice(&refused.body).unwrap();
        let (message, code) = (&problem["detail"], &problem["code"]);
        let error = json!({ "message": message, "type": code, "param": null, "code": code });
        assert_eq!(problem["error"], error, "{path}");
        assert!(message.is_string() && code.is_string(), "{path}: {problem}");
    }
}

#[test]
fn answers_name_their_release_to_those_who_may_call() {
    let server = Server::start();
    server.keyed_tenant("keyed", "the-key-of-keyed-1");
    server.digits("acme");
    for path in ["/livez", "/v2", "/v1/keyed", "/v1/nobody", "/v1/keyed/v2/models"] {
        assert_eq!(server.data.get(path).header("gristmill-release"), "", "{path}");
    }
    let before = server.data.get("/v1/acme/v2/models");
    assert_eq!(before.header("gristmill-release"), server.release().to_string());
    let release = server.open_tenant("other");
    let after = server.data.post(DIGITS, &files::digit(1));
    assert_eq!(after.header("gristmill-release"), release.to_string());
    assert_ne!(before.header("gristmill-release"), after.header("gristmill-release"));
}

#[test]
fn answers_say_how_long_each_stage_took() {
    let server = Server::start();
    server.digits("acme");
    let answer = server.data.post(DIGITS, &files::digit(1));
    let stages = answer.header("server-timing").split(", ").map(|stage| {
        let (name, took) = stage.split_once(";dur=").unwrap();
        (name, took.parse::<f64>().unwrap())
    });
    let stages: Vec<_> = stages.collect();
    let names: Vec<_> = stages.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["auth", "pre", "queue", "infer", "post"]);
    assert!(stages.iter().all(|(_, took)| (0.0..60_000.0).contains(took)), "{stages:?}");
    let (_, pre) = stages[1];
    assert!(pre > 0.0, "{stages:?}");
}

#[test]
fn a_tenant_has_a_default_pipeline() {
    let server = Server::start();
    server.digits("acme");
    assert_label(&server.data.post("/v1/acme/infer", &files::digit(2)), 2);

    server.pipeline("acme", "another", &processor("digits", json!({})));
    let ambiguous = server.data.post("/v1/acme/infer", &files::digit(2));
    let named = ["\"acme\" has no default pipeline", "another, digits"];
    ambiguous.refused(404, "pipeline_not_found", &named);

    server.put_json("tenants/acme", &json!({ "open": true, "default_pipeline": "digits" }));
    assert_label(&server.data.post("/v1/acme/infer", &files::digit(2)), 2);
}

#[test]
fn tenants_with_different_plugins_share_batches() {
    let server = Server::start();
    server.digits("acme");
    server.hostile("other");
    server.put_json("models/digits/config", &json!({ "max_batch_size": 16 }));
    let work = |index: usize| {
        if index.is_multiple_of(2) {
            server.assert_reads("acme", 5);
        } else {
            let answer = server.data.post("/v1/other/infer/hostile", b"");
            assert_eq!((answer.status, answer.text().as_str()), (200, "harmless"));
        }
    };
    let shared = under_load(12, work, |answers| {
        let statistics = || server.status()["models"]["digits"]["statistics"].clone();
        eventually_some("a batch with rows of both tenants", || {
            answers.recv().expect("a sender that has not failed");
            Some(statistics()).filter(|statistics| statistics["mixed_batches"] != 0)
        })
    });
    let mixed = shared["recent_mixed_batches"][0].as_object().unwrap();
    assert_eq!(mixed.keys().collect::<Vec<_>>(), ["acme", "other"]);
    assert!(mixed.values().all(|rows| rows.as_u64().unwrap() > 0), "{mixed:?}");
    assert!(shared["tenants"]["acme"]["rows"].as_u64().unwrap() > 0, "{shared}");
}

#[test]
fn the_command_line_pushes_a_plugin() {
    let server = Server::start();
    server.hostile("acme");
    let push = Command::new(env!("CARGO_BIN_EXE_gristmill"))
        .args([
            "plugin",
            "push",
            "--tenant",
            "acme",
            "--name",
            "hostile",
            "--admin",
            server.admin.address(),
        ])
        .arg(files::plugin_path("digits"))
        .env("GRISTMILL_ADMIN_TOKEN", ADMIN_TOKEN)
        .output()
        .unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&push.stdout), String::from_utf8_lossy(&push.stderr));
    assert!(push.status.success(), "{stderr}");
    assert!(
        stdout.contains(&format!("acme/hostile is live in release {}", server.release())),
        "{stdout}"
    );
    assert_label(&server.data.post("/v1/acme/infer/hostile", &files::digit(8)), 8);
}
