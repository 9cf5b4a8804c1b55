//! Deleting: things in use stay, unless their users are deleted as well.

use serde_json::{Value, json};

use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;

/// Two tenants on the model `digits`, which is granted to both: `acme` with the pipelines `digits`,
/// its default, and `spare`.
fn start() -> Server {
    let server = Server::start();
    for tenant in ["acme", "other"] {
        server.digits(tenant);
    }
    server.pipeline("acme", "spare", &processor("digits", json!({})));
    let other = json!({ "open": true, "models": ["digits"] });
    let acme = json!({ "open": true, "models": ["digits"], "default_pipeline": "digits" });
    server.put_json("tenants/acme", &acme);
    server.put_json("tenants/other", &other);
    server
}

/// Delete it together with its users.
#[track_caller]
fn cascade(server: &Server, path: &str) -> Value {
    server.admin.delete(&format!("/admin/v1/{path}?cascade=true")).ok()
}

#[test]
fn what_is_in_use_is_not_deleted_and_all_its_users_are_named() {
    let server = start();
    let before = server.release();
    for (path, named) in [
        (
            "models/digits",
            "model \"digits\" is used by acme/digits, acme/spare, other/digits and granted to \
             acme, other",
        ),
        ("tenants/acme/plugins/digits", "plugin \"digits\" is used by acme/digits, acme/spare"),
        (
            "tenants/acme/pipelines/digits",
            "pipeline \"digits\" is the default pipeline of tenant \"acme\"",
        ),
        ("tenants/acme", "tenant \"acme\" has the pipelines digits, spare and the plugins digits"),
    ] {
        for query in ["", "?cascade=false"] {
            let answer = server.admin.delete(&format!("/admin/v1/{path}{query}"));
            answer.refused(409, "conflict", &[named, "?cascade=true"]);
        }
    }
    assert_eq!(server.release(), before);
    server.assert_reads("acme", 6);
}

#[test]
fn what_nothing_uses_is_deleted() {
    let server = Server::start();
    server.digits("acme");
    let in_order = [
        "tenants/acme/pipelines/digits",
        "tenants/acme/plugins/digits",
        "models/digits",
        "tenants/acme",
    ];
    for path in in_order {
        server.admin.delete(&format!("/admin/v1/{path}")).ok();
    }
    let status = server.status();
    assert_eq!((&status["tenants"], &status["models"]), (&json!({}), &json!({})));
}

#[test]
fn a_cascade_takes_the_users_along_in_one_release() {
    let server = start();
    let before = server.release();
    cascade(&server, "tenants/acme/pipelines/digits");
    let acme = |server: &Server| server.status()["tenants"]["acme"].clone();
    assert_eq!(acme(&server)["pipelines"], json!({ "spare": { "state": "ready" } }));

    cascade(&server, "tenants/acme/plugins/digits");
    assert_eq!((&acme(&server)["pipelines"], &acme(&server)["plugins"]), (&json!({}), &json!({})));
    assert_eq!(acme(&server)["models"], json!(["digits"]));
    server.assert_reads("other", 3);

    cascade(&server, "models/digits");
    let status = server.status();
    assert_eq!(status["models"], json!({}));
    for tenant in ["acme", "other"] {
        assert_eq!(status["tenants"][tenant]["models"], json!([]));
        assert_eq!(status["tenants"][tenant]["pipelines"], json!({}));
    }
    cascade(&server, "tenants/other");
    assert_eq!(server.release(), before + 4);

    let state = server.served();
    let server = server.kill().start();
    assert_eq!(server.served(), state, "the log says the same");
    let answer = server.data.post("/v1/other/infer/digits", &files::digit(6));
    assert!(answer.status == 404 || answer.status == 401, "{}", answer.text());
}

#[test]
fn other_parameters_are_refused() {
    let server = start();
    for (query, named) in [
        ("cascde=true", "unknown parameter \"cascde\"; known is cascade"),
        ("cascade=yes", "cascade is \"yes\": must be true or false"),
        ("cascade", "cascade is \"\": must be true or false"),
    ] {
        let answer = server.admin.delete(&format!("/admin/v1/tenants/other?{query}"));
        answer.refused(400, "invalid_request", &[named]);
    }
    server.assert_reads("other", 3);
}
