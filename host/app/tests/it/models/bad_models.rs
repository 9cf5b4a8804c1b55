//! Models that do not end, that ask for all memory, or that no longer fit, and their errors.

use std::time::{Duration, Instant};

use gristmill_client::http::Request;
use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::eventually::{eventually, eventually_some};
use crate::support::files;
use crate::support::onnx;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};

/// A timeout that is enough on a busy machine, and far below the longest wait of a test.
const GENEROUS: Duration = Duration::from_secs(60);

/// A server whose tenant `acme`, which needs no key, may run `model`.
fn granted(setup: Setup, model: &str, file: &[u8]) -> Server {
    let server = setup.flag("--open-tenant", "acme").start();
    server.put(&format!("models/{model}"), file);
    server.put_json("tenants/acme", &json!({ "open": true, "models": [model] }));
    server
}

/// The answer of the model `loop` to a request for this many turns.
fn take_turns(server: &Server, turns: i64) -> TestAnswer {
    let body = json!({ "inputs": [
        { "name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1.0] },
        { "name": "turns", "datatype": "INT64", "shape": [1, 1], "data": [turns] },
    ] });
    server.data.post("/v2/models/loop/infer", body.to_string().as_bytes())
}

fn doubled(answer: &TestAnswer) -> Value {
    answer.ok()["outputs"][0]["data"][0].clone()
}

const ENDLESS: i64 = 1 << 62;

#[test]
fn a_file_for_a_model_that_is_unloaded_is_tried_too() {
    let setup = Setup::new().flag("--open-tenant", "acme");
    let server = setup.start();
    server.put("models/m", &onnx::doubling(4));
    let operator = server.data.with_token(ADMIN_TOKEN);
    operator.post("/v2/repository/models/m/unload", b"").ok();
    let answer = server.admin.put("/admin/v1/models/m", b"no model at all");
    answer.refused(422, "invalid_model", &["model \"m\""]);
    let answer = server.admin.put("/admin/v1/models/m", &onnx::doubling(8)).ok();
    assert!(answer.get("providers").is_none(), "{answer}");
}

#[test]
fn a_run_without_end_is_ended_and_the_model_serves_on() {
    let setup = Setup::new().flag("--infer-timeout-s", "2");
    let server = granted(setup, "loop", &onnx::turns_from_input());
    assert_eq!(doubled(&take_turns(&server, 3)), 8.0);
    for times in 1..=2 {
        let late = take_turns(&server, ENDLESS);
        assert_eq!(late.status, 504, "{}", late.text());
        // The model has one instance, which answers only when the run before has ended. Until then
        // the server may expect its queue to be too long.
        let answer = eventually_some("the instance answers again", || {
            Some(take_turns(&server, 3)).filter(|answer| answer.status == 200)
        });
        assert_eq!(doubled(&answer), 8.0);
        let statistics = server.status()["models"]["loop"]["statistics"].clone();
        assert_eq!((&statistics["given_up"], &statistics["lost"]), (&json!(times), &json!(0)));
    }
    server.log_with("a run continues after its deadline");
}

/// The answer of the model `wide` to a request for an intermediate row of this many floats.
fn widen(server: &Server, columns: i64) -> TestAnswer {
    let body = json!({ "inputs": [
        { "name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1.0] },
        { "name": "columns", "datatype": "INT64", "shape": [1, 1], "data": [columns] },
    ] });
    server.data.post("/v2/models/wide/infer", body.to_string().as_bytes())
}

#[test]
fn a_run_that_asks_for_all_memory_fails_and_the_model_serves_on() {
    let limit = 256 << 20;
    let setup = Setup::new().flag("--model-run-memory-bytes", &limit.to_string());
    let server = granted(setup, "wide", &onnx::columns_from_input());
    // tract is the second provider. It has no limit.
    let both = json!({ "providers": ["cpu", "tract"] });
    server.put_json("models/wide/config", &both);
    let result = |columns| widen(&server, columns).ok()["outputs"][0]["data"].clone();
    assert_eq!(result(3), json!([1.0]));
    let before = server.resident_bytes();
    server.forget_peak();
    // 32 GiB, and a little more than the limit.
    for columns in [8 << 30, 65 << 20] {
        let refused = widen(&server, columns);
        assert_eq!(refused.status, 500, "{}", refused.text());
        assert!(refused.text().contains("model_run_memory_bytes"), "{}", refused.text());
        // Both fit. The second one fits only when the memory of the first is free again.
        for columns in [30 << 20, 60 << 20, 3] {
            assert_eq!(result(columns), json!([1.0]), "{columns}");
        }
    }
    let grown = server.peak_resident_bytes().saturating_sub(before);
    assert!(grown < 2 * limit, "the server grew by {grown} bytes");
}

#[test]
fn a_model_whose_first_run_goes_over_the_limit_is_refused() {
    let server = Setup::new().flag("--model-run-memory-bytes", &(64 << 20).to_string()).start();
    server.put("models/square", &onnx::outer_product(1000));
    let answer = server.admin.put("/admin/v1/models/square", &onnx::outer_product(10_000));
    answer.refused(422, "invalid_model", &["square", "model_run_memory_bytes"]);
}

#[test]
fn a_run_without_end_holds_up_no_shutdown() {
    let setup = Setup::new().flag("--drain-timeout-s", "1").flag("--infer-timeout-s", "600");
    let server = granted(setup, "loop", &onnx::turns_from_input());
    let data = server.data.clone();
    let body = json!({ "inputs": [
        { "name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1.0] },
        { "name": "turns", "datatype": "INT64", "shape": [1, 1], "data": [ENDLESS] },
    ] });
    let client = std::thread::spawn(move || {
        // It gets no answer.
        let request = Request::post("/v2/models/loop/infer").body(body.to_string().into());
        let _ = data.try_send(request.unwrap());
    });
    eventually("it runs", || server.status()["models"]["loop"]["statistics"]["running"] == 1);
    let stopped = Instant::now();
    server.signal_terminate();
    let (_, status, _) = server.wait();
    assert!(status.success(), "{status}");
    assert!(stopped.elapsed() < GENEROUS, "{:?}", stopped.elapsed());
    client.join().unwrap();
}

#[test]
fn a_model_that_asks_for_all_memory_is_refused_and_the_server_does_not_grow() {
    let server = Server::start();
    server.digits("acme");
    let before = server.resident_bytes();
    for bomb in [onnx::constant_bomb(), onnx::expanding_bomb()] {
        assert!(bomb.len() < 300, "{}", bomb.len());
        let answer = server.admin.put("/admin/v1/models/bomb", &bomb);
        answer.refused(422, "invalid_model", &["bomb", "memory"]);
        let grown = server.resident_bytes().saturating_sub(before);
        assert!(grown < 256 << 20, "the server grew by {grown} bytes");
    }
    assert!(server.status()["models"]["bomb"].is_null());
    server.assert_reads("acme", 7);
}

#[test]
fn a_load_without_end_is_ended_and_holds_up_no_other_change() {
    const CHANGES_MAX: usize = 50;
    let server = Setup::new().flag("--model-proof-timeout-s", "3").start();
    server.digits("acme");
    std::thread::scope(|scope| {
        let upload = scope.spawn(|| server.admin.put("/admin/v1/models/loop", &onnx::endless()));
        let mut changes = 0;
        // No more, because a child process has a low priority: changes without a pause would leave
        // it no processor, and the load would end late.
        while changes < CHANGES_MAX && !upload.is_finished() {
            server.open_tenant(&format!("t{}", changes % 10));
            server.assert_reads("acme", changes % 10);
            changes += 1;
        }
        let refused = upload.join().unwrap();
        refused.refused(422, "invalid_model", &["loop", "in a process of its own"]);
        assert!(changes > 1, "no other change was made meanwhile");
    });
    assert!(server.status()["models"]["loop"].is_null());
}

#[test]
fn a_library_that_is_gone_is_the_hosts_fault_and_no_path_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libonnxruntime.so");
    std::fs::copy(files::onnxruntime(), &library).unwrap();
    let server = Setup::new().onnxruntime(Some(&library)).start();
    let away = folder.path().join("away.so");
    std::fs::rename(&library, &away).unwrap();
    let put = || server.admin.put("/admin/v1/models/digits", &files::model("digits"));
    let named = ["model \"digits\"", "not because of the model"];
    let detail = put().refused(500, "internal", &named);
    assert!(!detail.contains('/') && !detail.contains("libonnxruntime"), "{detail}");
    server.log_with(library.to_str().unwrap());
    std::fs::rename(&away, &library).unwrap();
    put().ok();
}

#[test]
fn a_model_is_proven_once_for_all_restarts() {
    let server = Server::start();
    server.digits("acme");
    let setup = server.kill();
    let proofs = setup.data_dir().join("proofs");
    let proof = |count: usize| {
        let proof_files: Vec<_> = std::fs::read_dir(&proofs).unwrap().map(Result::unwrap).collect();
        assert_eq!(proof_files.len(), count);
        proof_files
            .first()
            .map(|proof| (proof.path(), proof.metadata().unwrap().modified().unwrap()))
    };
    let before = proof(1);
    let server = setup.start();
    server.assert_reads("acme", 3);
    assert_eq!(proof(1), before);
    let setup = server.kill();
    std::fs::write(before.unwrap().0, "damaged").unwrap();
    let server = setup.start();
    server.assert_reads("acme", 3);
    let text = std::fs::read_to_string(proof(1).unwrap().0).unwrap();
    assert!(text.contains("\"cpu\""), "{text}");
}

#[test]
fn what_is_put_says_what_runs_it_and_why_not_something_better() {
    let server = Server::start();
    let put = |file: &[u8]| server.admin.put("/admin/v1/models/m", file).ok();
    let best = put(&onnx::doubling(4));
    assert_eq!((&best["provider"], &best["warnings"]), (&json!("cpu"), &json!([])));
    assert_eq!(best["inputs"], json!([{ "name": "x", "datatype": "FP32", "shape": [-1, 4] }]));
    assert_eq!(best["outputs"], json!([{ "name": "y", "datatype": "FP32", "shape": [-1, 4] }]));
    assert!(best["release"].is_u64() && best["digest"].is_string(), "{best}");

    let config = json!({ "providers": ["cuda", "cpu"] });
    let config = server.admin.put_json("/admin/v1/models/m/config", &config).ok();
    assert_eq!(config["provider"], "cpu");
    assert!(config["warnings"].to_string().contains("onnxruntime on cuda"), "{config}");
    server.put_json("models/m/config", &json!({}));

    let slower = put(&onnx::of_the_future());
    assert_eq!(slower["provider"], "tract");
    let warnings = slower["warnings"].to_string();
    for named in ["onnxruntime: ", "99", "runs on tract"] {
        assert!(warnings.contains(named), "{named:?} is missing from {warnings}");
    }
    let status = server.status()["models"]["m"].clone();
    assert_eq!((&status["warnings"], &status["provider"]), (&slower["warnings"], &json!("tract")));
}

#[test]
fn a_model_that_no_longer_fits_its_users_is_refused_unless_forced() {
    let server = Server::start();
    server.ranker("acme");
    let granted = json!({ "api_keys": ["other-key-0123456789"], "models": ["ranker"] });
    server.put_json("tenants/other", &granted);
    let before = server.release();
    let digits = files::model("digits");
    let answer = server.admin.put("/admin/v1/models/ranker", &digits);
    let named = ["ranker", "pipeline acme/ranker", "tenant other", "input \"input\"", "force"];
    answer.refused(409, "conflict", &named);
    assert_eq!(server.release(), before);
    server.assert_ranks("acme");

    let forced = server.admin.put("/admin/v1/models/ranker?force=true", &digits).ok();
    assert_eq!(forced["release"], before + 1);
    let back = server.admin.put("/admin/v1/models/ranker", &files::model("ranker"));
    back.refused(409, "conflict", &["pipeline acme/ranker"]);
    server.admin.put("/admin/v1/models/ranker?force=true", &files::model("ranker")).ok();
    server.assert_ranks("acme");
}

#[test]
fn nothing_is_written_to_the_home_directory() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_str().unwrap();
    let server = Setup::new().variable("HOME", path).variable("XDG_CACHE_HOME", path).start();
    server.digits("acme");
    server.assert_reads_digits("acme");
    server.signal_terminate();
    let (_, status, _) = server.wait();
    assert!(status.success(), "{status}");
    let written: Vec<_> = std::fs::read_dir(home.path()).unwrap().collect();
    assert!(written.is_empty(), "{written:?}");
}
