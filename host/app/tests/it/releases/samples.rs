//! Golden samples: a release is made only if the pipelines that it touches answer as expected.

use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::admin_api::{path, read, upload};
use crate::support::client::TestAnswer;
use crate::support::deploy::{processor, ranker_body};
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::load::under_load;
use crate::support::onnx;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::words::assert_names;

/// A sample that is the image of a digit.
fn digit(name: &str, digit: usize, expect: Value) -> Value {
    let base64 = STANDARD.encode(files::digit(digit));
    json!({ "name": name, "request": { "base64": base64, "content_type": "image/png" },
        "expect": expect })
}

/// A sample of the plugin `hostile` that does a deed.
fn deed(name: &str, query: &str, expect: Value) -> Value {
    json!({ "name": name, "request": { "query": query }, "expect": expect })
}

fn with_samples(mut pipeline: Value, samples: &[Value]) -> Value {
    pipeline["samples"] = samples.into();
    pipeline
}

/// The pipeline `digits` with a sample for 4 and one for 7.
fn sampled_digits() -> Value {
    let four = digit("four", 4, json!({ "at": { "/label": 4, "/top/0/label": 4 } }));
    let seven = digit("seven", 7, json!({ "status": 200, "at": { "/label": 7 } }));
    with_samples(processor("digits", json!({})), &[four, seven])
}

/// A server with the open tenant `acme`, whose pipeline `digits` has samples.
fn start() -> Server {
    let server = Server::start();
    server.digits("acme");
    server.pipeline("acme", "digits", &sampled_digits());
    server
}

/// The plugin `digits` in another file.
fn other_digits() -> Vec<u8> {
    files::plugin_that_begins_with("digits", 32)
}

fn put(server: &Server, below: &str, document: &Value) -> TestAnswer {
    server.admin.put_json(&path(below), document)
}

fn put_file(server: &Server, below: &str, file: &[u8]) -> TestAnswer {
    server.admin.put(&path(below), file)
}

fn post(server: &Server, below: &str, document: &Value) -> TestAnswer {
    server.admin.post(&path(below), document.to_string().as_bytes())
}

const OF_DIGITS: &str = "tenant \"acme\", pipeline \"digits\", sample ";

#[test]
fn a_version_that_breaks_a_sample_is_refused_and_the_old_one_serves_on() {
    let server = start();
    let plugin = "tenants/acme/plugins/digits";
    under_load(
        4,
        |_| server.assert_reads("acme", 7),
        |answers| {
            let before = (server.release(), read(&server, plugin));
            // It answers each image with the text "harmless".
            let refused = put_file(&server, plugin, &files::plugin("hostile"));
            let named = [
                "samples failed",
                &format!("{OF_DIGITS}\"four\": $: expected JSON, found \"harmless\", which is"),
                &format!("{OF_DIGITS}\"seven\": $: expected JSON"),
            ];
            refused.refused(422, "sample_failed", &named);
            assert_eq!((server.release(), read(&server, plugin)), before);
            assert_eq!(answers.iter().take(20).count(), 20);
            // The refused version has left nothing, so the same is tried again.
            let again = put_file(&server, plugin, &files::plugin("hostile"));
            again.refused(422, "sample_failed", &named);
            assert_eq!(answers.iter().take(20).count(), 20);
            let release = server.put(plugin, &other_digits());
            assert_eq!((release, server.release()), (before.0 + 1, before.0 + 1));
            assert_eq!(answers.iter().take(20).count(), 20);
        },
    );
    // In need it goes live all the same.
    let skips = format!("{plugin}?skip_samples=true");
    server.put(&skips, &files::plugin("hostile"));
    let answer = server.data.post("/v1/acme/infer", &files::digit(7));
    assert_eq!(answer.text(), "harmless");
}

#[test]
fn a_pipeline_whose_own_samples_fail_is_not_put() {
    let server = Server::start();
    server.digits("acme");
    let before = server.release();
    let wrong = [
        digit("label", 4, json!({ "at": { "/label": 5, "/top/0/probability": 0.0, "/none": 1 } })),
        digit("status", 4, json!({ "status": 201, "content_type": "text/plain" })),
        json!({ "name": "picture", "request": { "body": "no picture" }, "expect": {} }),
        json!({ "name": "failure", "request": { "body": "no picture" },
            "expect": { "code": "unsupported_media_type" } }),
        json!({ "name": "right", "request": { "json": { "no": "picture" } },
            "expect": { "status": 400 } }),
        digit("right-too", 3, json!({ "at": { "/label": 3 } })),
    ];
    let pipeline = with_samples(processor("digits", json!({})), &wrong);
    let named = [
        "sample \"label\": $.label: expected 5, found 4",
        "$.top[0].probability: expected 0.0, found 0.",
        "$.none: expected 1, found nothing",
        "sample \"picture\": status: expected 200, found 415 (unsupported_media_type: ",
        "sample \"status\": status: expected 201, found 200; content_type: expected text/plain",
    ];
    for name in ["digits", "new"] {
        let refused = put(&server, &format!("tenants/acme/pipelines/{name}"), &pipeline);
        let subject = format!("tenant \"acme\", pipeline {name:?}, sample");
        let named = [&named[..], &[&subject]].concat();
        let detail = refused.refused(422, "sample_failed", &named);
        for passed in ["\"right\"", "\"right-too\"", "\"failure\""] {
            assert!(!detail.contains(passed), "{detail}");
        }
    }
    assert_eq!(server.release(), before);
    let refused = put(&server, "tenants/acme/pipelines/digits?skip_samples=yes", &pipeline);
    refused.refused(400, "invalid_request", &["skip_samples is \"yes\""]);
}

#[test]
fn a_failed_sample_says_what_the_plugin_said() {
    let server = Server::start();
    server.hostile("acme");
    let samples = [
        deed("panics", "do=panic", json!({})),
        deed("fails", "do=internal-error", json!({})),
        deed("loops", "do=loop", json!({})),
        deed("loops-later", "do=post-loop", json!({})),
        deed("is-late", "do=spin&rounds=100000000000", json!({})),
        deed("answers-much", "do=huge-response", json!({})),
        deed("is-harmless", "", json!({ "text": "harmless" })),
    ];
    // Enough for the large answer, also on a busy machine.
    let limits = json!({ "cpu_ms": 500, "timeout_ms": 60_000 });
    let pipeline = with_samples(processor("hostile", limits), &samples);
    let named = [
        "sample \"panics\": status: expected 200, found 500 (plugin_trapped: ",
        "the plugin said \"panicked at",
        "as told",
        "sample \"fails\": status: expected 200, found 500 (plugin_failed: ",
        "the plugin said \"a secret of the plugin\"",
        "sample \"loops\": status: expected 200, found 504 (plugin_timeout: ",
        "sample \"loops-later\": status: expected 200, found 504 (plugin_timeout: ",
        "sample \"is-late\": status: expected 200, found 504 (plugin_timeout: ",
        "sample \"answers-much\": status: expected 200, found 500 (plugin_",
    ];
    let refused = put(&server, "tenants/acme/pipelines/new", &pipeline);
    let detail = refused.refused(422, "sample_failed", &named);
    assert!(!detail.contains("is-harmless"), "{detail}");
    // No client sent these requests, so no client's figures have them. The lines show them.
    let lines = read(&server, "tenants/acme/plugins/hostile/logs");
    assert_names(&lines.to_string(), &["\"request_id\":\"sample-panics\"", "\"pipeline\":\"new\""]);
}

#[test]
fn all_samples_together_have_a_time_and_others_are_served_meanwhile() {
    let server = Setup::new().flag("--samples-timeout-s", "1").start();
    server.hostile("acme");
    server.digits("other");
    let limits = json!({ "cpu_ms": 60_000, "timeout_ms": 100_000 });
    let samples: Vec<_> =
        (0..16).map(|index| deed(&format!("s{index}"), "do=loop", json!({}))).collect();
    let pipeline = with_samples(processor("hostile", limits), &samples);
    under_load(
        2,
        |_| server.assert_reads("other", 7),
        |answers| {
            let refused = put(&server, "tenants/acme/pipelines/new", &pipeline);
            let text = "16 samples did not end within 1 s (samples_timeout_s)";
            refused.refused(422, "sample_failed", &[text]);
            assert_eq!(answers.iter().take(20).count(), 20);
        },
    );
    nothing_runs(&server);
}

fn bytes_under_way(server: &Server) -> u64 {
    server.status()["tenants"]["acme"]["bytes_under_way"].as_u64().unwrap()
}

#[track_caller]
fn nothing_runs(server: &Server) {
    eventually("nothing of the tenant runs", || bytes_under_way(server) == 0);
}

#[test]
fn samples_stop_when_the_client_of_the_change_leaves() {
    let server = Server::start();
    server.hostile("acme");
    let limits = json!({ "cpu_ms": 60_000, "timeout_ms": 100_000 });
    let sample = deed("loops", "do=loop", json!({}));
    let body = with_samples(processor("hostile", limits), &[sample]).to_string();
    let mut leaves =
        Raw::sent(&server.admin, &raw::upload("tenants/acme/pipelines/new", body.len()));
    leaves.send(body.as_bytes());
    eventually("the sample runs", || bytes_under_way(&server) > 0);
    // Meanwhile other changes are made.
    server.open_tenant("other");
    drop(leaves);
    nothing_runs(&server);
    server.admin.get(&path("tenants/acme/pipelines/new")).refused(404, "not_found", &[]);
}

/// A ranker's sample whose best item must have this score.
fn ranked(score: f64) -> Value {
    let request = json!({ "json": ranker_body(&[vec![0.5; 32].into()]) });
    let expect = json!({ "at": { "/items/0/score": score }, "tolerance": 0.01 });
    json!({ "name": "half", "request": request, "expect": expect })
}

/// The tenant `acme` with the pipeline `ranker` on a model that adds up its row.
fn ranker() -> Server {
    let server = Server::start();
    server.ranker("acme");
    server.put("models/ranker?force=true", &onnx::row_sums(1));
    let pipeline = json!({ "pre": "ranker-pre", "model": "ranker", "post": "ranker-post" });
    server.pipeline("acme", "ranker", &with_samples(pipeline, &[ranked(16.1)]));
    server
}

/// The score of a row of halves.
#[track_caller]
fn score(server: &Server) -> f64 {
    let body = ranker_body(&[vec![0.5; 32].into()]).to_string();
    let answer = server.data.post("/v1/acme/infer/ranker", body.as_bytes()).ok();
    answer["items"][0]["score"].as_f64().unwrap()
}

#[test]
fn a_model_whose_numbers_differ_too_much_is_refused() {
    let server = ranker();
    let (first, model) = (server.release(), "models/ranker");
    let refused = put_file(&server, model, &onnx::row_sums(2));
    let text = "sample \"half\": $.items[0].score: expected 16.1, found 32.0";
    refused.refused(422, "sample_failed", &["pipeline \"ranker\"", text]);
    assert_eq!((server.release(), score(&server)), (first, 16.0));

    // Another file with the same numbers is taken. So are other settings of its queue, and other
    // instances.
    server.put(model, &onnx::row_sums(0));
    for config in [json!({ "max_queue_delay_us": 5 }), json!({ "instances": 2 })] {
        server.put_json("models/ranker/config", &config);
    }
    assert_eq!((server.release(), score(&server)), (first + 3, 16.0));

    let skips = format!("{model}?skip_samples=true");
    server.put(&skips, &onnx::row_sums(2));
    assert_eq!(score(&server), 32.0);
    // Changes that do not touch the pipeline do not care about its samples, and neither does a
    // start.
    server.open_tenant("other");
    server.put_json("tenants/acme", &json!({ "open": true, "weight": 7 }));
    server.put("models/other", &onnx::doubling(4));
    let server = server.kill().start();
    assert_eq!(score(&server), 32.0);
    let config = json!({ "instances": 1 });
    put(&server, "models/ranker/config", &config).refused(422, "sample_failed", &[text]);
    put(&server, "models/ranker/config?skip_samples=true", &config).ok();
}

#[test]
fn releases_of_many_changes_and_dry_runs_run_samples() {
    let server = start();
    let before = server.release();
    let plugin = upload(&server, &files::plugin("hostile"));
    let put_plugin =
        json!({ "kind": "put_plugin", "tenant": "acme", "plugin": "digits", "digest": plugin });
    let tenant =
        |name: &str| json!({ "kind": "put_tenant", "tenant": name, "document": { "open": true } });
    let new = json!({ "changes": [tenant("new"), put_plugin] });
    for below in ["releases", "releases?dry_run=true"] {
        let refused = post(&server, below, &new);
        let named = format!("{OF_DIGITS}\"four\": $: expected JSON");
        refused.refused(422, "sample_failed", &[&named]);
    }
    assert_eq!(server.release(), before);
    server.assert_reads("acme", 7);
    let skipped = post(&server, "releases?dry_run=true&skip_samples=true", &new).ok();
    assert_eq!((&skipped["release"], &skipped["dry_run"]), (&json!(before + 1), &json!(true)));

    // Plugin and samples change together.
    let samples = [deed("harmless", "", json!({ "text": "harmless" }))];
    let put_pipeline = json!({ "kind": "put_pipeline", "tenant": "acme", "pipeline": "digits",
        "document": with_samples(processor("digits", json!({})), &samples) });
    let new = json!({ "changes": [tenant("new"), put_plugin, put_pipeline] });
    assert_eq!(post(&server, "releases?dry_run=true", &new).ok()["release"], before + 1);
    assert_eq!(post(&server, "releases", &new).ok()["release"], before + 1);
    assert_eq!(server.data.post("/v1/acme/infer", &files::digit(7)).text(), "harmless");

    // The whole tenant goes back, with the samples that it had.
    let back = json!({ "to": before, "tenant": "acme" });
    assert_eq!(post(&server, "rollback", &back).ok()["release"], before + 2);
    server.assert_reads("acme", 7);
    let all =
        json!({ "changes": [{ "kind": "delete_plugin", "tenant": "acme", "plugin": "digits" }] });
    post(&server, "releases?cascade=true", &all).ok();
}

#[test]
fn going_back_runs_samples_unless_they_are_skipped() {
    let server = ranker();
    let then = server.release();
    let pipeline = json!({ "pre": "ranker-pre", "model": "ranker", "post": "ranker-post" });
    server.put("models/ranker?skip_samples=true", &onnx::row_sums(2));
    server.pipeline("acme", "ranker", &with_samples(pipeline, &[ranked(32.1)]));
    let now = server.release();
    let back = json!({ "to": then, "model": "ranker" });
    let text = "sample \"half\": $.items[0].score: expected 32.1, found 16.0";
    for below in ["rollback", "rollback?dry_run=true"] {
        post(&server, below, &back).refused(422, "sample_failed", &[text]);
    }
    assert_eq!((server.release(), score(&server)), (now, 32.0));
    post(&server, "rollback?skip_samples=true", &back).ok();
    assert_eq!((server.release(), score(&server)), (now + 1, 16.0));
}

/// While the samples of a change run, another change replaces the model. A busy machine may take
/// longer for that change than for the sample: then the sample takes longer, and all begins again.
#[test]
fn samples_run_again_if_another_change_touches_their_pipeline_meanwhile() {
    let server = Server::start();
    server.hostile("acme");
    let overtaken = (1..=3).any(|attempt| change_during_a_sample(&server, attempt));
    assert!(overtaken, "the sample was always quicker than the change of the model");
}

/// Put a pipeline whose sample spins, and change the model meanwhile. Each attempt spins eight
/// times as long as the one before. False if the sample ended before that change.
fn change_during_a_sample(server: &Server, attempt: u32) -> bool {
    let limits = json!({ "cpu_ms": 60_000, "timeout_ms": 100_000 });
    let spins = format!("do=spin&rounds={}", 125_000_000 * 8_u64.pow(attempt));
    let samples = [deed("spins", &spins, json!({ "text": "harmless" }))];
    let pipeline = with_samples(processor("hostile", limits), &samples);
    let runs = || server.status()["models"]["digits"]["statistics"]["success"].clone();
    let ran_meanwhile = thread::scope(|scope| {
        let putting = scope.spawn(|| put(server, "tenants/acme/pipelines/new", &pipeline));
        eventually("the sample runs", || bytes_under_way(server) > 0);
        server.put_json("models/digits/config", &json!({ "instances": attempt + 1 }));
        // The new lane serves. It has run nothing yet, unless the sample was too quick.
        let ran_meanwhile = runs();
        putting.join().unwrap().ok();
        ran_meanwhile
    });
    if ran_meanwhile != 0 {
        server.admin.delete("/admin/v1/tenants/acme/pipelines/new").ok();
        return false;
    }
    assert_eq!(runs(), 1, "it ran again, on the new lane");
    true
}

#[test]
fn samples_are_kept_and_read_back_but_no_list_shows_them() {
    let mut server = start();
    let below = "tenants/acme/pipelines/digits";
    let before = server.release();
    for _ in 0..2 {
        let document = read(&server, below);
        assert_eq!(document["samples"], sampled_digits()["samples"]);
        assert_eq!(put(&server, below, &document).ok()["release"], before);
        let listed = read(&server, "tenants/acme/pipelines");
        assert!(listed["items"][0]["samples"].is_null(), "{listed}");
        let refused = put_file(&server, "tenants/acme/plugins/digits", &files::plugin("hostile"));
        refused.refused(422, "sample_failed", &[]);
        server = server.kill().start();
    }
    let release = read(&server, &format!("releases/{before}"));
    assert_eq!(release["changes"][0]["document"]["samples"], sampled_digits()["samples"]);
    let log = server.data_dir().join(format!("store/log/{before:020}.json"));
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.starts_with("{\"format\":11,"), "{}", &text[..20]);
}

#[test]
fn faulty_samples_are_all_named_at_once() {
    let server = Server::start();
    server.digits("acme");
    let samples = json!([
        { "name": "A b", "request": { "body": "a", "base64": "AA==" }, "expects": {} },
        { "name": "c", "request": { "query": "a b", "base64": "?" },
            "expect": { "status": 42, "tolerance": -1, "at": { "label": 1 }, "code": "oops" } },
        { "name": "c" },
    ]);
    let mut pipeline = processor("digits", json!({}));
    pipeline["samples"] = samples;
    let named = [
        "samples[0].name: \"A b\" is not a valid name",
        "samples[0].request.body: give one of body, json and base64",
        "samples[0]: unknown key \"expects\"; known are name, request, expect",
        "samples[1].request.query cannot be sent in a URL",
        "samples[1].request.base64 is not Base64",
        "samples[1].expect.status is 42: must be 200 to 599",
        "samples[1].expect.tolerance is -1: must be a number from 0 to 1",
        "samples[1].expect.at[\"label\"]: must be a JSON pointer",
        "samples[1].expect.code is \"oops\": must be one of invalid_request",
    ];
    let below = "tenants/acme/pipelines/digits";
    put(&server, below, &pipeline).refused(422, "unprocessable", &named);
    let large = [json!({ "name": "large", "request": { "body": "x".repeat(300_000) } })];
    let pipeline = with_samples(processor("digits", json!({})), &large);
    let named = ["as JSON: the limit is 262144"];
    put(&server, below, &pipeline).refused(422, "unprocessable", &named);
}

#[test]
fn a_dry_run_shows_what_samples_get() {
    let server = start();
    let wrong = digit("wrong", 3, json!({ "at": { "/label": 4 } }));
    let text = json!({ "name": "text", "request": { "body": "no picture" }, "expect": {} });
    let document = with_samples(processor("digits", json!({})), &[wrong, text]);
    let change = json!({ "kind": "put_pipeline", "tenant": "acme", "pipeline": "new", "document": document });
    let release = |query: &str| {
        let changes = json!({ "changes": [change] });
        server.admin.post(&path(&format!("releases?{query}")), changes.to_string().as_bytes())
    };
    let shown = release("dry_run=true&show_answers=true").ok()["samples"].clone();
    let [text, wrong] = &shown.as_array().unwrap()[..] else { panic!("{shown}") };
    assert_eq!((&text["sample"], &text["status"]), (&json!("text"), &json!(415)), "{text}");
    assert_eq!(
        (&text["code"], &text["pipeline"]),
        (&json!("unsupported_media_type"), &json!("new"))
    );
    let body = STANDARD.decode(wrong["base64"].as_str().unwrap()).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&wrong["status"], &body["label"]), (&json!(200), &json!(3)), "{wrong}");
    // Otherwise they are compared.
    release("dry_run=true").refused(422, "sample_failed", &["expected 4, found 3"]);
    let named = ["show_answers is true: it needs dry_run=true"];
    release("show_answers=true").refused(400, "invalid_request", &named);
    let both = "dry_run=true&show_answers=true&skip_samples=true";
    release(both).refused(400, "invalid_request", &named);
    server.admin.get(&path("tenants/acme/pipelines/new")).refused(404, "not_found", &[]);
}
