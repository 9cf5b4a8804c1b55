//! Edits that are made only to what their author has read: `If-Match` and `If-None-Match`.

use std::thread;

use serde_json::json;

use crate::support::admin_api::{KEY, conditional, path, start, tag};
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::planes::Planes;

#[test]
fn each_edit_gives_a_new_tag_and_an_old_one_refuses_the_next() {
    let server = start();
    let before = server.release();
    let file = files::plugin("digits");
    let (pipeline, tenant) = (processor("digits", json!({})), json!({ "api_keys": [KEY] }));
    let edits: [(&str, Vec<u8>); 6] = [
        ("tenants/acme", tenant.to_string().into()),
        ("tenants/acme/pipelines/digits", pipeline.to_string().into()),
        ("tenants/acme/keys/key-1", json!({ "key": KEY }).to_string().into()),
        ("tenants/acme/plugins/digits", file),
        ("models/digits", files::model("digits")),
        ("models/digits/config", b"{}".to_vec()),
    ];
    for (below, body) in &edits {
        let current = tag(&server, below);
        let weak = format!("W/{current}");
        for (condition, tags) in [
            ("if-match", "\"old\""),
            ("if-match", weak.as_str()),
            ("if-none-match", "*"),
            ("if-none-match", &current),
        ] {
            let answer = conditional(&server, ("PUT", below), (condition, tags), body);
            let name = below.rsplit('/').find(|part| *part != "config").unwrap();
            answer.refused(412, "precondition_failed", &[name, &current, tags]);
            if !below.ends_with("config") {
                let answer = conditional(&server, ("DELETE", below), (condition, tags), b"");
                answer.refused(412, "precondition_failed", &[name, &current, tags]);
            }
        }
        for tags in [current.as_str(), "*", &format!("\"old\", {current}")] {
            let answer = conditional(&server, ("PUT", below), ("if-match", tags), body);
            answer.ok();
            assert_eq!(answer.header("etag"), current, "the same content has the same tag");
        }
    }
    assert_eq!(server.release(), before);
    let change = json!({ "api_keys": [{ "name": "key-1" }], "weight": 2 });
    let old = tag(&server, "tenants/acme");
    let answer = conditional(
        &server,
        ("PUT", "tenants/acme"),
        ("if-match", &old),
        change.to_string().as_bytes(),
    );
    answer.ok();
    assert!(answer.header("etag") != old && answer.header("etag") == tag(&server, "tenants/acme"));
}

#[test]
fn something_new_is_made_once_and_what_is_gone_is_not_changed() {
    let server = start();
    let open = br#"{"open": true}"#;
    conditional(&server, ("PUT", "tenants/new"), ("if-none-match", "*"), open).ok();
    let again = conditional(&server, ("PUT", "tenants/new"), ("if-none-match", "*"), open);
    again.refused(
        412,
        "precondition_failed",
        &["tenant \"new\" has the tag", "If-None-Match is *"],
    );
    let old = tag(&server, "tenants/new");
    let deleted = conditional(&server, ("DELETE", "tenants/new"), ("if-match", &old), b"");
    deleted.ok();
    assert_eq!(deleted.header("etag"), "");
    for tags in ["*", old.as_str()] {
        let answer = conditional(&server, ("PUT", "tenants/new"), ("if-match", tags), open);
        answer.refused(412, "precondition_failed", &["tenant \"new\" does not exist", tags]);
        let answer = conditional(&server, ("DELETE", "tenants/new"), ("if-match", tags), b"");
        answer.refused(404, "not_found", &["no tenant \"new\""]);
    }
    // The same file again is another version of the plugin, which was deleted meanwhile.
    let file = files::plugin("digits");
    server.put("tenants/acme/plugins/spare", &file);
    let old = tag(&server, "tenants/acme/plugins/spare");
    server.admin.delete(&path("tenants/acme/plugins/spare")).ok();
    server.put("tenants/acme/plugins/spare", &file);
    assert_ne!(tag(&server, "tenants/acme/plugins/spare"), old);
}

#[test]
fn of_edits_that_race_with_the_same_tag_one_is_made() {
    let server = start();
    for round in 0..5u32 {
        let old = tag(&server, "tenants/acme/pipelines/digits");
        let before = server.release();
        let edit = |index: u32| {
            let limits = json!({ "timeout_ms": 1000 + round * 10 + index });
            let body = processor("digits", limits).to_string();
            let call = ("PUT", "tenants/acme/pipelines/digits");
            conditional(&server, call, ("if-match", &old), body.as_bytes())
        };
        let answers: Vec<_> = thread::scope(|scope| {
            let edits: Vec<_> = (0..8).map(|index| scope.spawn(move || edit(index))).collect();
            edits.into_iter().map(|edit| edit.join().unwrap()).collect()
        });
        let (made, refused): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| answer.status == 200);
        assert_eq!((made.len(), refused.len()), (1, 7));
        let current = tag(&server, "tenants/acme/pipelines/digits");
        assert_eq!(made[0].header("etag"), current);
        for answer in refused {
            let detail = answer.refused(412, "precondition_failed", &["pipeline \"digits\"", &old]);
            assert!(detail.contains("If-Match"), "{detail}");
        }
        assert_eq!(server.release(), before + 1);
    }
}

#[test]
fn a_wrong_condition_is_refused_and_says_why() {
    let planes = Planes::open();
    let before = planes.keyed_tenant("acme", KEY);
    let acme = path("tenants/acme");
    for (header, tags) in [
        ("if-match", "digits"),
        ("if-match", "\"a"),
        ("if-match", "\"a\" \"b\""),
        ("if-none-match", "*, \"a\""),
        ("if-none-match", ""),
    ] {
        let named = [&format!("is {tags:?}: must be * or a list of tags in double quotes")[..]];
        for method in ["GET", "PUT", "DELETE"] {
            let open = Some(&br#"{"open": true}"#[..]);
            let answer = planes.admin.send(method, &acme, &[(header, tags)], open);
            answer.refused(400, "invalid_request", &named);
        }
    }
    let many = vec!["\"a\""; 65].join(",");
    let answer = planes.admin.send("GET", &acme, &[("if-match", &many)], Some(b""));
    answer.refused(400, "invalid_request", &["If-Match has 65 tags: the limit is 64"]);
    assert_eq!(planes.release(), before);
}
