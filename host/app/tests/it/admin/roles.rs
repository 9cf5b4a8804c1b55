//! What each role may call: a table of all routes and methods, against a server.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::admin_api::{make, path};
use crate::support::client::{Client, TestAnswer};
use crate::support::planes::Planes;
use crate::support::server::Server;

/// The routes, as the server has them.
const ROUTES: &str = include_str!("../../../../admin/src/routes.rs");

/// For each method of each route, the roles that may call it. A token with the role `deploy` may do
/// so only for its own tenants. The role `admin` may call all.
const TABLE: &[(&str, &str, &[Role])] = &[
    ("GET", "self", &[Read, Deploy]),
    ("GET", "status", &[Read, Deploy]),
    ("GET", "metrics", &[Read]),
    ("GET", "usage", &[Read, Deploy]),
    ("GET", "events", &[Read, Deploy]),
    ("GET", "requests", &[Read, Deploy]),
    ("GET", "requests/slowest", &[Read, Deploy]),
    ("GET", "debug/profile", &[]),
    ("GET", "tokens", &[]),
    ("GET", "tokens/{token}", &[]),
    ("PUT", "tokens/{token}", &[]),
    ("DELETE", "tokens/{token}", &[]),
    ("POST", "tokens/{token}/rotate", &[]),
    ("GET", "releases", &[Read, Deploy]),
    ("POST", "releases", &[Deploy]),
    ("GET", "releases/{number}", &[Read, Deploy]),
    ("POST", "rollback", &[Deploy]),
    ("GET", "blobs/{digest}", &[Read, Deploy]),
    ("PUT", "blobs/{digest}", &[Deploy]),
    ("PATCH", "blobs/{digest}", &[Deploy]),
    ("DELETE", "blobs/{digest}", &[Deploy]),
    ("GET", "tenants", &[Read, Deploy]),
    ("GET", "tenants/{tenant}", &[Read, Deploy]),
    ("PUT", "tenants/{tenant}", &[]),
    ("DELETE", "tenants/{tenant}", &[]),
    ("GET", "tenants/{tenant}/logs", &[Read, Deploy]),
    ("GET", "tenants/{tenant}/keys", &[Read, Deploy]),
    ("GET", "tenants/{tenant}/keys/{key}", &[Read, Deploy]),
    ("PUT", "tenants/{tenant}/keys/{key}", &[Deploy]),
    ("DELETE", "tenants/{tenant}/keys/{key}", &[Deploy]),
    ("GET", "tenants/{tenant}/plugins", &[Read, Deploy]),
    ("GET", "tenants/{tenant}/plugins/{plugin}", &[Read, Deploy]),
    ("PUT", "tenants/{tenant}/plugins/{plugin}", &[Deploy]),
    ("DELETE", "tenants/{tenant}/plugins/{plugin}", &[Deploy]),
    ("GET", "tenants/{tenant}/plugins/{plugin}/logs", &[Read, Deploy]),
    ("GET", "tenants/{tenant}/plugins/{plugin}/content", &[Read, Deploy]),
    ("GET", "tenants/{tenant}/assets", &[Read, Deploy]),
    ("GET", "tenants/{tenant}/assets/{asset}", &[Read, Deploy]),
    ("PUT", "tenants/{tenant}/assets/{asset}", &[Deploy]),
    ("DELETE", "tenants/{tenant}/assets/{asset}", &[Deploy]),
    ("GET", "tenants/{tenant}/assets/{asset}/content", &[Read, Deploy]),
    ("GET", "tenants/{tenant}/pipelines", &[Read, Deploy]),
    ("GET", "tenants/{tenant}/pipelines/{pipeline}", &[Read, Deploy]),
    ("PUT", "tenants/{tenant}/pipelines/{pipeline}", &[Deploy]),
    ("DELETE", "tenants/{tenant}/pipelines/{pipeline}", &[Deploy]),
    ("GET", "tenants/{tenant}/pipelines/{pipeline}/candidate", &[Read, Deploy]),
    ("POST", "tenants/{tenant}/pipelines/{pipeline}/candidate/promote", &[Deploy]),
    ("POST", "tenants/{tenant}/pipelines/{pipeline}/candidate/abort", &[Deploy]),
    ("GET", "tenants/{tenant}/pipelines/{pipeline}/captured", &[Deploy]),
    ("POST", "tenants/{tenant}/pipelines/{pipeline}/try", &[Deploy]),
    ("POST", "tenants/{tenant}/stores/{store}", &[]),
    ("DELETE", "tenants/{tenant}/stores/{store}", &[]),
    ("GET", "tenants/{tenant}/stores/{store}/values/{store_key}", &[]),
    ("PUT", "tenants/{tenant}/stores/{store}/values/{store_key}", &[]),
    ("DELETE", "tenants/{tenant}/stores/{store}/values/{store_key}", &[]),
    ("GET", "models", &[Read, Deploy]),
    ("GET", "models/{model}", &[Read, Deploy]),
    ("PUT", "models/{model}", &[]),
    ("DELETE", "models/{model}", &[]),
    ("GET", "models/{model}/config", &[Read]),
    ("PUT", "models/{model}/config", &[]),
    ("GET", "models/{model}/content", &[Read]),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Read,
    Deploy,
}
use Role::{Deploy, Read};

/// The path of a route, with the names of `acme` and what it has.
fn filled(route: &str, tenant: &str, model: &str) -> String {
    let digest = format!("sha256:{}", "0".repeat(64));
    let filled = route.replace("{tenant}", tenant).replace("{model}", model);
    let filled = filled.replace("{digest}", &digest).replace("{number}", "1");
    path(
        &["token", "key", "plugin", "asset", "pipeline", "store", "store_key"]
            .iter()
            .fold(filled, |filled, part| filled.replace(&format!("{{{part}}}"), "x")),
    )
}

/// Call it so that it changes nothing, also if it is allowed: the condition never holds.
fn call(client: &Client, method: &str, path: &str) -> TestAnswer {
    let never = [("if-match", "\"never\"")];
    let body = (method != "GET" && method != "DELETE").then_some(&b"{}"[..]);
    let headers = if method == "GET" { &[][..] } else { &never };
    client.send(method, path, headers, body)
}

/// The tenant `acme`, which is granted the model `digits` but not `ranker`, and `other`.
fn start() -> Server {
    let server = Server::start();
    server.model("digits");
    server.model("ranker");
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["digits"] }));
    server.open_tenant("other");
    server
}

#[test]
fn the_table_has_every_route_and_method() {
    let planes = Planes::open();
    let mut routes = BTreeSet::new();
    for line in ROUTES.lines().map(str::trim).filter(|line| line.starts_with("[\"")) {
        let pattern = line.strip_prefix('[').unwrap().split_once("] =>").unwrap().0;
        let segments = pattern.split(", ").map(|part| match part.strip_prefix('"') {
            Some(text) => text.trim_end_matches('"').to_owned(),
            None => format!("{{{part}}}"),
        });
        routes.insert(segments.collect::<Vec<_>>().join("/"));
    }
    assert!(routes.len() > 20, "{routes:?}");
    let listed: BTreeSet<_> = TABLE.iter().map(|(_, route, _)| (*route).to_owned()).collect();
    assert_eq!(listed, routes);
    for route in &routes {
        let options = planes.admin.send("OPTIONS", &filled(route, "acme", "digits"), &[], None);
        assert_eq!(options.status, 204, "{route}");
        let methods: BTreeSet<_> = options.header("allow").split(", ").collect();
        let rows = TABLE.iter().filter(|(_, path, _)| path == route);
        let mut listed: BTreeSet<_> = rows.map(|(method, ..)| *method).collect();
        listed.insert("OPTIONS");
        if listed.contains("GET") {
            listed.insert("HEAD");
        }
        assert_eq!(listed, methods, "{route}");
    }
}

#[test]
fn each_role_may_call_what_the_table_says() {
    let server = start();
    let token = |name: &str, document| server.admin.with_token(&make(&server, name, &document));
    let read = token("eyes", json!({ "role": "read" }));
    let deploy = token("ci", json!({ "role": "deploy", "tenants": ["acme"] }));
    let admin = token("ops", json!({ "role": "admin" }));
    let release = server.release();
    for (method, route, roles) in TABLE {
        let below = filled(route, "acme", "digits");
        for (client, name, may) in [
            (&read, "eyes", roles.contains(&Read)),
            (&deploy, "ci", roles.contains(&Deploy)),
            (&admin, "ops", true),
        ] {
            let answer = call(client, method, &below);
            let text = answer.text();
            if may {
                let is_allowed = ![401, 403, 405, 429].contains(&answer.status);
                assert!(is_allowed && answer.status < 500, "{name}: {method} {below}: {text}");
            } else {
                answer.refused(403, "forbidden", &[&format!("the token {name:?} with the role")]);
            }
        }
        if *method == "GET" {
            let head = read.send("HEAD", &below, &[], None).status;
            assert_eq!(head == 403, !roles.contains(&Read), "HEAD {below}");
        }
    }
    assert_eq!(server.release(), release, "nothing was changed");
}

#[test]
fn other_tenants_and_models_are_refused_as_if_they_did_not_exist() {
    let server = start();
    let deploy = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let deploy = server.admin.with_token(&deploy);
    for (method, route, roles) in TABLE {
        let names = [("other", "ranker"), ("none", "none")];
        if roles.contains(&Deploy) && (route.contains("{tenant}") || route.contains("{model}")) {
            let text = names.map(|(tenant, model)| {
                let answer = call(&deploy, method, &filled(route, tenant, model));
                answer.refused(403, "forbidden", &["the token \"ci\" with the role deploy"])
            });
            assert_eq!(text[0], text[1], "{method} {route}");
        }
    }
}
