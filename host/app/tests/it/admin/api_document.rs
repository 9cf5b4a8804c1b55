//! The description of the admin API: an OpenAPI document and a page, for everyone.

use serde_json::Value;

use crate::admin::schemathesis;
use crate::support::planes::Planes;

/// The document that the repository keeps.
const KEPT: &str = include_str!("../../../../admin/openapi.json");

const DOCUMENT: &str = "/admin/v1/openapi.json";
const PAGE: &str = "/admin/v1/docs";

#[test]
fn the_document_is_the_one_that_is_kept() {
    let planes = Planes::open();
    let answer = planes.admin.without_token().get(DOCUMENT);
    assert_eq!(answer.header("content-type"), "application/json");
    let (served, kept): (Value, Value) = (answer.ok(), serde_json::from_str(KEPT).unwrap());
    assert_eq!(served["openapi"], "3.1.0");
    for key in ["info", "paths", "components"] {
        for (name, kept) in kept[key].as_object().unwrap() {
            assert_eq!(&served[key][name], kept, "{key}: {name}: run cargo xtask docs");
        }
    }
    assert!(
        served == kept,
        "the document has more than the one that is kept: run cargo xtask docs"
    );
}

#[test]
fn the_page_runs_no_script_and_loads_nothing() {
    let planes = Planes::open();
    let answer = planes.admin.without_token().get(PAGE);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    let policy = answer.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    let page = answer.text();
    assert!(page.contains("<code>/admin/v1/tenants/{tenant}</code>"), "{page}");
    for without in ["<script", "=\"http", "='http", "=http", " src=", "@import", "url("] {
        assert!(!page.contains(without), "{without}");
    }
}

#[test]
fn both_are_for_readers_only_and_have_tags() {
    let planes = Planes::open();
    let anyone = planes.admin.without_token();
    for path in [DOCUMENT, PAGE] {
        let tag = anyone.get(path).header("etag").to_owned();
        let unchanged = anyone.send("GET", path, &[("if-none-match", &tag)], None);
        assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
        let answer = anyone.send("OPTIONS", path, &[], None);
        assert_eq!((answer.status, answer.header("allow")), (204, "GET, HEAD, OPTIONS"));
        anyone.put(path, b"{}").refused(405, "method_not_allowed", &["not allowed here"]);
        let refused = anyone.get(&format!("{path}?a=1"));
        refused.refused(400, "invalid_request", &["unknown parameter \"a\""]);
        // A wrong token makes no difference.
        assert_eq!(planes.admin.with_token("not-the-admin-token").get(path).status, 200);
    }
    anyone.get("/admin/v1/status").refused(401, "unauthenticated", &["an admin token is needed"]);
}

#[test]
fn values_at_the_edges_of_the_description_are_not_invalid() {
    let server = schemathesis::server();
    let document: Value = serde_json::from_str(KEPT).unwrap();
    let names = [
        ("{tenant}", "acme"),
        ("{plugin}", "digits"),
        ("{pipeline}", "digits"),
        ("{model}", "digits"),
        ("{key}", "ci"),
        ("{token}", "ci"),
        ("{number}", "1"),
        ("{digest}", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("{store}", "features"),
        ("{store_key}", "k"),
        ("{asset}", "prices"),
    ];
    let mut tried = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        // A profile takes as long as it says.
        if path.ends_with("/profile") {
            continue;
        }
        let at = names.iter().fold(path.clone(), |at, (name, value)| at.replace(name, value));
        let parameters = operations["get"]["parameters"].as_array();
        for parameter in parameters.into_iter().flatten() {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            for value in edges(schema) {
                let answer = match parameter["in"].as_str().unwrap() {
                    "query" => server.admin.get(&format!("{at}?{name}={value}")),
                    "header" => server.admin.send("GET", &at, &[(name, &value)], None),
                    _ => continue,
                };
                let shown = answer.text();
                assert_ne!(answer.status, 400, "{at}, {name} {value:?}: {shown}");
                tried += 1;
            }
        }
    }
    assert!(tried > 50, "{tried}");
    // A message has no control characters, as its pattern says.
    let tenant = "/admin/v1/tenants/{tenant}";
    let mut parameters = document["paths"][tenant]["put"]["parameters"].as_array().unwrap().iter();
    let message = parameters.find(|parameter| parameter["name"] == "Gristmill-Message").unwrap();
    let posted = ["NewRelease", "Rollback"]
        .map(|name| &document["components"]["schemas"][name]["properties"]["message"]["pattern"]);
    for pattern in posted.into_iter().chain([&message["schema"]["pattern"]]) {
        assert_eq!(pattern, r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f]*$");
    }
    let put = |message: &str| {
        let (message, open) = ([("gristmill-message", message)], br#"{"open":true}"#.as_slice());
        server.admin.send("PUT", "/admin/v1/tenants/other", &message, Some(open))
    };
    put("a\tb").refused(400, "invalid_request", &["no control characters"]);
    put(&"~".repeat(1000)).ok();
    // A part of a file that begins where none can.
    for (offset, status) in [("9223372036854775807", 409), ("9223372036854775808", 400)] {
        let part = [("upload-offset", offset), ("upload-complete", "?1")];
        let path = format!("/admin/v1/blobs/{}", names[7].1);
        let answer = server.admin.send("PATCH", &path, &part, Some(b"x"));
        assert_eq!(answer.status, status, "{offset}: {}", answer.text());
    }
    let whole = br#"{"max_queue_delay_us": 1e3, "preferred_batch_sizes": [4.0]}"#;
    server.admin.put("/admin/v1/models/digits/config", whole).ok();
    let config = server.admin.get("/admin/v1/models/digits/config").ok();
    assert_eq!(config["max_queue_delay_us"], 1000, "{config}");
    assert_eq!(config["preferred_batch_sizes"][0], 4, "{config}");
}

/// The values that a schema allows and that are most likely to be refused.
fn edges(schema: &Value) -> Vec<String> {
    let is_text = schema["type"] == "string" && schema["enum"].is_null();
    match (schema["type"].as_str(), schema["pattern"].as_str()) {
        (Some("integer"), _) => {
            ["minimum", "maximum"].map(|edge| schema[edge].to_string()).to_vec()
        }
        (_, Some(pattern)) if pattern.contains("W/") => {
            // As many as it allows.
            let bound = pattern.rsplit_once("{0,").and_then(|(_, end)| end.split_once('}'));
            let more: Option<usize> = bound.and_then(|(more, _)| more.parse().ok());
            let all = vec!["\"a\""; 1 + more.unwrap_or(1000)].join(",");
            ["\"\"", "*", "W/\"\"", "\"a\", W/\"b\"", &all].map(str::to_owned).to_vec()
        }
        (_, None) if is_text => vec![String::new()],
        _ => Vec::new(),
    }
}
