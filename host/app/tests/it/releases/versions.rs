//! Several versions of a plugin or a model side by side: those that a policy keeps, and those that
//! pipelines name.

use serde_json::{Value, json};

use crate::releases::kept::{self, is_stored, push_out};
use crate::support::admin_api::{digest, make, path, post_to, read};
use crate::support::client::{Client, TestAnswer};
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::protobuf::Message;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::{files, grpc, onnx};

/// A file of the model `m`. Its answer to [`ask`] is 32 if `kind` is 0 or 1, otherwise 64.
fn sums(kind: usize) -> Vec<u8> {
    onnx::row_sums(kind)
}

/// The policy that keeps so many of the newest versions.
fn latest(versions: usize) -> Value {
    json!({ "latest": { "num_versions": versions } })
}

/// The open tenant `acme` with the model `m`, of which the newest two versions stay. Returns the
/// first version.
fn start(setup: Setup) -> (Server, u64) {
    let server = setup.flag("--open-tenant", "acme").start();
    let first = server.put("models/m", &sums(1));
    server.put_json("models/m/config", &json!({ "version_policy": latest(2) }));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["m"] }));
    (server, first)
}

/// Ask for the model's answer to 32 ones, at `models/m` or one of its versions.
fn try_ask(server: &Server, model: &str) -> TestAnswer {
    let body = json!({ "inputs": [{ "name": "input", "datatype": "FP32", "shape": [1, 32],
        "data": vec![1.0; 32] }] });
    server.data.post(&format!("/v2/{model}/infer"), body.to_string().as_bytes())
}

/// The answer, and the version that gave it.
#[track_caller]
fn ask(server: &Server, version: Option<u64>) -> (f64, u64) {
    let at = version.map(|version| format!("/versions/{version}")).unwrap_or_default();
    let answer = try_ask(server, &format!("models/m{at}")).ok();
    let version = answer["model_version"].as_str().unwrap().parse().unwrap();
    (answer["outputs"][0]["data"][0].as_f64().unwrap(), version)
}

/// The same over gRPC. Without a version, it is empty.
#[track_caller]
fn ask_grpc(server: &Server, version: &str) -> (f32, String) {
    let input = Message::new().text(1, "input").text(2, "FP32").int(3, 1).int(3, 32);
    let ones = [1.0_f32.to_le_bytes(); 32].concat();
    let message = Message::new().text(1, "m").text(2, version).message(5, input).bytes(7, &ones);
    let answer = grpc::call(&server.grpc, "ModelInfer", None, &message.into_bytes());
    assert_eq!(answer.status(), 0, "{answer:?}");
    // The name, then the version; the values are last.
    let rest = answer.message.strip_prefix(&[0x0a, 1, b'm', 0x12]).unwrap();
    let version = String::from_utf8(rest[1..=usize::from(rest[0])].to_vec()).unwrap();
    let value = answer.message.last_chunk().copied().unwrap();
    (f32::from_le_bytes(value), version)
}

/// The versions in the index, and whether each is ready.
fn index(server: &Server) -> Value {
    let index = server.data.post("/v2/repository/index", b"").ok();
    let models = index.as_array().unwrap().iter().filter(|model| model["name"] == "m");
    models.map(|model| json!([model["version"], model["state"]])).collect()
}

#[test]
fn two_versions_of_a_model_answer_side_by_side() {
    let (mut server, first) = start(Setup::new());
    let second = server.put("models/m", &sums(2));
    let [one, two] = [first, second].map(|version| version.to_string());
    for _ in 0..2 {
        assert_eq!(ask(&server, None), (64.0, second));
        assert_eq!(ask(&server, Some(first)), (32.0, first));
        assert_eq!(ask(&server, Some(second)), (64.0, second));
        assert_eq!(ask_grpc(&server, ""), (64.0, two.clone()));
        assert_eq!(ask_grpc(&server, &one), (32.0, one.clone()));
        for of in ["models/m".to_owned(), format!("models/m/versions/{one}")] {
            let metadata = server.data.get(&format!("/v2/{of}")).ok();
            assert_eq!(metadata["versions"], json!([one, two]));
            assert_eq!(server.data.get(&format!("/v2/{of}/config")).ok()["name"], "m");
            assert_eq!(server.data.get(&format!("/v2/{of}/ready")).status, 200);
        }
        assert_eq!(index(&server), json!([[two, "READY"], [one, "READY"]]));
        // Each has its own figures.
        let stats = |at: &str| {
            let stats = server.data.get(&format!("/v2/{at}/stats")).ok();
            let of = |stats: &Value| json!([stats["version"], stats["inference_count"]]);
            stats["model_stats"].as_array().unwrap().iter().map(of).collect::<Value>()
        };
        assert_eq!(stats("models"), json!([[two, 3], [one, 2]]));
        assert_eq!(stats(&format!("models/m/versions/{one}")), json!([[one, 2]]));
        let kept = &server.status()["models"]["m"]["kept_versions"][&one];
        assert_eq!((&kept["state"], &kept["statistics"]["rows"]), (&json!("ready"), &json!(2)));
        let expected = json!({ one.clone(): { "digest": digest(&sums(1)), "state": "ready" } });
        assert_eq!(read(&server, "models/m")["kept_versions"], expected);
        let unknown = try_ask(&server, "models/m/versions/9999");
        let named = format!("'m' version 9999 is not found: versions {one} and {two} are loaded");
        unknown.refused_by_protocol(404, &[&named]);
        server = server.kill().start();
    }
    // A third one takes the place of the first.
    let third = server.put("models/m", &sums(0));
    assert_eq!(ask(&server, None), (32.0, third));
    assert_eq!(ask(&server, Some(second)), (64.0, second));
    let named = format!(
        "'m' version {one} is not found: it is no longer loaded, versions {two} and {third}"
    );
    try_ask(&server, &format!("models/m/versions/{one}")).refused_by_protocol(404, &[&named]);
    let three = third.to_string();
    let all = json!([[three, "READY"], [two, "READY"], [one, "UNAVAILABLE"]]);
    assert_eq!(index(&server), all);
    // Changing the policy loads nothing: the counters go on.
    server.put_json("models/m/config", &json!({ "version_policy": latest(1) }));
    let model = &server.status()["models"]["m"];
    assert!(model["statistics"]["rows"] == 1 && model["kept_versions"].is_null(), "{model}");
    let answer = server.admin.put_json(
        &path("models/m/config"),
        &json!({ "version_policy":
        { "specific": { "versions": [first, third] } } }),
    );
    let named = format!("version {one} is not there any more: version {third} is loaded");
    answer.refused(422, "unprocessable", &["version_policy", &named]);
}

/// The label that a pipeline of `acme` reads from the digit 7; none if its plugin is `hostile`.
#[track_caller]
fn label(server: &Server, pipeline: &str) -> Option<u64> {
    let answer = server.data.post(&format!("/v1/acme/infer/{pipeline}"), &files::digit(7));
    match answer.text() == "harmless" {
        true => None,
        false => answer.ok()["label"].as_u64(),
    }
}

/// A pipeline that names these versions.
fn pinned(plugin: u64, model: u64) -> Value {
    let plugin = format!("digits@{plugin}");
    json!({ "pre": plugin, "model": format!("digits@{model}"), "post": plugin })
}

/// A server whose pipeline `old` names the first versions of its plugin and its model, which were
/// replaced since. The pipeline `new` has the newest ones. Returns these first versions.
fn with_pinned() -> (Server, u64, u64) {
    let server = Server::start();
    server.open_tenant("acme");
    let model = server.model("digits");
    let plugin = server.plugin("acme", "digits", "digits");
    server.pipeline("acme", "old", &pinned(plugin, model));
    server.plugin("acme", "digits", "hostile");
    server.pipeline("acme", "new", &processor("digits", json!({})));
    // The pipeline that names a version needs not fit another one.
    server.admin.delete(&path("tenants/acme/pipelines/new")).ok();
    server.put("models/digits", &sums(1));
    server.put("models/digits", &files::model("digits"));
    server.pipeline("acme", "new", &processor("digits", json!({})));
    (server, plugin, model)
}

#[test]
fn a_pipeline_keeps_the_versions_that_it_names() {
    let (mut server, plugin, model) = with_pinned();
    for _ in 0..2 {
        assert_eq!((label(&server, "old"), label(&server, "new")), (Some(7), None));
        let kept = |below: &str, version: u64| {
            read(&server, below)["kept_versions"][version.to_string()]["state"].clone()
        };
        assert_eq!(kept("tenants/acme/plugins/digits", plugin), "ready");
        assert_eq!(kept("models/digits", model), "ready");
        let status = server.status();
        let kept = &status["tenants"]["acme"]["plugins"]["digits"]["kept_versions"];
        assert_eq!(kept[plugin.to_string()]["digest"], digest(&files::plugin("digits")));
        let document = read(&server, "tenants/acme/pipelines/old");
        assert_eq!(document["model"], format!("digits@{model}"));
        assert_eq!(server.put_json("tenants/acme/pipelines/old", &document), server.release());
        server = server.kill().start();
    }
    // Other versions are not there, and none is deleted while a pipeline names one.
    let newest = read(&server, "models/digits")["version"].as_u64().unwrap();
    let wrong = server.admin.put_json(&path("tenants/acme/pipelines/other"), &pinned(9998, 9999));
    let named = [
        "pre: plugin \"digits\" has no version 9998: versions".to_owned(),
        format!("model \"digits\" has no version 9999: versions {model} and {newest} are loaded"),
    ];
    wrong.refused(422, "unprocessable", &named.each_ref().map(String::as_str));
    let wrong = json!({ "pre": "digits@x", "model": "digits@0", "post": "digits" });
    let wrong = server.admin.put_json(&path("tenants/acme/pipelines/old"), &wrong);
    let named = ["pre: \"digits@x\" names no version", "model: \"digits@0\" names no version"];
    wrong.refused(422, "unprocessable", &named);
    for below in ["tenants/acme/plugins/digits", "models/digits"] {
        let refused = server.admin.delete(&path(below));
        refused.refused(409, "conflict", &["used by acme/new, acme/old"]);
    }
    // A policy keeps the plugin's version when no pipeline names it, and not longer.
    let keep = json!({ "open": true, "plugin_version_policy": latest(2) });
    server.put_json("tenants/acme", &keep);
    assert_eq!(read(&server, "tenants/acme")["plugin_version_policy"], latest(2));
    server.pipeline("acme", "old", &processor("digits", json!({})));
    assert!(read(&server, "models/digits")["kept_versions"].is_null());
    let kept = || read(&server, "tenants/acme/plugins/digits")["kept_versions"].clone();
    assert_eq!(kept()[plugin.to_string()]["state"], "ready");
    server.pipeline(
        "acme",
        "old",
        &json!({ "pre": format!("digits@{plugin}"), "model": "digits",
        "post": format!("digits@{plugin}") }),
    );
    assert_eq!(label(&server, "old"), Some(7));
    server.pipeline("acme", "old", &processor("digits", json!({})));
    server.open_tenant("acme");
    assert!(kept().is_null());
}

#[test]
fn going_back_brings_back_a_version_that_a_pipeline_names() {
    let (server, plugin, model) = with_pinned();
    let before = server.release();
    let token = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let ci = server.admin.with_token(&token);
    // A deploy token can name what is loaded, and nothing brings back what is not.
    let spec = |plugin: u64, model: &str| {
        let plugin = format!("digits@{plugin}");
        json!({ "pre": plugin, "model": model, "post": plugin })
    };
    let put = |document: &Value| ci.put_json(&path("tenants/acme/pipelines/old"), document);
    put(&spec(plugin, &format!("digits@{model}"))).ok();
    put(&spec(plugin, "digits")).ok();
    let gone = put(&spec(plugin, &format!("digits@{model}")));
    gone.refused(422, "unprocessable", &[&format!("has no version {model}: version")]);
    put(&processor("digits", json!({}))).ok();
    assert_eq!(label(&server, "old"), None);
    let back = |client: &Client, document: Value| {
        client.post(&path("rollback"), document.to_string().as_bytes())
    };
    let refused = back(&ci, json!({ "to": before, "tenant": "acme" }));
    refused.refused(422, "unprocessable", &[&format!("has no version {model}: version")]);
    // The operator brings back the model's version, too.
    let made = back(&server.admin, json!({ "to": before, "tenant": "acme" })).ok();
    assert_eq!(label(&server, "old"), Some(7));
    let release = read(&server, &format!("releases/{}", made["release"]));
    let kinds: Vec<_> = release["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["kind"].clone())
        .collect();
    assert_eq!(kinds, ["put_model_version", "put_plugin_version", "put_pipeline"], "{release}");
    let server = server.kill().start();
    assert_eq!((label(&server, "old"), label(&server, "new")), (Some(7), None));
    // No client makes such a change itself.
    let change = &release["changes"][0];
    let asked = json!({ "changes": [change] });
    let asked = server.admin.post(&path("releases"), asked.to_string().as_bytes());
    asked.refused(422, "unprocessable", &["changes[0].kind is \"put_model_version\""]);
}

#[test]
fn the_file_of_a_version_goes_when_no_release_and_nothing_else_needs_it() {
    let (server, first) = start(kept::setup());
    let second = server.put("models/m", &sums(2));
    let third = server.put("models/m", &sums(0));
    push_out(&server, third + 1);
    eventually("its file is removed", || !is_stored(server.setup(), &sums(1)));
    assert!([0, 2].iter().all(|kind| is_stored(server.setup(), &sums(*kind))));
    // The checkpoint has the version that stays.
    let server = server.kill().start();
    assert_eq!(ask(&server, Some(second)), (64.0, second));
    assert_eq!(ask(&server, None), (32.0, third));
    let gone = try_ask(&server, &format!("models/m/versions/{first}"));
    gone.refused_by_protocol(404, &["no longer loaded"]);
}

#[test]
fn a_bounded_number_of_versions_is_loaded() {
    let (server, first) = start(Setup::new());
    let policy = |policy: Value| {
        server.admin.put_json(&path("models/m/config"), &json!({ "version_policy": policy }))
    };
    policy(json!({ "all": {} })).refused(
        422,
        "unprocessable",
        &["version_policy.all is not offered"],
    );
    let named = ["version_policy.latest.num_versions is 17: must be 1 to 16"];
    policy(latest(17)).refused(422, "unprocessable", &named);
    let named = ["plugin_version_policy.latest.num_versions is 9: must be 1 to 8"];
    let nine = json!({ "open": true, "plugin_version_policy": latest(9) });
    let nine = server.admin.put_json(&path("tenants/acme"), &nine);
    nine.refused(422, "unprocessable", &named);
    policy(latest(16)).ok();
    // The two files are loaded once, in however many versions.
    server.plugin("acme", "both", "ranker-pre");
    for number in 2..=16 {
        server.put("models/m", &sums(number % 2));
    }
    let versions = server.data.get("/v2/models/m").ok()["versions"].as_array().unwrap().len();
    assert_eq!(versions, 16);
    server.plugin("acme", "post", "ranker-post");
    let spec = json!({ "pre": "both", "model": format!("m@{first}"), "post": "post" });
    server.pipeline("acme", "old", &spec);
    let refused = server.admin.put(&path("models/m"), &sums(1));
    let named =
        ["would have 17 versions loaded; the limit is 16", &format!("acme/old (m@{first})")];
    refused.refused(409, "conflict", &named);
    assert_eq!(ask(&server, Some(first)), (32.0, first));
    policy(latest(1)).ok();
    server.put("models/m", &sums(1));
    let versions = server.data.get("/v2/models/m").ok()["versions"].as_array().unwrap().len();
    assert_eq!(versions, 2);
}

#[test]
fn an_earlier_version_that_cannot_be_loaded_takes_nothing_else_down() {
    let (server, first) = start(Setup::new());
    server.put_json("models/m/config", &json!({ "version_policy": latest(3) }));
    let second = server.put("models/m", &sums(2));
    let setup = server.kill();
    let file = setup.data_dir().join("store/blobs").join(&digest(&sums(1))[7..]);
    std::fs::write(file, b"something else").unwrap();
    let server = setup.start();
    assert_eq!(ask(&server, None), (64.0, second));
    let status = server.status();
    let kept = &status["models"]["m"]["kept_versions"][first.to_string()];
    assert!(kept["state"] == "failed" && kept["reason"].is_string(), "{kept}");
    assert_eq!(status["models"]["m"]["state"], "ready");
    let gone = try_ask(&server, &format!("models/m/versions/{first}"));
    gone.refused_by_protocol(503, &[&format!("'m' version {first} is not at ready state")]);
    assert_eq!(index(&server)[1], json!([first.to_string(), "UNAVAILABLE"]));
    // It is known, so it refuses no new version.
    let third = server.put("models/m", &sums(0));
    assert_eq!(ask(&server, None), (32.0, third));
    assert_eq!(ask(&server, Some(second)), (64.0, second));
}

#[test]
fn the_number_of_a_models_version_can_be_chosen() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    let put = |version: u64, file: &[u8]| {
        server.admin.put(&format!("/admin/v1/models/m?version={version}"), file)
    };
    put(1, &sums(0)).ok();
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["m"] }));
    assert_eq!(ask(&server, Some(1)), (32.0, 1));
    // New content of the same version, for clients that have the number built in.
    put(1, &sums(2)).ok();
    assert_eq!((ask(&server, Some(1)), ask(&server, None)), ((64.0, 1), (64.0, 1)));
    let server = server.kill().start();
    assert_eq!(ask(&server, Some(1)), (64.0, 1));
    let put = |version: &str, file: &[u8]| {
        server.admin.put(&format!("/admin/v1/models/m?version={version}"), file)
    };
    put("9000", &sums(0)).ok();
    assert_eq!(ask(&server, None), (32.0, 9000));
    // A version that is not chosen is a higher one.
    let good = server.put("models/m", &sums(1));
    assert_eq!(ask(&server, None), (32.0, 9001));
    let words = ["version is 1", "newest version of model \"m\" is 9001", "to replace its content"];
    put("1", &sums(0)).refused(422, "unprocessable", &words);
    put("0", &sums(0)).refused(400, "invalid_request", &["version is \"0\""]);
    put("x", &sums(0)).refused(400, "invalid_request", &["version is \"x\""]);
    // Going back to a release in which a version had other content gives it back.
    put("9001", &sums(2)).ok();
    assert_eq!(ask(&server, Some(9001)), (64.0, 9001));
    post_to(&server, "rollback", &json!({ "to": good, "model": "m" })).ok();
    assert_eq!(ask(&server, Some(9001)), (32.0, 9001));
}
