//! The console: the files of the page, requests that people try with it, and the page in a browser.

use std::path::PathBuf;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::admin_api::make;
use crate::support::client::{Client, TestAnswer};
use crate::support::files;
use crate::support::planes::Planes;
use crate::support::server::Server;
use crate::support::setup::ADMIN_TOKEN;

/// The files and their media types.
const FILES: [(&str, &str); 4] = [
    ("/", "text/html; charset=utf-8"),
    ("/app.js", "text/javascript; charset=utf-8"),
    ("/app.css", "text/css; charset=utf-8"),
    ("/troubleshooting.md", "text/markdown; charset=utf-8"),
];

/// Maximum bytes of the page with all that it needs to be shown.
const PAGE_BYTES_MAX: usize = 150 << 10;

/// The path of the pipeline's trials.
const TRY: &str = "/admin/v1/tenants/demo/pipelines/digits/try";

#[test]
fn its_files_need_no_token_and_run_nothing_else() {
    let planes = Planes::open();
    let anyone = planes.admin.without_token();
    for (path, media_type) in FILES {
        let answer = anyone.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), media_type);
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        let head = anyone.send("HEAD", path, &[], None);
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        let condition = [("if-none-match", answer.header("etag"))];
        let unchanged = anyone.send("GET", path, &condition, None);
        assert_eq!((unchanged.status, unchanged.body.len()), (304, 0), "{path}");
        anyone.post(path, b"").refused(405, "method_not_allowed", &["not allowed here"]);
        anyone.get(&format!("{path}?a=1")).refused(400, "invalid_request", &["unknown parameter"]);
    }
    anyone.get("/app.js.map").refused(401, "unauthenticated", &[]);
    anyone.get("/admin/v1/status").refused(401, "unauthenticated", &[]);
}

#[test]
fn the_page_is_small_and_names_only_its_own_files() {
    let planes = Planes::open();
    let anyone = planes.admin.without_token();
    let sizes = FILES[..3].iter().map(|(path, _)| anyone.get(path).body.len());
    let bytes: usize = sizes.sum();
    assert!(bytes <= PAGE_BYTES_MAX, "{bytes}");
    let page = anyone.get("/").text();
    for without in ["<style", " style=", " onload=", "http:", "https:"] {
        assert!(!page.contains(without), "{without}");
    }
}

/// A server with the pipeline `digits` of the tenant `demo`.
fn start() -> Server {
    let server = Server::start();
    server.open_tenant("demo");
    server.digits_for("demo");
    server
}

fn body_of(tried: &Value) -> Vec<u8> {
    STANDARD.decode(tried["base64"].as_str().unwrap()).unwrap()
}

fn try_out(client: &Client, query: &str, content_type: &str, body: &[u8]) -> TestAnswer {
    let headers = [("content-type", content_type)];
    client.send("POST", &format!("{TRY}{query}"), &headers, Some(body))
}

#[test]
fn a_request_that_is_tried_is_answered_as_that_of_a_client() {
    let server = start();
    let picture = files::sample("seven.png");
    let tried = try_out(&server.admin, "", "image/png", &picture).ok();
    assert_eq!(
        (&tried["status"], &tried["content_type"]),
        (&json!(200), &json!("application/json"))
    );
    let answered = server.data.post("/v1/demo/infer/digits", &picture);
    assert_eq!(body_of(&tried), answered.body);
    for stage in ["pre", "queue", "infer", "post"] {
        assert!(tried["stages_us"][stage].is_u64(), "{tried}");
    }
    assert_eq!(
        (&tried["receipt"]["rows"], &tried["receipt"]["batch_rows"]),
        (&json!(1), &json!(1))
    );
    assert!(tried["lines"].is_array(), "{tried}");
    let metrics = server.admin.get("/metrics").text();
    let counted = "gristmill_requests_total{tenant=\"demo\"";
    let counted = metrics.lines().filter(|line| line.starts_with(counted));
    let requests: f64 =
        counted.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum();
    assert_eq!(requests, 2.0, "the trial and the client's request: {metrics}");

    let refused = try_out(&server.admin, "?query=a%3D1%2520b", "text/plain", b"no picture").ok();
    assert_eq!(refused["code"], "unsupported_media_type");
    assert_eq!(refused["status"], 415);
    assert!(refused["base64"].is_null(), "{refused}");
}

#[test]
fn a_trial_needs_a_pipeline_a_body_within_its_limit_and_a_usable_query() {
    let server = start();
    let spec = json!({ "pre": "digits", "model": "digits", "post": "digits",
        "limits": { "body_bytes": 1024 } });
    server.pipeline("demo", "small", &spec);
    let small = TRY.replace("digits", "small");
    let named = ["limit body_bytes, 1024 bytes"];
    server.admin.post(&small, &[0; 1025]).refused(413, "body_too_large", &named);
    server.admin.post(&TRY.replace("digits", "none"), b"").refused(404, "not_found", &["none"]);
    let wrong = server.admin.post(&format!("{TRY}?query=a%20b"), b"");
    wrong.refused(400, "invalid_request", &["query is \"a b\""]);
    server.admin.post(&format!("{TRY}?a=1"), b"").refused(
        400,
        "invalid_request",
        &["known is query"],
    );

    server.open_tenant("other");
    let read = make(&server, "eyes", &json!({ "role": "read" }));
    let ci = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["demo"] }));
    server.admin.with_token(&read).post(TRY, b"").refused(403, "forbidden", &["eyes"]);
    let ci = server.admin.with_token(&ci);
    assert_eq!(ci.post(TRY, b"no picture").ok()["status"], 415);
    ci.post(&TRY.replace("demo", "other"), b"").refused(403, "forbidden", &["ci"]);
}

/// The whole page in Debian's Chromium: `host/console/test/browser.mjs` says what it does there.
#[test]
fn it_works_in_a_browser() {
    let folder = std::env::var_os("GRISTMILL_TEST_CONSOLE").map(PathBuf::from);
    let folder = folder.expect("GRISTMILL_TEST_CONSOLE is not set: run cargo xtask test");
    let chromium = std::env::var_os("GRISTMILL_TEST_CHROMIUM");
    let chromium = chromium.expect("GRISTMILL_TEST_CHROMIUM is not set: run cargo xtask test");
    let server = start();
    server.put_json("tenants/demo", &json!({ "open": true, "try_page": true }));
    let seven = STANDARD.encode(files::sample("seven.png"));
    let samples = json!([
        { "name": "seven", "request": { "base64": seven }, "expect": { "at": { "/label": 7 } } },
        { "name": "text", "request": { "body": "<img src=x>" },
            "expect": { "code": "unsupported_media_type" } },
    ]);
    let candidate = json!({ "settings": { "a": 1 }, "traffic_percent": 10 });
    let spec = json!({ "pre": "digits", "model": "digits", "post": "digits", "debug": true,
        "samples": samples, "candidate": candidate });
    let message = [("gristmill-message", "<img src=x onerror=alert(1)>")];
    let below = "/admin/v1/tenants/demo/pipelines/digits";
    server.admin.send("PUT", below, &message, Some(spec.to_string().as_bytes())).ok();
    // The page shows pipelines that had requests.
    server.data.post("/v1/demo/infer/digits", &files::sample("seven.png")).ok();
    let mut browser = Command::new("node");
    browser.arg("test/browser.mjs");
    browser.args([server.admin.address(), ADMIN_TOKEN, server.data.address()]);
    let of_root = |file: &str| files::root().join(file).canonicalize().unwrap();
    browser.arg(of_root("models/digits/samples/seven.png"));
    browser
        .arg(files::plugin_path("digits").canonicalize().unwrap())
        .arg(of_root("models/digits/digits.onnx"));
    let ran = browser.env("CHROMIUM", chromium).current_dir(folder).output().unwrap();
    let (printed, failed) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(
        ran.status.success() && printed.contains("passed"),
        "{printed}{failed}{}",
        server.log()
    );
}
