//! Candidates of pipelines: a share of the requests, shadows, and how both end.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::support::admin_api::{make, path, read};
use crate::support::cli::Cli;
use crate::support::client::TestAnswer;
use crate::support::deploy::processor;
use crate::support::eventually::{eventually, eventually_some};
use crate::support::files;
use crate::support::grpc;
use crate::support::load::under_load;
use crate::support::protobuf::Message;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::words::assert_names;

const PIPELINE: &str = "tenants/acme/pipelines/digits";

/// The pipeline `digits` of the tenant `acme` with a candidate.
fn with(candidate: Value) -> Value {
    let mut pipeline = processor("digits", json!({}));
    pipeline["candidate"] = candidate;
    pipeline
}

/// A server whose open tenant `acme` has the pipeline `digits` with this candidate, and the plugins
/// `digits`, `other`, which does the same, and `hostile`, which does as the query says.
fn start(candidate: Value) -> Server {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.digits("acme");
    server.put("tenants/acme/plugins/other", &files::plugin_that_begins_with("digits", 32));
    server.plugin("acme", "hostile", "hostile");
    server.put_json(PIPELINE, &with(candidate));
    server
}

/// A request of a user, which does `deed` if the plugin `hostile` runs it.
fn ask(server: &Server, deed: &str, user: Option<&str>) -> TestAnswer {
    let target = format!("/v1/acme/infer/digits?do={deed}");
    let headers: Vec<_> = user.into_iter().map(|user| ("x-user", user)).collect();
    server.data.send("POST", &target, &headers, Some(&files::digit(7)))
}

/// The variant that a request gets, which must be answered.
#[track_caller]
fn variant(server: &Server, user: Option<&str>) -> String {
    let answer = ask(server, "", user);
    assert_eq!(answer.ok()["label"], 7);
    answer.header("gristmill-variant").to_owned()
}

fn report(server: &Server) -> Value {
    read(server, &format!("{PIPELINE}/candidate"))
}

fn end(server: &Server, end: &str) -> TestAnswer {
    server.admin.post(&path(&format!("{PIPELINE}/candidate/{end}")), b"")
}

fn both(plugin: &str, share: Value) -> Value {
    let mut candidate = json!({ "pre": plugin, "post": plugin });
    for (key, value) in share.as_object().unwrap() {
        candidate[key] = value.clone();
    }
    candidate
}

#[test]
fn a_candidate_answers_its_share_and_each_answer_names_its_variant() {
    let server = start(both("other", json!({ "traffic_percent": 25 })));
    let mut taken = BTreeMap::<String, usize>::new();
    for _ in 0..100 {
        *taken.entry(variant(&server, None)).or_default() += 1;
    }
    assert!((22..=28).contains(&taken["candidate"]), "{taken:?}");
    assert_eq!(taken["candidate"] + taken["stable"], 100);
    let document = report(&server);
    assert_eq!(
        (&document["state"], &document["since_release"]),
        (&json!("running"), &json!(server.release()))
    );
    for name in ["candidate", "stable"] {
        assert_eq!(document[name]["requests"], taken[name], "{document}");
        assert_eq!(document[name]["failures"], 0);
        assert!(document[name]["mean_ms"].as_f64().unwrap() > 0.0, "{document}");
    }
    // The pipeline's own counters have the requests of both.
    let stats = server.data.get("/v1/acme/v2/models/pipeline:digits/stats").ok();
    let stats = &stats["model_stats"][0]["inference_stats"];
    assert_eq!(stats["success"]["count"].to_string().replace('"', ""), "100", "{stats}");
    // A release that does not touch the candidate leaves its counters.
    server.plugin("acme", "third", "hostile");
    assert_eq!(report(&server)["candidate"]["requests"], taken["candidate"]);
    // With no share it answers nothing.
    server.put_json(PIPELINE, &with(both("other", json!({ "traffic_percent": 0 }))));
    assert!((0..20).all(|_| variant(&server, None) == "stable"));
    assert_eq!(report(&server)["candidate"]["requests"], 0);
}

#[test]
fn a_candidate_may_have_another_model_and_other_settings() {
    let server = Server::start();
    server.hostile("acme");
    server.put("models/digits-new", &files::model("digits"));
    let candidate = json!({
        "model": "digits-new", "settings": { "colour": "blue" }, "traffic_percent": 50,
    });
    let mut pipeline = processor("hostile", json!({}));
    pipeline["settings"] = json!({ "colour": "red" });
    pipeline["candidate"] = candidate;
    server.put_json("tenants/acme/pipelines/shown", &pipeline);
    let shown = || {
        let answer = server.data.post("/v1/acme/infer/shown?do=context", b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        (answer.header("gristmill-variant").to_owned(), answer.text())
    };
    let answers = BTreeMap::from([shown(), shown()]);
    assert_names(&answers["stable"], &["model=digits ", "{\"colour\":\"red\"}"]);
    assert_names(&answers["candidate"], &["model=digits-new ", "{\"colour\":\"blue\"}"]);
    server.admin.post(&path("tenants/acme/pipelines/shown/candidate/promote"), b"").ok();
    let left = read(&server, "tenants/acme/pipelines/shown");
    assert_eq!(left["model"], "digits-new");
    let (variant, text) = shown();
    assert_eq!(variant, "");
    assert_names(&text, &["model=digits-new ", "{\"colour\":\"blue\"}"]);
}

#[test]
fn an_evaluation_is_that_of_the_plugins_that_it_saw() {
    let abort = json!({ "requests": 2, "failure_percent": 0 });
    let server = start(both("other", json!({ "traffic_percent": 100, "abort": abort })));
    (0..3).for_each(|_| drop(variant(&server, None)));
    assert_eq!(report(&server)["candidate"]["requests"], 3);
    server.put("tenants/acme/plugins/other", &files::plugin_that_begins_with("digits", 48));
    assert_eq!(report(&server)["candidate"]["requests"], 0);
    (0..3).for_each(|_| drop(variant(&server, None)));
    assert_eq!(report(&server)["candidate"]["requests"], 3);
}

#[test]
fn a_header_decides_for_each_user_for_as_long_as_the_share_grows() {
    let sticky = |percent: u32| {
        both("other", json!({ "traffic_percent": percent, "sticky_header": "X-User" }))
    };
    let server = start(sticky(30));
    let users: Vec<_> = (0..40).map(|user| user.to_string()).collect();
    let variants = |server: &Server| -> Vec<bool> {
        users.iter().map(|user| variant(server, Some(user)) == "candidate").collect()
    };
    let first = variants(&server);
    let taken = first.iter().filter(|taken| **taken).count();
    assert!((3..=21).contains(&taken), "{taken} of 40");
    assert_eq!(variants(&server), first);
    let server = server.kill().start();
    assert_eq!(variants(&server), first, "also after a restart");
    server.put_json(PIPELINE, &with(sticky(70)));
    let more = variants(&server);
    assert!(first.iter().zip(&more).all(|(first, more)| *more || !first), "{first:?} {more:?}");
    assert!(more.iter().filter(|taken| **taken).count() > taken);
}

#[test]
fn over_the_open_inference_protocol_a_candidate_gets_its_share_too() {
    let sticky = json!({ "traffic_percent": 50, "sticky_header": "x-user" });
    let server = start(both("other", sticky));
    let picture = files::digit(7);
    let http = |user: &str| {
        let headers = [("inference-header-content-length", "0"), ("x-user", user)];
        let target = "/v2/models/pipeline:digits/infer";
        let answer = server.data.send("POST", target, &headers, Some(&picture));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.header("gristmill-variant").to_owned()
    };
    let grpc = |user: &str| {
        let input = Message::new().text(1, "REQUEST").text(2, "BYTES").int(3, 1);
        let parameter = Message::new().text(3, user);
        let parameter = Message::new().text(1, "x-user").message(2, parameter);
        let message = Message::new().text(1, "pipeline:digits").message(4, parameter);
        let raw = [&(picture.len() as u32).to_le_bytes()[..], &picture].concat();
        let message = message.message(5, input).bytes(7, &raw).into_bytes();
        let answer = grpc::call(&server.grpc, "ModelInfer", None, &message);
        assert_eq!(answer.status(), 0, "{answer:?}");
        let body = String::from_utf8_lossy(&answer.message).into_owned();
        assert!(body.contains("gristmill_variant"), "{body}");
        ["candidate", "stable"].into_iter().find(|name| body.contains(name)).unwrap().to_owned()
    };
    let users: Vec<_> = (0..12).map(|user| user.to_string()).collect();
    let all: BTreeMap<_, _> =
        users.iter().map(|user| (user, variant(&server, Some(user)))).collect();
    assert!(users.iter().any(|user| all[user] == "candidate"));
    assert!(users.iter().any(|user| all[user] == "stable"));
    for user in &users {
        assert_eq!((http(user), grpc(user)), (all[user].clone(), all[user].clone()), "{user}");
    }
}

#[test]
fn a_candidate_is_promoted_or_aborted_by_a_release() {
    let server = start(both("other", json!({ "traffic_percent": 50 })));
    let before = read(&server, PIPELINE);
    let release = end(&server, "promote").ok()["release"].as_u64().unwrap();
    let mut expected = before.clone();
    (expected["pre"], expected["post"]) = ("other".into(), "other".into());
    expected.as_object_mut().unwrap().remove("candidate");
    assert_eq!(read(&server, PIPELINE), expected);
    assert_eq!(ask(&server, "", None).header("gristmill-variant"), "");
    assert_eq!((&report(&server)["state"], server.release()), (&json!("ended"), release));
    for gone in ["promote", "abort"] {
        let refused = end(&server, gone);
        refused.refused(404, "not_found", &["candidate of pipeline", "digits"]);
    }
    server.put_json(PIPELINE, &with(both("other", json!({ "shadow_percent": 50 }))));
    end(&server, "abort").ok();
    assert_eq!(read(&server, PIPELINE)["candidate"], Value::Null);
    assert_eq!(read(&server, PIPELINE)["pre"], "digits");
    // As everything, it can be brought back.
    let back = json!({ "to": release - 1, "tenant": "acme" });
    server.admin.post(&path("rollback"), back.to_string().as_bytes()).ok();
    assert_eq!(read(&server, PIPELINE), before);
    for (unknown, what) in
        [("tenants/none/pipelines/digits", "tenant"), ("tenants/acme/pipelines/none", "pipeline")]
    {
        let at = path(&format!("{unknown}/candidate"));
        server.admin.get(&at).refused(404, "not_found", &[what]);
        server.admin.post(&format!("{at}/promote"), b"").refused(404, "not_found", &[what]);
    }
}

#[test]
fn a_candidate_that_fails_too_often_is_taken_away_by_itself() {
    let abort = json!({ "requests": 10, "failure_percent": 20 });
    let server = start(both("hostile", json!({ "traffic_percent": 50, "abort": abort })));
    let release = server.release();
    let (mut failed, mut answered) = (0, 0);
    // Every other request goes to the candidate, until the third has failed.
    for _ in 0..20 {
        let answer = ask(&server, "panic", None);
        match answer.header("gristmill-variant") {
            "candidate" => {
                answer.refused(500, "plugin_trapped", &[]);
                failed += 1;
            }
            _ => {
                assert_eq!(answer.ok()["label"], 7);
                answered += 1;
            }
        }
    }
    assert_eq!((failed, answered), (3, 17));
    eventually("the release that takes it away", || server.release() == release + 1);
    assert_eq!(read(&server, PIPELINE)["candidate"], Value::Null);
    let document = report(&server);
    let why = "3 of 10 requests failed: 20 % may";
    assert_eq!((&document["state"], &document["reason"]), (&json!("aborted"), &json!(why)));
    let made = read(&server, &format!("releases/{}", release + 1));
    let text = format!("candidate of acme/digits aborted: {why}");
    assert_eq!((&made["by"], &made["message"]), (&json!("gristmill"), &json!(text)));
    // The next release comes half a minute later. Until then it is not promoted either.
    let abort = json!({ "requests": 2, "failure_percent": 0 });
    server.put_json(
        PIPELINE,
        &with(both("hostile", json!({ "traffic_percent": 100, "abort": abort }))),
    );
    ask(&server, "panic", None).refused(500, "plugin_trapped", &[]);
    assert_eq!(variant(&server, None), "stable");
    end(&server, "promote").refused(409, "conflict", &["the candidate is aborted"]);
    // The client's own faults are not the candidate's.
    let abort = json!({ "requests": 10, "failure_percent": 0 });
    server.put_json(
        PIPELINE,
        &with(both("other", json!({ "traffic_percent": 100, "abort": abort }))),
    );
    for _ in 0..10 {
        let refused = server.data.post("/v1/acme/infer/digits", b"no picture");
        refused.refused(415, "unsupported_media_type", &[]);
        assert_eq!(refused.header("gristmill-variant"), "candidate");
    }
    assert_eq!(report(&server)["candidate"]["failures"], 0);
}

#[test]
fn a_client_in_a_hurry_ends_no_candidate() {
    let abort = json!({ "requests": 2, "failure_percent": 0 });
    let server = start(both("hostile", json!({ "traffic_percent": 100, "abort": abort })));
    let release = server.release();
    for _ in 0..4 {
        let input = json!({
            "name": "REQUEST", "datatype": "BYTES", "shape": [1], "data": [""],
            "parameters": { "query": "do=spin&rounds=100000000" },
        });
        let body = json!({ "inputs": [input], "parameters": { "timeout": 1 } }).to_string();
        let answer = server.data.post("/v2/models/pipeline:digits/infer", body.as_bytes());
        assert_eq!(answer.header("gristmill-variant"), "candidate");
    }
    assert_eq!((&report(&server)["state"], server.release()), (&json!("running"), release));
}

#[test]
fn a_candidate_that_cannot_be_loaded_leaves_its_pipeline_as_it_is() {
    let server = start(both("other", json!({ "traffic_percent": 100 })));
    assert_eq!(variant(&server, None), "candidate");
    let plugin = read(&server, "tenants/acme/plugins/other");
    let digest = plugin["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
    let setup = server.kill();
    fs::write(setup.data_dir().join("store/blobs").join(digest), "altered").unwrap();
    let server = setup.start();
    assert_eq!(variant(&server, None), "stable");
    let document = report(&server);
    assert_eq!(document["state"], "unavailable");
    assert_names(&document["reason"].to_string(), &["candidate: pre: plugin", "other", "digest"]);
    // A plugin that would break the pipeline itself is still refused.
    let wrong = files::plugin("ranker-post");
    let refused = server.admin.put(&path("tenants/acme/plugins/digits"), &wrong);
    let named = ["pipeline \"digits\"", "pre: plugin \"digits\" is a"];
    refused.refused(422, "unprocessable", &named);
    assert_eq!(variant(&server, None), "stable");
    end(&server, "abort").ok();
    assert_eq!(report(&server)["state"], "ended");
}

#[test]
fn a_slow_candidate_is_taken_away() {
    let abort = json!({ "requests": 20, "latency_ms": 50 });
    let server = start(both("hostile", json!({ "traffic_percent": 100, "abort": abort })));
    let release = server.release();
    for _ in 0..2 {
        let answer = ask(&server, "spin&rounds=30000000000", None);
        assert_eq!(answer.header("gristmill-variant"), "candidate");
    }
    eventually("the release that takes it away", || server.release() == release + 1);
    let reason = report(&server)["reason"].as_str().unwrap().to_owned();
    assert!(
        ["2 of 20 requests took over 50 ms", "2 of 20 requests failed: 5 % may"]
            .contains(&reason.as_str()),
        "{reason}"
    );
}

#[test]
fn a_shadow_is_compared_and_never_seen() {
    let server = start(both("other", json!({ "shadow_percent": 100, "tolerance": 0.001 })));
    for _ in 0..10 {
        assert_eq!(variant(&server, None), "stable");
    }
    let all = |document: &Value| {
        let shadow = &document["shadow"];
        shadow["compared"].as_u64().unwrap() + shadow["skipped"].as_u64().unwrap()
    };
    let document = eventually_some("ten comparisons", || {
        Some(report(&server)).filter(|document| all(document) == 10)
    });
    assert!(document["shadow"]["compared"].as_u64().unwrap() > 0, "{document}");
    assert_eq!(
        (&document["shadow"]["different"], &document["differences"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(
        (&document["stable"]["requests"], &document["state"]),
        (&json!(10), &json!("running"))
    );

    // One that answers each request in another way.
    let abort = json!({ "requests": 4, "difference_percent": 50 });
    let hostile = both("hostile", json!({ "shadow_percent": 100, "abort": abort }));
    server.put_json(PIPELINE, &with(hostile));
    let release = server.release();
    eventually("the release that takes it away", || {
        assert_eq!(variant(&server, None).replace("stable", ""), "");
        server.release() == release + 1
    });
    let document = report(&server);
    assert_eq!(
        (&document["state"], &document["reason"]),
        (&json!("aborted"), &json!("3 of 4 answers differ: 50 % may"))
    );
    let kept = document["differences"].as_array().unwrap();
    assert!(kept.len() >= 3, "{document}");
    let values = &kept[0]["values"];
    assert_names(&values.to_string(), &["\"path\":\"body\"", "\"candidate\":\"8 bytes\""]);
    assert_names(&values.to_string(), &["\"path\":\"content_type\"", "application/json"]);
    assert_ne!(kept[0]["request_id"], "");
    // They are pieces of clients' answers.
    let eyes = make(&server, "eyes", &json!({ "role": "read" }));
    let at = path(&format!("{PIPELINE}/candidate"));
    let seen = server.admin.with_token(&eyes).get(&at).ok()["differences"][0].clone();
    assert_eq!((&seen["values"], &seen["request_id"]), (&json!([]), &kept[0]["request_id"]));
    assert!(seen["more"].as_u64() >= Some(2), "{seen}");
}

#[test]
fn a_shadow_that_misbehaves_neither_slows_nor_fails_what_clients_get() {
    let hostile = json!({ "shadow_percent": 100, "abort": { "failure_percent": 100 } });
    let server = start(both("hostile", hostile));
    for deed in ["panic", "loop", "eat-memory", "huge-response", "post-loop"] {
        let before = report(&server);
        under_load(
            4,
            |_| {
                let answer = ask(&server, deed, None);
                assert_eq!(answer.header("gristmill-variant"), "stable");
                assert_eq!(answer.ok()["label"], 7);
            },
            |answers| {
                assert_eq!(answers.iter().take(40).count(), 40);
                eventually("a failure of the shadow", || {
                    report(&server)["candidate"]["failures"].as_u64()
                        > before["candidate"]["failures"].as_u64()
                });
            },
        );
    }
    let document = report(&server);
    assert_eq!(
        (&document["state"], &document["stable"]["failures"]),
        (&json!("running"), &json!(0))
    );
    assert!(document["differences"].as_array().unwrap().len() <= 8, "{document}");
    let bytes = document.to_string().len();
    assert!(bytes < 32 << 10, "{bytes} bytes");
}

#[test]
fn a_candidate_with_faults_is_refused_with_all_of_them() {
    let server = start(both("other", json!({ "traffic_percent": 1 })));
    let before = (server.release(), read(&server, PIPELINE));
    let put = |candidate: Value| server.admin.put_json(&path(PIPELINE), &with(candidate));
    let unknown = json!({ "pre": "none", "model": "none", "traffic_percent": 1 });
    let named = ["candidate: pre: the tenant has no plugin \"none\"", "candidate: model: no model"];
    put(unknown).refused(422, "unprocessable", &named);
    let wrong = json!({ "pre": "none", "traffic_percent": 200, "share": 1 });
    let named = [
        "candidate.traffic_percent is 200",
        "candidate: unknown key \"share\"",
        "candidate: pre: the tenant has no plugin \"none\"",
    ];
    put(wrong).refused(422, "unprocessable", &named);
    // A candidate that answers clients passes the samples of its pipeline. A shadow need not.
    let mut sampled = with(both("hostile", json!({ "traffic_percent": 1 })));
    let request = json!({ "json": { "no": "picture" } });
    sampled["samples"] =
        json!([{ "name": "text", "request": request, "expect": { "status": 400 } }]);
    let refused = server.admin.put_json(&path(PIPELINE), &sampled);
    let named =
        ["pipeline \"digits\", candidate, sample \"text\": status: expected 400, found 200"];
    refused.refused(422, "sample_failed", &named);
    assert_eq!((server.release(), read(&server, PIPELINE)), before);
    sampled["candidate"] = both("hostile", json!({ "shadow_percent": 1 }));
    server.put_json(PIPELINE, &sampled);
    let refused = end(&server, "promote");
    refused.refused(422, "sample_failed", &["sample \"text\": status: expected 400, found 200"]);
    // A plugin that only the candidate names is in use.
    let refused = server.admin.delete(&path("tenants/acme/plugins/hostile"));
    refused.refused(409, "conflict", &["acme/digits"]);
    // The pipeline does without its candidate.
    server.admin.delete(&path("tenants/acme/plugins/hostile?cascade=true")).ok();
    let left = read(&server, PIPELINE);
    assert_eq!((&left["candidate"], &left["pre"]), (&Value::Null, &json!("digits")));
}

#[test]
fn a_tenant_ends_its_own_candidates_and_no_others() {
    let server = start(both("other", json!({ "traffic_percent": 1 })));
    server.open_tenant("else");
    let token = make(&server, "acme-ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let foreign = make(&server, "else-ci", &json!({ "role": "deploy", "tenants": ["else"] }));
    let at = path(&format!("{PIPELINE}/candidate"));
    for end in ["promote", "abort"] {
        let refused = server.admin.with_token(&foreign).post(&format!("{at}/{end}"), b"");
        assert_eq!(refused.status, 403, "{}", refused.text());
    }
    assert_eq!(server.admin.with_token(&foreign).get(&at).status, 403);
    assert_eq!(server.admin.with_token(&token).get(&at).ok()["state"], "running");
    server.admin.with_token(&token).post(&format!("{at}/promote"), b"").ok();
    assert_eq!(read(&server, PIPELINE)["pre"], "other");
}

#[test]
fn the_command_line_shows_and_promotes_a_candidate() {
    let server = start(both("other", json!({ "traffic_percent": 50 })));
    (0..4).for_each(|_| drop(variant(&server, None)));
    let cli = Cli::of(&server);
    let run = |arguments: &[&str]| {
        let arguments = [arguments, &["digits", "--tenant", "acme"]].concat();
        cli.ok(&arguments)
    };
    let shown = run(&["candidate", "show"]);
    assert_names(&shown, &["state      running", "candidate  2 requests, 0 failures"]);
    let text = run(&["candidate", "promote"]);
    assert_eq!(text, format!("release {} serves\n", server.release()));
    assert_names(&run(&["candidate", "show"]), &["state      ended"]);
    server.put_json(PIPELINE, &with(both("other", json!({ "traffic_percent": 50 }))));
    let text = run(&["candidate", "abort"]);
    assert_eq!(text, format!("release {} serves\n", server.release()));
    let left = read(&server, PIPELINE);
    assert_eq!((&left["candidate"], &left["pre"]), (&Value::Null, &json!("digits")));
}
