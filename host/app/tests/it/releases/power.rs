//! What a release lets things do that they could not do before: in the answers to changes, and of
//! releases of the past.

use serde_json::{Value, json};

use crate::support::admin_api::{make, path, post_to, read, upload};
use crate::support::files;
use crate::support::server::Server;

/// The powers of one thing in an answer: trend, kind and names.
fn powers(answer: &Value, kind: &str) -> Vec<(String, String, Vec<String>)> {
    let powers = answer["power"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |power: &Value| {
        let names = power["names"].as_array().unwrap().iter().map(text).collect();
        (text(&power["trend"]), text(&power["power"]), names)
    };
    powers.iter().filter(|power| power["kind"] == kind).map(of).collect()
}

fn owned(trend: &str, power: &str, names: &[&str]) -> (String, String, Vec<String>) {
    (trend.into(), power.into(), names.iter().map(ToString::to_string).collect())
}

/// The pipeline `main` with this limit.
fn pipeline(cpu_ms: u64) -> Value {
    let limits = json!({ "cpu_ms": cpu_ms });
    json!({ "handler": "guest", "models": { "digits": "digits" }, "limits": limits })
}

/// The open tenant `acme` with a handler that imports no other system.
fn start() -> Server {
    let server = Server::start();
    server.model("digits");
    server.put_json("tenants/acme", &json!({ "open": true, "stores": { "features": "read" } }));
    server.plugin("acme", "guest", "hostile-handler");
    server.pipeline("acme", "main", &pipeline(500));
    server
}

#[test]
fn a_release_says_what_it_lets_a_tenant_do() {
    let server = start();
    let before = server.release();
    let handler = files::plugin("hostile-handler").len() as u64;
    let services = files::plugin("hostile-services");
    let file = upload(&server, &services);
    let http = json!([{ "scheme": "https", "host": "api.example.com" }]);
    let document = json!({ "open": true, "stores": { "features": "write" }, "http": http });
    let new = json!({ "changes": [
        { "kind": "put_tenant", "tenant": "acme", "document": document },
        { "kind": "put_plugin", "tenant": "acme", "plugin": "guest", "digest": file },
        { "kind": "put_pipeline", "tenant": "acme", "pipeline": "main", "document": pipeline(900) },
    ] });
    let planned = post_to(&server, "releases?dry_run=true", &new).ok();
    assert_eq!(server.release(), before);
    assert_eq!(
        powers(&planned, "tenant"),
        [
            owned("more", "store_write", &["features"]),
            owned("more", "http", &["https://api.example.com:443"]),
        ]
    );
    assert_eq!(powers(&planned, "pipeline"), [owned("more", "limit", &["limits.cpu_ms"])]);
    let plugin = powers(&planned, "plugin");
    let (trend, power, names) = &plugin[0];
    assert_eq!((trend.as_str(), power.as_str()), ("more", "import"), "{planned}");
    assert!(names.iter().any(|name| name == "wasi:http/outgoing-handler"), "{planned}");
    assert!(!names.iter().any(|name| name.contains('@')), "{planned}");
    let text = planned["power"].to_string();
    for named in [
        "may now write to stores features",
        "limits.cpu_ms is 900 (was 500)",
        &format!("its size is {} bytes (was {handler})", services.len()),
    ] {
        assert!(text.contains(named), "{named}: {text}");
    }
    let made = post_to(&server, "releases", &new).ok();
    assert_eq!(made["power"], planned["power"]);
    let again = post_to(&server, "releases", &new).ok();
    assert!(again.get("power").is_none(), "{again}");

    // Of the past, when the plugin before is not loaded any more.
    let at = format!("releases/{}", before + 1);
    let past = read(&server, &format!("{at}?power=true"));
    for kind in ["tenant", "pipeline"] {
        assert_eq!(powers(&past, kind), powers(&planned, kind), "{past}");
    }
    let unknown = &powers(&past, "plugin")[0];
    assert_eq!((unknown.0.as_str(), unknown.1.as_str()), ("unknown", "import"), "{past}");
    assert!(read(&server, &at).get("power").is_none());
    let wrong = server.admin.get(&path(&format!("{at}?power=yes")));
    wrong.refused(400, "invalid_request", &["power is \"yes\": must be true or false"]);

    // Back: the same the other way round.
    let back = post_to(&server, "rollback?dry_run=true", &json!({ "to": before })).ok();
    assert_eq!(
        powers(&back, "tenant"),
        [
            owned("less", "store_write", &["features"]),
            owned("less", "http", &["https://api.example.com:443"]),
        ]
    );
    let plugin = powers(&back, "plugin");
    assert!(plugin.contains(&("less".into(), power.clone(), names.clone())), "{back}");
}

#[test]
fn a_change_of_one_thing_says_it_too_and_a_token_sees_its_own_tenants() {
    let server = start();
    let plugin =
        server.admin.put(&path("tenants/acme/plugins/guest"), &files::plugin("hostile-services"));
    let plugin = powers(&plugin.ok(), "plugin");
    assert!(plugin[0].2.contains(&"wasi:http/outgoing-handler".to_owned()), "{plugin:?}");
    let opened = server.admin.put_json(&path("tenants/other"), &json!({ "open": true }));
    assert_eq!(powers(&opened.ok(), "tenant"), [owned("more", "open", &[])]);
    let both = json!({ "changes": [
        { "kind": "put_tenant", "tenant": "other", "document": { "open": true, "weight": 2 } },
        { "kind": "put_pipeline", "tenant": "acme", "pipeline": "main", "document": pipeline(901) },
    ] });
    let made = post_to(&server, "releases", &both).ok();
    assert_eq!(made["power"].as_array().unwrap().len(), 2, "{made}");
    let ci = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let at = path(&format!("releases/{}?power=true", made["release"]));
    let seen = server.admin.with_token(&ci).get(&at).ok();
    let [only] = &seen["power"].as_array().unwrap()[..] else { panic!("{seen}") };
    assert_eq!((&only["tenant"], &only["pipeline"]), (&json!("acme"), &json!("main")));
    assert!(!seen.to_string().contains("other"), "{seen}");
    let token = read(&server, &format!("releases/{}?power=true", server.release()));
    assert_eq!(
        powers(&token, "token"),
        [owned("more", "role", &["deploy"]), owned("more", "tenant", &["acme"])]
    );
}

#[test]
fn a_token_does_not_see_what_a_tenant_of_the_same_name_was_granted() {
    let server = Server::start();
    let before = json!({ "open": true, "stores": { "secrets": "write" } });
    server.put_json("tenants/acme", &before);
    let changes = json!([
        { "kind": "delete_tenant", "tenant": "acme" },
        { "kind": "put_tenant", "tenant": "acme", "document": { "open": true } },
    ]);
    let made = post_to(&server, "releases", &json!({ "changes": changes })).ok();
    let ci = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let at = path(&format!("releases/{}?power=true", made["release"]));
    let seen = server.admin.with_token(&ci).get(&at).ok();
    assert_eq!((&seen["power"], &seen["changes"][1]["tenant"]), (&json!([]), &json!("acme")));
    // People who see the whole server compare the two.
    let lost = ["store_read", "store_write"].map(|power| owned("less", power, &["secrets"]));
    assert_eq!(powers(&server.admin.get(&at).ok(), "tenant"), lost);
}
