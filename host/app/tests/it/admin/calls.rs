//! Calls of the admin plane: their lines in the log, their time limits, the form of their answers.

use serde_json::json;

use crate::support::files;
use crate::support::planes::Planes;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;

#[test]
fn every_call_leaves_a_line_in_the_log() {
    let server = Server::start();
    server.open_tenant("acme");
    server.plugin("acme", "digits", "digits");
    let digest = server.status()["tenants"]["acme"]["plugins"]["digits"]["digest"].clone();
    server.admin.delete("/admin/v1/tenants/acme").refused(409, "conflict", &[]);
    assert_eq!(server.admin.get("/metrics").status, 200);
    assert_eq!(server.admin.get("/admin/v1/tenants/acme/logs").status, 200);
    server.admin.get("/admin/v1/nothing").refused(404, "not_found", &[]);
    server.logs("path=/admin/v1/nothing");
    let log = server.log();
    let line = |named: &[&str]| {
        let holds = |line: &&str| {
            line.contains("admin call") && named.iter().all(|name| line.contains(name))
        };
        assert!(log.lines().any(|text| holds(&text)), "no line has {named:?}:\n{log}");
    };
    line(&["INFO", "PUT", "/admin/v1/tenants/acme", "status=200", "release=1", "admin"]);
    line(&["plugins/digits", "status=200", "release=2", digest.as_str().unwrap()]);
    line(&["INFO", "DELETE", "/admin/v1/tenants/acme", "status=409", "conflict"]);
    line(&["GET", "/admin/v1/nothing", "status=404"]);
    // Programs read these every few seconds.
    assert!(!log.contains("path=/metrics") && !log.contains("tenants/acme/logs"), "{log}");
    let released = |line: &&str| line.contains("published") && line.contains("release=2");
    let released = log.lines().find(released).unwrap();
    assert!(released.contains("put plugin acme/digits"), "{released}");
}

#[test]
fn calls_without_the_token_leave_a_line_and_a_flood_of_them_a_few() {
    let server = Server::start();
    let wrong = server.admin.with_token("not-the-admin-token");
    wrong.get("/admin/v1/status").refused(403, "forbidden", &[]);
    let none = server.admin.without_token();
    none.delete("/admin/v1/models/m").refused(401, "unauthenticated", &[]);
    server.logs("/admin/v1/models/m");
    let log = server.log();
    let lines: Vec<_> =
        log.lines().filter(|line| line.contains("admin call without a token")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines.iter().all(|line| line.contains("WARN")), "{lines:?}");
    assert!(lines[0].contains("status=403") && lines[1].contains("status=401"), "{lines:?}");
    assert!(!log.contains("not-the-admin-token"), "{log}");
}

#[test]
fn no_key_is_in_the_log() {
    let server = Server::start();
    server.keyed_tenant("acme", "the-key-of-acme-1");
    let wrong = json!({ "api_keys": "the-key-of-acme-2", "opne": true });
    let answer = server.admin.put_json("/admin/v1/tenants/other", &wrong);
    answer.refused(422, "unprocessable", &[]);
    server.logs("tenants/other");
    assert!(!server.log().contains("the-key-of"), "{}", server.log());
}

#[test]
fn answers_end_in_a_newline() {
    let planes = Planes::open();
    let put = planes.admin.put_json("/admin/v1/tenants/acme", &json!({ "open": true }));
    assert_eq!(put.ok()["release"], 1);
    assert!(put.text().ends_with("}\n"));
    assert_eq!(put.header("content-type"), "application/json");
    let missing = planes.admin.delete("/admin/v1/models/none");
    missing.refused(404, "not_found", &[]);
    assert!(missing.text().ends_with("}\n"));
    assert!(planes.admin.get("/admin/v1/status").text().ends_with("}\n"));
}

#[test]
fn an_upload_that_does_not_come_is_given_up() {
    let server = Setup::new().flag("--upload-timeout-s", "1").start();
    server.open_tenant("acme");
    for path in ["models/digits", "tenants/acme/plugins/digits", "tenants/other"] {
        let mut upload = Raw::sent(&server.admin, &raw::last_upload(path, 100));
        upload.send(b"{\"open\": true");
        let named = ["the body did not arrive within 1 s: only 13 bytes arrived"];
        upload.answer().refused(408, "request_timeout", &named);
    }
    assert_eq!(server.release(), 1);
    let model = files::model("digits");
    let mut upload = Raw::sent(&server.admin, &raw::last_upload("models/digits", model.len()));
    upload.send(&model);
    assert_eq!(upload.answer().ok()["release"], 2);
}
