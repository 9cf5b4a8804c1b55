//! Names of models: with capitals and longer than others, as other servers have them.

use serde_json::json;

use crate::support::admin_api::read;
use crate::support::cli::Cli;
use crate::support::onnx;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};

const NAME: &str = "timm-ViT-B-16-image_encoder.v2";

#[test]
fn a_models_name_may_have_capitals_and_is_looked_up_exactly() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    let long = "M".repeat(128);
    server.put(&format!("models/{NAME}"), &onnx::doubling(2));
    server.put(&format!("models/{long}"), &onnx::doubling(2));
    server.put_json("tenants/acme", &json!({ "open": true, "models": [NAME, long] }));
    let x = json!({ "name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2] });
    let body = json!({ "inputs": [x] }).to_string();
    let infer = |name: &str| server.data.post(&format!("/v2/models/{name}/infer"), body.as_bytes());
    for name in [NAME, &long] {
        assert_eq!(infer(name).ok()["model_name"], name);
    }
    infer(&NAME.to_lowercase()).refused_by_protocol(404, &[&NAME.to_lowercase()]);
    // It stays after a change of its configuration, an unloading and a restart.
    server.put_json(&format!("models/{NAME}/config"), &json!({ "max_batch_size": 4 }));
    let operator = server.data.with_token(ADMIN_TOKEN);
    operator.post(&format!("/v2/repository/models/{NAME}/unload"), b"").ok();
    operator.post(&format!("/v2/repository/models/{NAME}/load"), b"").ok();
    let server = server.kill().start();
    assert_eq!(server.status()["models"][NAME]["state"], "ready");
    assert_eq!(read(&server, &format!("models?after={long}&limit=1"))["items"][0]["name"], NAME);
    server.admin.delete(&format!("/admin/v1/models/{long}?cascade=true")).ok();
}

#[test]
fn names_that_differ_only_in_case_are_refused_together() {
    let server = Server::start();
    server.put(&format!("models/{NAME}"), &onnx::doubling(2));
    let like = NAME.to_uppercase();
    let answer = server.admin.put(&format!("/admin/v1/models/{like}"), &onnx::doubling(2));
    answer.refused(409, "conflict", &[&like, NAME, "only in case", "choose another name"]);
    let cli = Cli::of(&server);
    cli.write("m.onnx", onnx::doubling(4));
    let error = cli.refused(&["model", "push", "m.onnx", "--name", &like]);
    assert!(error.contains("only in case"), "{error}");
    // The model itself is replaced, and a name is free when its model is deleted.
    server.put(&format!("models/{NAME}"), &onnx::doubling(4));
    server.admin.delete(&format!("/admin/v1/models/{NAME}")).ok();
    server.put(&format!("models/{like}"), &onnx::doubling(2));
    let names = ["M".repeat(129), "_m".into(), "a%20b".into(), "pipeline:A".into()];
    for name in names {
        let answer = server.admin.put(&format!("/admin/v1/models/{name}"), &onnx::doubling(2));
        answer.refused(400, "invalid_request", &["1 to 128 of A-Z, a-z, 0-9"]);
    }
}

#[test]
fn pipelines_and_manifests_take_such_names() {
    let server = Server::start();
    server.put("models/Digits", &crate::support::files::model("digits"));
    server.open_tenant("acme");
    server.plugin("acme", "digits", "digits");
    let pipeline = json!({ "pre": "digits", "model": "Digits@1", "post": "digits" });
    server.pipeline("acme", "digits", &pipeline);
    server.assert_reads_digits("acme");
    let upper = json!({ "pre": "Digits", "model": "Digits", "post": "digits" });
    let answer = server.admin.put_json("/admin/v1/tenants/acme/pipelines/digits", &upper);
    answer.refused(422, "unprocessable", &["pre: \"Digits\" is not a valid name"]);
    let cli = Cli::of(&server);
    cli.write("m.onnx", onnx::doubling(2));
    cli.write("gristmill.toml", "[models.ViT-B-16]\nfile = \"m.onnx\"\n");
    let deployed = cli.run(&["deploy", "gristmill.toml", "--yes"]);
    assert_eq!(deployed.code, Some(0), "{deployed:?}");
    let shown = cli.json(&["get", "models", "ViT-B-16"]);
    assert_eq!(shown["name"], "ViT-B-16");
    assert!(shown["inputs"][0]["name"].is_string(), "{shown}");
    assert!(shown["outputs"][0]["datatype"].is_string(), "{shown}");
    let back = json!({ "to": 1, "model": "Digits" });
    let back = server.admin.post("/admin/v1/rollback", back.to_string().as_bytes());
    assert_eq!(back.status, 200, "{}", back.text());
}
