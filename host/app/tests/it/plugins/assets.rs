//! Assets: files of tenants and of plugins, which a real plugin opens.

use std::collections::BTreeMap;

use gristmill_sandbox::{Archive, Language, Manifest, add_assets};
use serde_json::{Value, json};

use crate::support::admin_api::{digest, make, path, post_to, read, upload};
use crate::support::client::TestAnswer;
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

const PIPELINE: &str = "tenants/acme/pipelines/hostile";
const PRICES: &str = "tenants/acme/assets/prices";

/// A pipeline of the plugin `hostile` that names these assets.
fn naming(assets: Value) -> Value {
    let mut pipeline = processor("hostile", json!({}));
    pipeline["assets"] = assets;
    pipeline
}

/// A server whose tenant `acme` has the plugin `hostile`, and the asset `prices`, which its
/// pipeline names.
fn start(setup: Setup) -> Server {
    let server = setup.start();
    server.hostile("acme");
    server.put(PRICES, b"first");
    server.put_json(PIPELINE, &naming(json!({ "prices.json": "prices" })));
    server
}

/// What the plugin finds under this name.
#[track_caller]
fn opened(server: &Server, name: &str) -> String {
    let answer = server.data.post(&format!("/v1/acme/infer/hostile?do=asset&name={name}"), b"");
    assert_eq!(answer.status, 200, "{name}: {}", answer.text());
    answer.text()
}

/// The plugin `hostile` with these files of its own.
fn with_files(assets: &[(&str, &str)]) -> Vec<u8> {
    let mut plugin = files::plugin("hostile");
    let files: BTreeMap<_, _> =
        assets.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
    add_assets(&mut plugin, &files).unwrap();
    plugin
}

#[test]
fn a_new_version_reaches_the_pipelines_that_name_it_and_goes_back() {
    let server = start(Setup::new());
    let before = server.release();
    assert_eq!(opened(&server, "prices.json"), "first");
    let plugin = read(&server, "tenants/acme/plugins/hostile");
    let second = server.put(PRICES, b"second");
    assert_eq!(opened(&server, "prices.json"), "second");
    assert_eq!(read(&server, "tenants/acme/plugins/hostile"), plugin, "no build");
    let described = read(&server, PRICES);
    assert_eq!(described["digest"], digest(b"second"));
    assert_eq!((&described["version"], &described["bytes"]), (&json!(second), &json!(6)));
    let listed = read(&server, "tenants/acme/assets");
    assert_eq!(listed["items"][0]["name"], "prices");
    assert_eq!(server.admin.get(&path(&format!("{PRICES}/content"))).body, b"second"[..]);

    let back = json!({ "to": before, "tenant": "acme" });
    assert_eq!(post_to(&server, "rollback", &back).status, 200);
    assert_eq!(opened(&server, "prices.json"), "first");
    // Replayed, the log gives the same.
    let server = server.kill().start();
    assert_eq!(opened(&server, "prices.json"), "first");
    assert_eq!(server.status()["tenants"]["acme"]["asset_bytes"], 5);
}

#[test]
fn a_pipeline_that_names_a_version_keeps_it() {
    let server = start(Setup::new());
    let first = read(&server, PRICES)["version"].as_u64().unwrap();
    let pinned = json!({ "prices.json": "prices", "old.json": format!("prices@{first}") });
    server.put_json(PIPELINE, &naming(pinned));
    let second = server.put(PRICES, b"second");
    assert_eq!(
        (opened(&server, "prices.json"), opened(&server, "old.json")),
        pair("second", "first")
    );
    assert!(read(&server, PRICES)["kept_versions"][first.to_string()].is_object());
    server.put_json(PIPELINE, &naming(json!({ "prices.json": "prices" })));
    let gone = naming(json!({ "prices.json": format!("prices@{first}") }));
    let refused = server.admin.put_json(&path(PIPELINE), &gone);
    let loaded = format!("asset \"prices\" has no version {first}: version {second} is loaded");
    assert_eq!(pointer(&refused), "/assets/prices.json");
    refused.refused(422, "unprocessable", &[&loaded]);
    // Going back brings the version back, for the pipeline that names it.
    let back = json!({ "to": second, "tenant": "acme" });
    assert_eq!(post_to(&server, "rollback", &back).status, 200);
    assert_eq!(
        (opened(&server, "prices.json"), opened(&server, "old.json")),
        pair("second", "first")
    );
}

/// The place of the first fault of a refused document.
#[track_caller]
fn pointer(answer: &TestAnswer) -> String {
    let document: Value = serde_json::from_slice(&answer.body).unwrap();
    document["errors"][0]["pointer"].as_str().unwrap().to_owned()
}

fn pair(first: &str, second: &str) -> (String, String) {
    (first.into(), second.into())
}

#[test]
fn a_missing_file_names_what_is_there_and_the_cure() {
    let server = start(Setup::new());
    let missing = opened(&server, "none.txt");
    assert!(missing.starts_with("not-found: no asset \"none.txt\": there are prices.json; put a"));
    assert!(missing.contains("\"assets\": {\"none.txt\": \"NAME\"}"), "{missing}");
    let unknown = server.admin.put_json(&path(PIPELINE), &naming(json!({ "a/b": "nothing" })));
    assert_eq!(pointer(&unknown), "/assets/a~1b");
    let named = ["the tenant has no asset \"nothing\"", "gristmill asset push"];
    unknown.refused(422, "unprocessable", &named);
    for (name, value) in [("../x", json!("prices")), ("/x", json!("prices")), ("x", json!(7))] {
        let refused = server.admin.put_json(&path(PIPELINE), &naming(json!({ name: value })));
        refused.refused(422, "unprocessable", &["assets: "]);
    }
    assert_eq!(opened(&server, "prices.json"), "first");
}

#[test]
fn an_asset_that_a_pipeline_names_is_not_deleted() {
    let server = start(Setup::new());
    let refused = server.admin.delete(&path(PRICES));
    let named = ["asset \"prices\" is used by acme/hostile"];
    refused.refused(409, "conflict", &named);
    let whole = server.admin.delete(&path("tenants/acme"));
    whole.refused(409, "conflict", &["the assets prices"]);
    server.put_json(PIPELINE, &naming(json!({})));
    assert_eq!(server.admin.delete(&path(PRICES)).status, 200);
    assert_eq!(server.admin.get(&path(PRICES)).status, 404);
    assert!(opened(&server, "prices.json").contains("there are none"));
}

#[test]
fn files_are_bounded_and_equal_ones_are_held_once() {
    let setup = Setup::new().flag("--asset-bytes-max", "2048");
    let server = start(setup.flag("--tenant-asset-bytes-max", "4096"));
    let large = server.admin.put(&path(PRICES), &[b'x'; 2049]);
    large.refused(413, "body_too_large", &["asset_bytes_max"]);
    let digest = upload(&server, &[b'x'; 2049]);
    let put = |asset: &str, digest: &str| json!({ "kind": "put_asset", "tenant": "acme", "asset": asset, "digest": digest });
    let release = json!({ "changes": [put("large", &digest)] });
    let refused = post_to(&server, "releases", &release);
    refused.refused(413, "body_too_large", &["changes[0]: ", "asset_bytes_max"]);

    server.put("tenants/acme/assets/one", &[b'1'; 2048]);
    // The same content under another name takes no more.
    server.put("tenants/acme/assets/same", &[b'1'; 2048]);
    let many = server.admin.put(&path("tenants/acme/assets/two"), &[b'2'; 2048]);
    many.refused(409, "conflict", &["tenant_asset_bytes_max", "4101 bytes"]);
    let digests = [b"2", b"3", b"4"].map(|byte| upload(&server, &byte.repeat(2000)));
    let changes: Vec<_> = digests.iter().map(|digest| put(&digest[7..20], digest)).collect();
    let refused = post_to(&server, "releases", &json!({ "changes": changes }));
    refused.refused(409, "conflict", &["changes[2]: ", "tenant_asset_bytes_max"]);
    // What a plugin brings counts, too.
    let plugin = server.admin.put(
        &path("tenants/acme/plugins/hostile"),
        &with_files(&[("table.bin", &"t".repeat(4000))]),
    );
    plugin.refused(409, "conflict", &["tenant_asset_bytes_max"]);
    // It is refused before all plugins of a release are in memory.
    let plugins = ["1", "2"].map(|text| with_files(&[("table.bin", &text.repeat(4000))]));
    let changes = plugins.map(|plugin| {
        let digest = upload(&server, &plugin);
        let plugin = &digest[7..20];
        json!({ "kind": "put_plugin", "tenant": "acme", "plugin": plugin, "digest": digest })
    });
    let refused = post_to(&server, "releases", &json!({ "changes": changes }));
    let named = ["tenant \"acme\": with it, the tenant's assets", "would be 10053 bytes"];
    refused.refused(409, "conflict", &named);
    let status = server.status();
    assert_eq!(status["tenants"]["acme"]["asset_bytes"], 2048 + 5);
    assert_eq!(status["memory"]["assets_bytes"], 2048 + 5);
    // A file counts once, under any number of names.
    let changes = ["x", "y", "z"].map(|asset| put(asset, &digests[0]));
    assert_eq!(post_to(&server, "releases", &json!({ "changes": changes })).status, 200);
    assert_eq!(server.status()["tenants"]["acme"]["asset_bytes"], 2048 + 5 + 2000);
}

#[test]
fn a_deploy_token_changes_assets_of_its_tenants_alone() {
    let server = start(Setup::new());
    server.open_tenant("other");
    let token = |tenant: &str| {
        let document = json!({ "role": "deploy", "tenants": [tenant] });
        server.admin.with_token(&make(&server, &format!("ci-{tenant}"), &document))
    };
    let (own_token, other) = (token("acme"), token("other"));
    assert_eq!(own_token.put(&path(PRICES), b"by its token").status, 200);
    assert_eq!(opened(&server, "prices.json"), "by its token");
    let change = json!({ "kind": "put_asset", "tenant": "acme", "asset": "prices",
        "digest": digest(b"first") });
    let release = json!({ "changes": [change] }).to_string();
    for answer in [
        other.put(&path(PRICES), b"by another"),
        other.get(&path(PRICES)),
        other.get(&path(&format!("{PRICES}/content"))),
        other.get(&path("tenants/acme/assets")),
        other.delete(&path(PRICES)),
        other.post(&path("releases"), release.as_bytes()),
    ] {
        answer.refused(403, "forbidden", &["the token"]);
    }
    // A file that another tenant uploaded cannot be taken by its digest.
    let change = json!({ "kind": "put_asset", "tenant": "other", "asset": "mine",
        "digest": digest(b"by its token") });
    let taken = json!({ "changes": [change] }).to_string();
    let refused = other.post(&path("releases"), taken.as_bytes());
    refused.refused(422, "unprocessable", &["no uploaded file has the digest"]);
}

#[test]
fn samples_of_the_pipelines_that_name_it_prove_a_new_version() {
    let server = start(Setup::new());
    let sample = json!({ "name": "price", "request": { "query": "do=asset&name=prices.json" },
        "expect": { "body_sha256": digest(b"first") } });
    let mut pipeline = naming(json!({ "prices.json": "prices" }));
    pipeline["samples"] = json!([sample]);
    server.put_json(PIPELINE, &pipeline);
    let refused = server.admin.put(&path(PRICES), b"wrong");
    refused.refused(422, "sample_failed", &["sample \"price\""]);
    assert_eq!(opened(&server, "prices.json"), "first");
    server.put(&format!("{PRICES}?skip_samples=true"), b"wrong");
    assert_eq!(opened(&server, "prices.json"), "wrong");
}

#[test]
fn a_candidate_names_other_assets() {
    let server = start(Setup::new());
    server.put("tenants/acme/assets/trial", b"trial");
    let mut pipeline = naming(json!({ "prices.json": "prices" }));
    let assets = json!({ "prices.json": "trial" });
    pipeline["candidate"] = json!({ "assets": assets, "traffic_percent": 100 });
    server.put_json(PIPELINE, &pipeline);
    assert_eq!(opened(&server, "prices.json"), "trial");
    server.admin.delete(&path("tenants/acme/assets/trial")).refused(409, "conflict", &["used by"]);
    server.admin.post(&path(&format!("{PIPELINE}/candidate/promote")), b"").ok();
    assert_eq!(read(&server, PIPELINE)["assets"], assets);
    assert_eq!(opened(&server, "prices.json"), "trial");
}

#[test]
fn a_plugin_brings_files_which_its_pipeline_can_hide() {
    let server = start(Setup::new());
    let brought = [("labels.txt", "cat"), ("prices.json", "hidden"), ("more/x", "deep")];
    server.put("tenants/acme/plugins/hostile", &with_files(&brought));
    assert_eq!(opened(&server, "labels.txt"), "cat");
    assert_eq!(opened(&server, "more/x"), "deep");
    assert_eq!(opened(&server, "prices.json"), "first");
    server.put_json(PIPELINE, &naming(json!({})));
    assert_eq!(opened(&server, "prices.json"), "hidden");
    // Its compiled code comes from the cache, and the files from the upload.
    let server = server.kill().start();
    assert_eq!(opened(&server, "labels.txt"), "cat");
    server.plugin("acme", "hostile", "hostile");
    assert!(opened(&server, "labels.txt").starts_with("not-found"));
}

#[test]
fn a_plugin_whose_files_are_tricks_is_refused() {
    let server = Server::start();
    server.open_tenant("acme");
    let section = |name: &str, content: &[u8]| {
        let name = format!("gristmill:asset:{name}");
        let length = [name.len() as u8];
        let bytes = 1 + name.len() + content.len();
        let size = [(bytes & 0x7f) as u8 | 0x80, (bytes >> 7) as u8];
        [&files::plugin("hostile")[..], &[0], &size, &length, name.as_bytes(), content].concat()
    };
    for name in ["../../etc/passwd", "/etc/passwd", "a//b", "", "a\\b", "\u{202e}"] {
        let refused = server.admin.put(&path("tenants/acme/plugins/it"), &section(name, b"x"));
        refused.refused(422, "invalid_plugin", &["its name must be 1 to 128"]);
    }
    let twice = [section("x", b"1"), section("x", b"2")[files::plugin("hostile").len()..].to_vec()];
    let refused = server.admin.put(&path("tenants/acme/plugins/it"), &twice.concat());
    refused.refused(422, "invalid_plugin", &["asset \"x\": it is there twice"]);
}

#[test]
fn an_archive_brings_the_files_of_its_folder() {
    let server = Setup::new().with_runtimes().start();
    server.open_tenant("acme");
    server.model("digits");
    let app = "\
from gristmill_plugin import InvalidInput, Processor, Response, assets, export
@export
class Plugin(Processor):
    def preprocess(self, context, request):
        try:
            raise InvalidInput(assets.text(bytes(request.body).decode()))
        except assets.NotFound as error:
            raise InvalidInput('missing: ' + error.text)
    def postprocess(self, context, outputs, state):
        return Response.json(None)
";
    let manifest = Manifest { language: Language::Python, app: "app".into() };
    let all = [("app.py", app), ("assets/labels.txt", "cat"), ("secret.txt", "no asset")];
    let files = all.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
    let archive = Archive { manifest, files: files.collect() }.write().unwrap();
    server.put("tenants/acme/plugins/hostile", &archive);
    server.put(PRICES, b"first");
    server.put_json(PIPELINE, &naming(json!({ "prices.json": "prices" })));
    let answer_of = |name: &str| {
        let answer = server.data.post("/v1/acme/infer/hostile", name.as_bytes());
        let problem: Value = serde_json::from_str(&answer.text()).unwrap();
        problem["detail"].as_str().unwrap().to_owned()
    };
    assert_eq!(answer_of("labels.txt"), "cat");
    assert_eq!(answer_of("prices.json"), "first");
    for name in ["app.py", "secret.txt", "assets/labels.txt", "../secret.txt"] {
        let missing = answer_of(name);
        assert!(missing.starts_with("missing: no asset"), "{missing}");
        assert!(missing.contains("there are labels.txt, prices.json;"), "{missing}");
    }
}

#[test]
fn blobs_without_end_end_the_call() {
    let server = start(Setup::new());
    let answer = server.data.post("/v1/acme/infer/patient?do=asset-hold&name=x", b"");
    answer.refused(500, "plugin_failed", &[]);
    let held = naming(json!({ "prices.json": "prices" }));
    server.put_json("tenants/acme/pipelines/patient", &held);
    let path = "/v1/acme/infer/patient?do=asset-hold&name=prices.json";
    let answer = server.data.post(path, b"");
    assert!([500, 504].contains(&answer.status), "{}", answer.text());
    assert_eq!(opened(&server, "prices.json"), "first");
    eventually("the call has given its memory back", || {
        server.status()["tenants"]["acme"]["bytes_under_way"] == 0
    });
}
