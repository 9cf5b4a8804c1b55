//! `gristmill tenant`, `pipeline`, `key`, `grant` and `revoke`: what people do to a server by hand.

use std::thread;

use serde_json::json;

use crate::support::admin_api::{make, read};
use crate::support::cli::Cli;
use crate::support::server::Server;
use crate::support::words::assert_names;

/// The key that a command printed.
#[track_caller]
fn printed_key(out: &str, name: &str) -> String {
    let start = format!("key {name} ");
    let line = out.lines().find_map(|line| line.strip_prefix(&start));
    let line = line.unwrap_or_else(|| panic!("no key in {out}"));
    line.strip_suffix(" (shown only this once)").unwrap().to_owned()
}

#[test]
fn tenants_are_made_listed_shown_and_deleted() {
    let server = Server::start();
    let cli = Cli::of(&server);
    let made = cli.ok(&["tenant", "create", "acme", "weight=3", "--message", "a customer"]);
    assert_names(&made, &["+ tenant acme\n", "weight: 3", "+ key acme/main", "release 1 serves"]);
    assert_eq!(read(&server, "releases/1")["message"], "a customer");
    let key = printed_key(&made, "main");
    assert!(key.starts_with("gmk_") && key.len() == 68, "{key}");
    assert_eq!(server.data.with_token(&key).get("/v1/acme").status, 200);
    assert!(!server.log().contains(&key));
    cli.ok(&["tenant", "create", "demo", "--open"]);
    assert_eq!(server.data.get("/v1/demo").status, 200);
    let json = cli.json(&["tenant", "create", "json", "--key", "web"]);
    assert_eq!((&json["tenant"], &json["name"]), (&json!("json"), &json!("web")));
    assert!(json["key"].as_str().unwrap().starts_with("gmk_"), "{json}");

    let again = cli.refused(&["tenant", "create", "acme", "--open"]);
    assert_names(&again, &["cannot make tenant acme: it is there already", "put tenant acme"]);
    let listed = cli.ok(&["tenant", "list"]);
    let names: Vec<_> = listed.lines().skip(1).map(|line| line.split(' ').next()).collect();
    assert_eq!(names, [Some("acme"), Some("demo"), Some("json")]);
    assert_eq!(cli.json(&["tenant", "show", "acme"])["weight"], 3);
    let error = cli.refused(&["tenant", "show", "acmee"]);
    assert_names(&error, &["no tenant \"acmee\": did you mean \"acme\"?"]);
    assert_names(&cli.ok(&["tenant", "delete", "demo"]), &["- tenant demo"]);
    assert_ne!(server.data.get("/v1/demo").status, 200);
}

#[test]
fn what_a_refusal_says_to_do_is_a_command() {
    let server = Server::start();
    let cli = Cli::of(&server);
    server.digits("acme");
    let refused = cli.refused(&["tenant", "delete", "acme"]);
    assert_names(&refused, &["delete these first, or all of it with --cascade"]);
    let refused = cli.refused(&["key", "create", "web", "--tenant", "acme"]);
    assert_names(&refused, &["tenant acme is open", "with --close"]);
    let closed = cli.ok(&["key", "create", "web", "--tenant", "acme", "--close"]);
    let key = printed_key(&closed, "web");
    assert_eq!(server.data.get("/v1/acme").status, 401);
    assert_eq!(server.data.with_token(&key).get("/v1/acme").status, 200);
    assert_names(&cli.ok(&["tenant", "delete", "acme", "--cascade"]), &["- tenant acme"]);
}

#[test]
fn keys_are_printed_once_and_revoked() {
    let server = Server::start();
    let cli = Cli::of(&server);
    let tenant = ["--tenant", "acme"];
    let run = |arguments: &[&str]| cli.ok(&[arguments, &tenant].concat());
    let first = printed_key(&cli.ok(&["tenant", "create", "acme"]), "main");
    let second = printed_key(&run(&["key", "create", "web"]), "web");
    let status = |key: &str| server.data.with_token(key).get("/v1/acme").status;
    assert_eq!((status(&first), status(&second)), (200, 200));
    assert_eq!(run(&["key", "list"]), "NAME  VERSION\nmain  1\nweb   2\n");
    let error = cli.refused(&[&["key", "create", "web"][..], &tenant].concat());
    assert_names(&error, &["cannot make key web: it is there already"]);
    assert_names(&run(&["key", "revoke", "main"]), &["- key acme/main", "release 3 serves"]);
    assert_ne!(status(&first), 200);
    assert_eq!(status(&second), 200);
    let error = cli.refused(&[&["key", "revoke", "webb"][..], &tenant].concat());
    assert_names(&error, &["no key \"webb\": did you mean \"web\"?"]);
    let error = cli.refused(&["key", "create", "x", "--tenant", "acne"]);
    assert_names(&error, &["no tenant \"acne\": did you mean \"acme\"?"]);
}

#[test]
fn pipelines_are_set_listed_shown_and_deleted() {
    let server = Server::start();
    server.digits("acme");
    let cli = Cli::of(&server);
    let tenant = ["--tenant", "acme"];
    let run = |arguments: &[&str]| cli.ok(&[arguments, &tenant].concat());
    let refused = |arguments: &[&str]| cli.refused(&[arguments, &tenant].concat());
    let parts = ["pipeline", "set", "second", "pre=digits", "model=digits", "post=digits"];
    assert_names(&run(&parts), &["+ pipeline acme/second", "model: \"digits\""]);
    let changed = run(&["pipeline", "set", "second", "debug=true"]);
    assert_names(&changed, &["~ pipeline acme/second\n    debug: ", " -> true"]);
    let listed = "NAME    PRE     MODEL   POST\ndigits  digits  digits  digits\n\
                  second  digits  digits  digits\n";
    assert_eq!(run(&["pipeline", "list"]), listed);
    assert!(run(&["pipeline", "show", "second"]).contains("\"debug\": true"));
    let error = refused(&["pipeline", "set", "second", "model=none"]);
    assert_names(&error, &["cannot set pipeline acme/second", "no model \"none\""]);
    let error = refused(&["pipeline", "show", "secnd"]);
    assert_names(&error, &["no pipeline \"secnd\": did you mean \"second\"?"]);
    assert_names(&run(&["pipeline", "delete", "second"]), &["- pipeline acme/second"]);
    let error = cli.refused(&["pipeline", "set", "x", "debug=true", "--tenant", "zzz"]);
    assert_names(&error, &["no tenant \"zzz\""]);
    assert!(!error.contains("did you mean"), "{error}");
}

#[test]
fn a_grant_changes_nothing_else_of_the_tenant() {
    let server = Server::start();
    server.model("digits");
    server.put_json("tenants/acme", &json!({ "open": true, "weight": 3 }));
    let cli = Cli::of(&server);
    let run = |arguments: &[&str]| cli.run(&[arguments, &["--tenant", "acme"]].concat());
    let document = || read(&server, "tenants/acme");
    let granted = run(&["grant", "model", "digits"]);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    assert_names(&granted.out, &["~ tenant acme\n    models", "digits"]);
    let now = document();
    assert_eq!((&now["models"], &now["weight"]), (&json!(["digits"]), &json!(3)));
    let error = run(&["grant", "model", "digts"]).stderr;
    assert_names(
        &error,
        &["cannot change tenant acme: no model \"digts\": did you mean \"digits\"?"],
    );

    // The operator has configured no store.
    let granted = run(&["grant", "store", "features:read", "sessions:write"]);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    let named = ["warning: ", "has no store features", "[stores.features]", "no store sessions"];
    assert_names(&granted.stderr, &named);
    assert_eq!(document()["stores"], json!({ "features": "read", "sessions": "write" }));
    let error = run(&["grant", "store", "features"]).stderr;
    assert_names(&error, &["\"features\" must be STORE:read or STORE:write"]);

    run(&["revoke", "store", "features"]);
    run(&["revoke", "model", "digits"]);
    let now = document();
    assert_eq!((&now["models"], &now["stores"]), (&json!([]), &json!({ "sessions": "write" })));
    assert_names(&run(&["revoke", "model", "digits"]).stderr, &["it is not granted model digits"]);
    assert_names(
        &run(&["revoke", "store", "features"]).stderr,
        &["it is not granted store features"],
    );
    assert_eq!(document()["weight"], 3);
}

#[test]
fn grants_that_are_made_at_the_same_time_are_all_there() {
    let server = Server::start();
    server.open_tenant("acme");
    let stores = ["a:read", "b:read", "c:write"];
    thread::scope(|scope| {
        for store in stores {
            let cli = Cli::of(&server);
            scope.spawn(move || cli.ok(&["grant", "store", store, "--tenant", "acme"]));
        }
    });
    let granted = read(&server, "tenants/acme")["stores"].take();
    assert_eq!(granted, json!({ "a": "read", "b": "read", "c": "write" }));
}

#[test]
fn a_token_of_a_tenant_makes_no_tenants_and_grants_nothing() {
    let server = Server::start();
    server.open_tenant("acme");
    let token = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let cli = Cli::of(&server).with("GRISTMILL_ADMIN_TOKEN", &token);
    for command in [
        &["tenant", "create", "other", "--open"][..],
        &["tenant", "delete", "acme"],
        &["grant", "store", "features:read", "--tenant", "acme"],
    ] {
        let error = cli.refused(command);
        assert_names(&error, &["403 Forbidden", "the token"]);
    }
    assert_eq!(server.release(), 2);
}
