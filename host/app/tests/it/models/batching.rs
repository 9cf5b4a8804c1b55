//! A model's batching, by its configuration, which changes while the server runs.

use gristmill_client::{BinaryTensor, InferBody, infer_body};
use serde_json::{Value, json};

use crate::support::deploy::processor;
use crate::support::eventually::{eventually, eventually_some};
use crate::support::files;
use crate::support::onnx;
use crate::support::server::Server;
use crate::support::setup::Setup;

#[test]
fn a_preferred_size_is_waited_for_and_a_new_configuration_applies_at_once() {
    let server = Server::start();
    server.digits("acme");
    let config = json!({ "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [2] });
    server.put_json("models/digits/config", &config);
    // Each waits for the other one, for at most a minute. That is longer than the timeout.
    std::thread::scope(|scope| {
        for digit in [1, 6] {
            let server = &server;
            scope.spawn(move || server.assert_reads("acme", digit));
        }
    });
    let model = server.status()["models"]["digits"].clone();
    assert_eq!(model["statistics"]["batch_sizes"], json!({ "2": 1 }), "{model}");
    server.put_json("models/digits/config", &json!({}));
    server.assert_reads("acme", 3);
}

/// The server measures that batches of 256 rows are no faster than smaller ones.
#[test]
fn a_preferred_size_over_the_measured_one_is_waited_for() {
    let server = Server::start();
    server.digits("acme");
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["digits"] }));
    let config = json!({ "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [256] });
    server.put_json("models/digits/config", &config);
    std::thread::scope(|scope| {
        for rows in [255, 1] {
            let server = &server;
            scope.spawn(move || {
                let answer =
                    server.data.infer("/v1/acme/v2/models/digits/infer", &many_digits(rows));
                assert_eq!(answer.status, 200, "{}", answer.text());
            });
        }
    });
    let model = server.status()["models"]["digits"].clone();
    assert_eq!(model["statistics"]["batch_sizes"], json!({ "256": 1 }), "{model}");
}

#[test]
fn batches_are_padded_to_allowed_sizes() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.digits("acme");
    // The model runs single rows alone.
    server.put("models/single", &onnx::single_rows());
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["single", "digits"] }));
    let row = json!({ "name": "x", "datatype": "FP32", "shape": [1, 1], "data": [3.0] });
    let ask = || {
        let request = json!({ "inputs": [row] }).to_string();
        server.data.post("/v2/models/single/infer", request.as_bytes()).ok()["outputs"][0]["data"]
            .clone()
    };
    assert_eq!(ask(), json!([9.0]));
    let runs = || server.status()["models"]["single"]["providers"][0]["runs"].clone();
    assert_eq!(runs(), 1);
    // It could not be proven, because it fails on several rows.
    let padded =
        json!({ "batching": "declared", "max_batch_size": 4, "allowed_batch_sizes": [2, 4] });
    let answer = server.admin.put_json("/admin/v1/models/single/config", &padded).ok();
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.contains("a first run on 2 rows of zeros failed"), "{warning}");
    assert_eq!(server.status()["models"]["single"]["allowed_batch_sizes"], json!([2, 4]));
    // Two padded rows fail, and the row is run alone.
    assert_eq!((ask(), runs()), (json!([9.0]), json!(1)));
    server.put_json("models/digits/config", &json!({ "allowed_batch_sizes": [7, 256] }));
    server.assert_reads("acme", 3);
    assert_eq!(server.status()["models"]["digits"]["statistics"]["batch_sizes"], json!({ "1": 1 }));

    let refused = |config: Value, named: &[&str]| {
        let answer = server.admin.put_json("/admin/v1/models/digits/config", &config);
        answer.refused(422, "unprocessable", named);
    };
    let sizes = json!({ "max_batch_size": 8, "allowed_batch_sizes": [0, 9] });
    let out_of_range = ["allowed_batch_sizes[0] is 0: must be 1 to 8", "[1] is 9: must be 1 to 8"];
    refused(sizes, &out_of_range);
    let descending = json!({ "max_batch_size": 8, "allowed_batch_sizes": [4, 2, 8] });
    refused(descending, &["allowed_batch_sizes[1] is 2: must be more than 4, before it"]);
    let short = json!({ "max_batch_size": 8, "allowed_batch_sizes": [2, 4] });
    refused(short, &["the last of allowed_batch_sizes is 4: must be max_batch_size, 8"]);
    let odd = json!({ "max_batch_size": 8, "allowed_batch_sizes": [2, 8], "warm_up": [8, 4] });
    refused(odd, &["warm_up[1] is 4: is not among allowed_batch_sizes"]);
}

/// A request waits for a second one, which never comes. Meanwhile the queue's limit changes, and
/// then its delay is set to zero.
#[test]
fn a_changed_queue_limit_takes_effect_at_once_and_loads_nothing() {
    let server = Server::start();
    server.digits("acme");
    // If the server measured a maximum below the preferred size, it would load the model again.
    let sizes = json!({ "max_batch_size": 8 });
    let patient = processor("digits", json!({ "timeout_ms": 100_000 }));
    server.pipeline("acme", "digits", &patient);
    let model = || server.status()["models"]["digits"].clone();
    let configure = |config: &Value| server.put_json("models/digits/config", config);
    configure(&sizes);
    server.assert_reads("acme", 3);
    let waits = json!({
        "max_batch_size": 8, "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [2],
    });
    configure(&waits);
    std::thread::scope(|scope| {
        scope.spawn(|| server.assert_reads("acme", 1));
        eventually("one row is queued", || model()["statistics"]["queued_rows"] == 1);
        let mut full = waits.clone();
        full["default_queue_policy"] = json!({ "max_queue_size": 1 });
        configure(&full);
        assert_eq!(model()["config"]["default_queue_policy"]["max_queue_size"], 1);
        let refused = server.data.post("/v1/acme/infer/digits", &files::digit(6));
        refused.refused(429, "queue_full", &["priority level"]);
        // The waiting request is due now.
        configure(&sizes);
    });
    let model = model();
    // One lane served all of it, on one instance: if a model is loaded again, its counters and runs
    // start again.
    let statistics = &model["statistics"];
    assert_eq!((&statistics["success"], &statistics["refused"]), (&json!(2), &json!(1)));
    assert_eq!((&statistics["fail"], &model["providers"][0]["runs"]), (&json!(1), &json!(2)));
    server.put_json("models/digits/config", &json!({ "threads": 2 }));
    let statistics = server.status()["models"]["digits"]["statistics"].clone();
    assert_eq!(statistics["success"], 0, "other options load the model anew");
}

#[test]
fn what_is_queued_for_longer_than_its_level_allows_is_refused() {
    let server = Server::start();
    server.digits("acme");
    // Waits for a second request that never comes.
    let policy = json!({ "default_timeout_us": 1000 });
    let config = json!({
        "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [2], "default_queue_policy": policy,
    });
    server.put_json("models/digits/config", &config);
    let answer = server.data.post("/v1/acme/infer/digits", &files::digit(1));
    answer.refused(504, "deadline_exceeded", &["while the request was queued"]);
    let statistics = server.status()["models"]["digits"]["statistics"].clone();
    assert_eq!((&statistics["expired"], &statistics["batches"]), (&json!(1), &json!(0)));
}

/// A request of this many rows in one tensor for `digits`.
fn many_digits(rows: usize) -> InferBody {
    let data = vec![0; rows * 28 * 28 * size_of::<f32>()];
    let shape = [rows, 1, 28, 28];
    let input = BinaryTensor { name: "input", datatype: "FP32", shape: &shape, data: &data };
    infer_body(&[input], json!({}))
}

/// The model has learned only from one long batch, so it expects the next one to be as long. One
/// request is queued, because it waits for a second one to share its batch. A request with half the
/// time of a batch left is refused at once.
#[test]
fn what_cannot_be_answered_in_time_is_refused_early() {
    const ROWS: usize = 4096;
    let server = Server::start();
    server.digits("acme");
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["digits"] }));
    let config = json!({
        "max_batch_size": ROWS, "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [2],
        "providers": ["tract"],
    });
    server.put_json("models/digits/config", &config);
    let path = "/v1/acme/v2/models/digits/infer";
    assert_eq!(server.data.infer(path, &many_digits(ROWS)).status, 200);
    let statistics = || server.status()["models"]["digits"]["statistics"].clone();
    let batch_ms = statistics()["compute_infer_us"].as_u64().unwrap() / 1000;
    let limits = json!({ "timeout_ms": (batch_ms / 2).max(1) });
    server.pipeline("acme", "hurried", &processor("digits", limits));
    // The waiting requests must not expire while hurried ones are tried.
    server.pipeline("acme", "digits", &processor("digits", json!({ "timeout_ms": 100_000 })));
    std::thread::scope(|scope| {
        scope.spawn(|| server.assert_reads("acme", 1));
        eventually("one row is queued", || statistics()["queued_rows"] == 1);
        // It may expire before it reaches the model, if the plugin has to wait for a core.
        let refused = eventually_some("one comes to the model in time", || {
            let hurried = server.data.post("/v1/acme/infer/hurried", &files::digit(3));
            (hurried.status != 504).then_some(hurried)
        });
        refused.refused(503, "overloaded", &["too busy to answer in time"]);
        assert!(refused.header("retry-after").parse::<u64>().unwrap() > batch_ms / 1000);
        assert_ne!(statistics()["refused_early"], 0);
        // The second request, which has enough time.
        server.assert_reads("acme", 6);
    });
    assert_eq!(statistics()["batch_sizes"], json!({ "2": 1, "4096": 1 }));
}

/// The shape and the data of the answer to a request with these inputs of fractions.
fn answer_of(server: &Server, model: &str, inputs: &[(&str, &[f32])]) -> Value {
    let inputs = inputs.iter().map(|(name, data)| {
        json!({ "name": name, "datatype": "FP32", "shape": [data.len()], "data": data })
    });
    let request = json!({ "inputs": inputs.collect::<Vec<_>>() }).to_string();
    let answer = server.data.post(&format!("/v2/models/{model}/infer"), request.as_bytes());
    let output = &answer.ok()["outputs"][0];
    json!([output["shape"], output["data"]])
}

/// Triton's spelling for a model whose first dimension is not rows.
#[test]
fn a_model_that_does_not_batch_takes_any_first_dimension() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.put("models/joined", &onnx::joined());
    server.put("models/doubled", &onnx::doubled());
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["joined", "doubled"] }));
    for model in ["joined", "doubled"] {
        server.put_json(&format!("models/{model}/config"), &json!({ "max_batch_size": 0 }));
        let status = server.status()["models"][model].clone();
        assert_eq!(
            (&status["dynamic_rows"], &status["batching"]["is_on"]),
            (&json!(true), &json!(false))
        );
    }
    let joined = answer_of(&server, "joined", &[("a", &[1.0, 2.0]), ("b", &[3.0])]);
    assert_eq!(joined, json!([[3], [1.0, 2.0, 3.0]]));
    assert_eq!(answer_of(&server, "doubled", &[("x", &[])]), json!([[0], []]));
    let many = answer_of(&server, "doubled", &[("x", &[1.5; 9000])]);
    assert_eq!((&many[0], many[1].as_array().unwrap().len()), (&json!([9000]), 9000));
    // The configuration says the same to clients.
    let config = server.data.get("/v2/models/doubled/config").ok();
    assert_eq!((&config["max_batch_size"], &config["input"][0]["dims"]), (&json!(0), &json!([-1])));
}

#[test]
fn certificates_are_in_the_status_the_answer_and_the_metadata() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    let answer = server.admin.put("/admin/v1/models/doubled", &onnx::doubled()).ok();
    let proven = &answer["batching"]["certificates"][0];
    assert_eq!((&proven["provider"], &proven["rows"]), (&json!("cpu"), &json!("independent")));
    assert_eq!((&proven["influence"], &answer["batching"]["is_on"]), (&json!(0.0), &json!(true)));
    server.put("models/joined", &onnx::joined());
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["joined"] }));
    let status = server.status()["models"]["joined"].clone();
    assert_eq!(status["batching"]["certificates"][0]["rows"], "dependent", "{status}");
    assert!(
        status["warnings"][0].as_str().unwrap().contains("each request runs alone"),
        "{status}"
    );
    let metadata = server.data.get("/v2/models/joined").ok();
    assert_eq!(metadata["properties"]["batching"], "off", "{metadata}");
    // The operator knows better, or not.
    server.put_json("models/joined/config", &json!({ "batching": "declared" }));
    let declared = server.status()["models"]["joined"]["batching"].clone();
    assert_eq!((&declared["is_on"], &declared["is_declared"]), (&json!(true), &json!(true)));
    let refused = json!({ "batching": "declared", "max_batch_size": 0 });
    let refused = server.admin.put_json("/admin/v1/models/joined/config", &refused);
    refused.refused(422, "unprocessable", &["max_batch_size is 0, which turns batching off"]);
}

#[test]
fn a_tenant_may_keep_its_rows_apart() {
    let server = Server::start();
    server.put_json("tenants/acme", &json!({ "open": true, "batch_with": "tenant" }));
    assert_eq!(server.admin.get("/admin/v1/tenants/acme").ok()["batch_with"], "tenant");
    let wrong = json!({ "open": true, "batch_with": "friends" });
    let refused = server.admin.put_json("/admin/v1/tenants/acme", &wrong);
    refused.refused(422, "unprocessable", &["batch_with", "friends", "any", "tenant"]);
}

/// A first run on pictures of one pixel fails.
#[test]
fn open_dimensions_have_a_size_that_the_model_takes() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.put("models/blur", &onnx::convolution());
    let model = server.status()["models"]["blur"].clone();
    let reason = model["sizes"]["reason"].as_str().unwrap();
    assert!(reason.contains("(open dimensions of 224)"), "{model}");
    let server = server.kill().start();
    let log = server.log();
    assert!(!log.contains("ort::logging"), "{log}");
}

#[test]
fn sizes_that_are_not_set_are_measured_and_shown() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.model("digits");
    let read = || server.status()["models"]["digits"].clone();
    let sizes = read()["sizes"].clone();
    let reason = sizes["reason"].as_str().unwrap();
    assert!(reason.starts_with("a batch of "), "{sizes}");
    let number = |key: &str| sizes[key].as_u64().unwrap() as usize;
    let cores = std::thread::available_parallelism().unwrap().get();
    assert!((1..=cores).contains(&(number("instances") * number("threads"))), "{sizes}");
    assert!((1..=256).contains(&number("max_batch_size")), "{sizes}");
    assert_eq!(read()["config"]["instances"], "auto");
    // Some are set, and some are left to the server.
    let config = json!({ "instances": 3, "threads": 2, "max_batch_size": "auto" });
    server.put_json("models/digits/config", &config);
    let sizes = read()["sizes"].clone();
    assert_eq!((&sizes["instances"], &sizes["threads"]), (&json!(3), &json!(2)), "{sizes}");
    // All are set, so nothing is measured.
    let config = json!({ "instances": 1, "threads": 1, "max_batch_size": 5 });
    server.put_json("models/digits/config", &config);
    let expected = json!({ "instances": 1, "threads": 1, "max_batch_size": 5 });
    assert_eq!(read()["sizes"], expected);
    let wrong = json!({ "instances": "many", "threads": -1 });
    let refused = server.admin.put_json("/admin/v1/models/digits/config", &wrong);
    let must = "must be \"auto\" or a whole number from 0 on";
    let named = [format!("instances is \"many\": {must}"), format!("threads is -1: {must}")];
    refused.refused(422, "unprocessable", &named.each_ref().map(|text| &text[..]));
}
