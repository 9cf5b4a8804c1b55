//! Real requests that a pipeline keeps, and samples that are made of them.

use serde_json::{Value, json};

use crate::support::admin_api::{make, path, read};
use crate::support::cli::Cli;
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;
use crate::support::words::assert_names;

const PIPELINE: &str = "tenants/acme/pipelines/digits";

fn captured(server: &Server) -> Vec<Value> {
    let page = read(server, &format!("{PIPELINE}/captured"));
    page["items"].as_array().unwrap().clone()
}

/// A server whose pipeline `digits` keeps all requests, at most two.
fn start() -> Server {
    let server = Server::start();
    server.digits("acme");
    assert_eq!(captured(&server), [Value::Null; 0], "without a word in the document");
    let mut pipeline = processor("digits", json!({}));
    pipeline["capture"] =
        json!({ "percent": 100, "max_requests": 2, "redact_headers": ["X-User"] });
    server.put_json(PIPELINE, &pipeline);
    server
}

fn ask(server: &Server, content_type: &str, body: &[u8]) {
    let headers = [
        ("content-type", content_type),
        ("x-user", "a-name"),
        ("x-trace", "7"),
        ("authorization", "Bearer the-secret-of-a-client"),
    ];
    server.data.send("POST", "/v1/acme/infer/digits?a=b%20c", &headers, Some(body));
}

#[test]
fn the_last_requests_are_kept_and_pass_as_samples() {
    let server = start();
    ask(&server, "image/png", &files::digit(3));
    ask(&server, "text/plain", b"no picture");
    ask(&server, "image/png", &files::digit(7));
    let kept = captured(&server);
    assert_eq!(kept.len(), 2);
    let [refused, seven] = [&kept[0]["sample"], &kept[1]["sample"]];
    assert_eq!(refused["request"]["body"], "no picture");
    assert_eq!(refused["expect"], json!({ "code": "unsupported_media_type" }));
    let request = &seven["request"];
    assert_eq!(request["headers"], json!({ "x-user": "redacted", "x-trace": "7" }));
    assert_eq!(
        (&request["query"], &request["content_type"]),
        (&json!("a=b+c"), &json!("image/png"))
    );
    assert_eq!(
        (&seven["expect"]["status"], &seven["expect"]["json"]["label"]),
        (&json!(200), &json!(7))
    );
    let all = json!(kept).to_string();
    assert!(!all.contains("a-name") && !all.contains("the-secret"), "{all}");
    // They stay while the document says the same, also when a plugin changes.
    server.put("tenants/acme/plugins/digits", &files::plugin_that_begins_with("digits", 32));
    assert_eq!(captured(&server), kept);
    let mut pipeline = read(&server, PIPELINE);
    pipeline["samples"] = json!([refused, seven]);
    server.put_json(PIPELINE, &pipeline);
    pipeline["samples"][1]["expect"]["json"]["label"] = json!(1);
    let wrong = server.admin.put_json(&path(PIPELINE), &pipeline);
    wrong.refused(422, "sample_failed", &["sample \"captured-2\": $.label: expected 1, found 7"]);
    // Nothing is kept of a pipeline that keeps nothing any more.
    server.put_json(PIPELINE, &processor("digits", json!({})));
    assert_eq!(captured(&server), [Value::Null; 0]);
}

#[test]
fn a_sample_has_the_headers_that_a_plugin_sees() {
    let server = start();
    let mut pipeline = processor("digits", json!({}));
    let request =
        json!({ "headers": { "authorization": "x", "X-Good": "1", "x-bad": "\n", "x-worse": 5 } });
    pipeline["samples"] = json!([{ "name": "one", "request": request, "expect": {} }]);
    let refused = server.admin.put_json(&path(PIPELINE), &pipeline);
    let named = [
        "samples[0].request.headers.authorization is not a header that a plugin can see",
        "samples[0].request.headers.x-bad cannot be sent in a header",
        "samples[0].request.headers.x-worse cannot be sent in a header",
    ];
    let error = refused.refused(422, "unprocessable", &named);
    assert!(!error.contains("X-Good"), "{error}");
}

#[test]
fn requests_of_clients_are_for_those_who_change_the_pipeline() {
    let server = start();
    ask(&server, "image/png", &files::digit(3));
    let at = path(&format!("{PIPELINE}/captured"));
    let reads = make(&server, "dashboard", &json!({ "role": "read" }));
    assert_eq!(server.admin.with_token(&reads).get(&at).status, 403);
    let deploys = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let page = server.admin.with_token(&deploys).get(&at).ok();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    for (unknown, what) in [
        ("tenants/none/pipelines/digits/captured", "tenant"),
        ("tenants/acme/pipelines/none/captured", "pipeline"),
    ] {
        server.admin.get(&path(unknown)).refused(404, "not_found", &[what]);
    }
}

#[test]
fn the_command_line_prints_them_for_a_manifest() {
    let server = start();
    ask(&server, "image/png", &files::digit(3));
    ask(&server, "image/png", &files::digit(7));
    let cli = Cli::of(&server);
    let capture = ["samples", "capture", "digits", "--tenant", "acme"];
    let samples = cli.json(&[&capture[..], &["--last", "1"]].concat());
    assert_eq!(samples.as_array().unwrap().len(), 1);
    let printed = cli.ok(&capture);
    assert_names(&printed, &["[[tenants.acme.pipelines.digits.samples]]", "label = 7"]);
    let manifest = format!(
        "[tenants.acme.pipelines.digits]\npre = \"digits\"\nmodel = \"digits\"\n\
         post = \"digits\"\n\n{printed}"
    );
    cli.write("gristmill.deploy.toml", manifest);
    cli.ok(&["deploy", "--yes"]);
    let listed = cli.ok(&["samples", "list", "digits", "--tenant", "acme"]);
    assert_names(&listed, &["NAME", "captured-1", "captured-2"]);
    assert_eq!(listed.lines().count(), 3, "{listed}");
}
