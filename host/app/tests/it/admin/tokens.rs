//! Admin tokens: made, shown once, rotated, expired, and kept as hashes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::admin_api::{make, path, put_token, read, secret_in};
use crate::support::client::Client;
use crate::support::eventually::eventually;
use crate::support::planes::Planes;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};

fn status(server: &Server, token: &str) -> u16 {
    server.admin.with_token(token).get(&path("status")).status
}

/// All text in a folder.
fn texts_in(folder: &Path) -> String {
    let mut texts = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        texts += &match path.is_dir() {
            true => texts_in(&path),
            false => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
        };
    }
    texts
}

#[test]
fn a_token_is_made_shown_once_edited_rotated_and_deleted() {
    let server = Server::start();
    server.open_tenant("acme");
    let deploy =
        json!({ "role": "deploy", "tenants": ["acme"], "expires": "2035-01-02T03:04:05Z" });
    let secret = make(&server, "ci", &deploy);
    assert!(secret.starts_with("gmt_") && secret.len() == 68, "{secret}");
    assert_eq!(status(&server, &secret), 200);
    assert_eq!(read(&server, "tokens/ci"), deploy);
    let document = server.admin.with_token(&secret).get(&path("self")).ok();
    let mut expected = deploy.clone();
    expected["name"] = "ci".into();
    assert_eq!(document, expected);
    assert_eq!(read(&server, "self"), json!({ "name": "admin", "role": "admin" }));

    // What was read is put back, and another role keeps the secret.
    let again = put_token(&server.admin, "ci", &deploy);
    assert_eq!((again.ok()["release"].as_u64(), secret_in(&again.ok())), (Some(2), None));
    let tag = server.admin.get(&path("tokens/ci")).header("etag").to_owned();
    let edited = put_token(&server.admin, "ci", &json!({ "role": "read" }));
    assert_eq!((edited.ok()["release"].as_u64(), secret_in(&edited.ok())), (Some(3), None));
    assert_eq!(server.admin.with_token(&secret).get(&path("self")).ok()["role"], "read");
    let stale = server.admin.send("DELETE", &path("tokens/ci"), &[("if-match", &tag)], None);
    stale.refused(412, "precondition_failed", &["token \"ci\""]);
    let new = [("if-none-match", "*"), ("content-type", "application/json")];
    let twice = server.admin.send("PUT", &path("tokens/ci"), &new, Some(b"{\"role\": \"read\"}"));
    twice.refused(412, "precondition_failed", &["token \"ci\""]);

    let rotated = server.admin.post(&path("tokens/ci/rotate"), b"");
    assert_eq!(rotated.header("cache-control"), "no-store");
    let other = secret_in(&rotated.ok()).unwrap();
    assert_eq!((status(&server, &secret), status(&server, &other)), (403, 200));
    make(&server, "ops", &json!({ "role": "admin" }));
    let list = read(&server, "tokens?limit=1");
    let ci = json!({ "name": "ci", "role": "read", "version": 4, "expired": false });
    assert_eq!(list, json!({ "items": [ci], "next": "ci" }));
    assert_eq!(read(&server, "tokens?after=ci")["items"][0]["name"], "ops");

    let server = server.kill().start();
    assert_eq!((status(&server, &secret), status(&server, &other)), (403, 200));
    server.admin.delete(&path("tokens/ci")).ok();
    assert_eq!(status(&server, &other), 403);
    server.admin.get(&path("tokens/ci")).refused(404, "not_found", &["no token \"ci\""]);
    let gone = server.admin.post(&path("tokens/ci/rotate"), b"");
    gone.refused(404, "not_found", &["no token \"ci\""]);
}

#[test]
fn neither_a_secret_nor_its_hash_is_shown_and_only_the_hash_is_kept() {
    let server = Server::start();
    server.open_tenant("acme");
    let document = json!({ "role": "deploy", "tenants": ["acme"] });
    let secret = make(&server, "ci", &document);
    let mut shown = String::new();
    for below in ["tokens", "tokens/ci", "self", "status", "releases", "releases/2", "tokens/no"] {
        for admin in [server.admin.clone(), server.admin.with_token(&secret)] {
            let answer = admin.get(&path(below));
            shown += &format!("{} {:?}", answer.text(), answer.headers);
        }
    }
    let change = json!({ "kind": "put_token", "token": "ci", "document": document });
    assert_eq!(read(&server, "releases/2")["changes"], json!([change]));
    let wrong = json!({ "api_keys": [secret] });
    let answer = server.admin.put_json(&path("tenants/other"), &wrong);
    shown += &answer.refused(422, "unprocessable", &["api_keys[0] is in use elsewhere"]);
    server.logs("tokens/no");
    shown += &server.log();
    let kept = texts_in(&server.data_dir());
    let hash = server.kept_hash(&secret);
    assert!(kept.contains(&hash) && !kept.contains(&secret));
    assert!(!shown.contains(&secret) && !shown.contains(&hash[..12]), "{shown}");
    let plain = gristmill_transport::credentials::digest(&secret).hex();
    assert!(!kept.contains(&plain), "the hash is keyed");
}

#[test]
fn what_is_no_token_is_refused_with_all_faults() {
    let planes = Planes::open();
    planes.open_tenant("acme");
    let refused = |name: &str, document: Value, named: &[&str]| {
        put_token(&planes.admin, name, &document).refused(422, "unprocessable", named);
    };
    let faults = ["tenants is missing", "expires is \"soon\"", "unknown key \"secret\""];
    refused("ci", json!({ "role": "deploy", "expires": "soon", "secret": "x" }), &faults);
    let past = json!({ "role": "read", "expires": "2020-01-01T00:00:00Z" });
    refused("ci", past, &["expires is \"2020-01-01T00:00:00Z\": it must be in the future"]);
    let late = json!({ "role": "read", "expires": "2099-01-01T00:00:00Z" });
    refused("ci", late, &["must be within ten years"]);
    let missing = json!({ "role": "deploy", "tenants": ["acme", "none"] });
    refused("ci", missing, &["tenants: there are no tenants none"]);
    refused("admin", json!({ "role": "read" }), &["is the name of the token that the server"]);
    let name = put_token(&planes.admin, "Ci", &json!({ "role": "read" }));
    name.refused(400, "invalid_request", &["token: \"Ci\" is not a valid name"]);
    // Tokens are not part of releases of many changes, whose answers would have to show secrets.
    let change = json!({ "changes": [{ "kind": "put_token", "token": "x" }] });
    let answer = planes.admin.post(&path("releases"), change.to_string().as_bytes());
    answer.refused(422, "unprocessable", &["changes[0].kind is \"put_token\""]);
    assert_eq!(planes.release(), 1);
}

#[test]
fn a_token_ends() {
    let server = Server::start();
    let end = SystemTime::now() + Duration::from_secs(10);
    let end = humantime::format_rfc3339_millis(end).to_string();
    let document = json!({ "role": "read", "expires": end });
    let secret = make(&server, "guest", &document);
    eventually("it ends", || status(&server, &secret) == 403);
    assert!(SystemTime::now() >= humantime::parse_rfc3339(&end).unwrap());
    let guest = server.admin.with_token(&secret);
    for below in ["self", "status", "nothing"] {
        guest.get(&path(below)).refused(403, "forbidden", &["the token \"guest\" has expired"]);
    }
    let stranger = server.admin.with_token("gmt_of-a-stranger");
    stranger.get(&path("self")).refused(403, "forbidden", &["this is not an admin token"]);
    assert_eq!(read(&server, "tokens")["items"][0]["expired"], true);
    // Put back as it was read it stays, and another end makes it valid again.
    assert_eq!(put_token(&server.admin, "guest", &document).ok()["release"], 1);
    put_token(&server.admin, "guest", &json!({ "role": "read" })).ok();
    assert_eq!(status(&server, &secret), 200);
}

#[test]
fn a_tenant_of_a_token_is_deleted_only_together_with_its_grant() {
    let server = Server::start();
    server.open_tenant("acme");
    server.open_tenant("other");
    let ci = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    make(&server, "both", &json!({ "role": "deploy", "tenants": ["acme", "other"] }));
    let used = server.admin.delete(&path("tenants/acme"));
    used.refused(409, "conflict", &["tenant \"acme\" is a tenant of the tokens both, ci"]);
    // Going back to before the tenants would delete them.
    let back = server.admin.post(&path("rollback"), b"{\"to\": 1}");
    back.refused(409, "conflict", &["tenant \"other\" is a tenant of the tokens both"]);
    server.admin.delete(&path("tenants/acme?cascade=true")).ok();
    assert_eq!(status(&server, &ci), 403);
    assert_eq!(read(&server, "tokens/both")["tenants"], json!(["other"]));
    // A tenant of the same name is another one, and going back brings no token back.
    server.admin.post(&path("rollback"), b"{\"to\": 4}").ok();
    assert!(server.admin.get(&path("tenants/acme")).status == 200);
    assert_eq!(status(&server, &ci), 403);
    assert_eq!(read(&server, "tokens")["items"].as_array().unwrap().len(), 1);
}

#[test]
fn wrong_tokens_are_slowed_down_by_their_address_and_a_right_one_passes() {
    let server = Server::start();
    let secret = make(&server, "ops", &json!({ "role": "admin" }));
    let guess = |number: usize| {
        server.admin.with_token(&format!("gmt_guess-number-{number}")).get(&path("status"))
    };
    for number in 0..10 {
        guess(number).refused(403, "forbidden", &["this is not an admin token"]);
    }
    let slowed = guess(10);
    slowed.refused(429, "too_many_failures", &["too many wrong admin tokens came from 127.0.0.1"]);
    let wait: u64 = slowed.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    // Those who have a token, or forgot it, are not the ones that guess.
    assert_eq!((status(&server, &secret), status(&server, ADMIN_TOKEN)), (200, 200));
    let none = server.admin.without_token().get(&path("status"));
    none.refused(401, "unauthenticated", &["an admin token is needed"]);
    eventually("the wait grows", || {
        let answer = guess(11);
        assert_ne!(answer.status, 200);
        answer.status == 429 && answer.header("retry-after").parse::<u64>().unwrap() > wait
    });
    server.logs("client=\"127.0.0.1\"");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("admin call without a token"));
    assert!(line.is_some_and(|line| line.contains("client=\"127.0.0.1\"")), "{log}");
    assert!(!log.contains("guess-number"), "{log}");
}

#[test]
fn wrong_keys_on_the_data_plane_are_logged_with_their_address() {
    let server = Server::start();
    server.model("digits");
    let key = "the-key-of-acme-1";
    server.keyed_tenant("acme", key);
    let guess = server.data.with_token("guess-number-1");
    // Those who have a key, or forgot it, do not guess.
    server.data.with_token(key).get("/v1/acme").ok();
    server.data.get("/v1/acme").refused(401, "unauthenticated", &["an API key"]);
    let unload = guess.post("/v2/repository/models/digits/unload", b"{}");
    unload.refused_by_protocol(403, &["the API key opens no tenant"]);
    server.log_with("a call with a wrong key client=\"127.0.0.1\" code=forbidden left_out=0");
    assert_eq!(server.log().matches("a call with a wrong key").count(), 1, "{}", server.log());
    let infer = guess.post("/v1/acme/infer", b"");
    infer.refused(401, "unauthenticated", &["an API key of tenant \"acme\" is needed"]);
    server.log_with("a call with a wrong key client=\"127.0.0.1\" code=unauthenticated left_out=0");
    assert!(!server.log().contains("guess-number"), "{}", server.log());
}

#[test]
fn a_token_of_an_operator_works_on_the_data_plane_as_the_root_token() {
    let server = Server::start();
    server.open_tenant("acme");
    server.model("digits");
    let admin = make(&server, "ops", &json!({ "role": "admin" }));
    let read_only = make(&server, "eyes", &json!({ "role": "read" }));
    let call = |token: &str, below: &str| server.data.with_token(token).post(below, b"{}");
    call(&admin, "/v2/repository/models/digits/unload").ok();
    let unloaded = read(&server, &format!("releases/{}", server.release()));
    assert_eq!(unloaded["by"], "ops");
    call(ADMIN_TOKEN, "/v2/repository/models/none/load").refused_by_protocol(404, &["none"]);
    server.log_with("call of the model repository who=ops change=unload model=digits");
    let refused = "who=admin change=load model=none code=not_found";
    server.log_with(refused);
    let runs = call(&admin, "/v2/models/digits/infer");
    runs.refused_by_protocol(403, &["the admin token runs no models"]);
    for below in ["/v2/repository/models/digits/load", "/v2/models/digits/infer"] {
        call(&read_only, below).refused_by_protocol(403, &["the API key opens no tenant"]);
    }
}

#[test]
fn the_hash_key_is_made_once_and_a_start_without_it_is_refused() {
    let server = Server::start();
    server.keyed_tenant("acme", "the-key-of-acme-1");
    let secret = make(&server, "ops", &json!({ "role": "admin" }));
    let file = server.data_dir().join("hash-key");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = fs::read_to_string(&file).unwrap();
    let setup = server.kill();
    let fsck = |setup: &Setup| {
        let data_dir = setup.data_dir();
        let output = setup.run(&["fsck", "--data-dir", data_dir.to_str().unwrap()]);
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(fsck(&setup).starts_with("releases: 2"), "{}", fsck(&setup));
    let cure = "put the file hash-key back into the data directory";
    fs::remove_file(&file).unwrap();
    for error in [setup.start_refused(), fsck(&setup)] {
        assert!(error.contains("and there is none") && error.contains(cure), "{error}");
    }
    assert!(!file.exists(), "no other one is made");
    fs::write(&file, "00".repeat(32)).unwrap();
    for error in [setup.start_refused(), fsck(&setup)] {
        assert!(error.contains("hash-key is another one") && error.contains(cure), "{error}");
    }
    fs::write(&file, "damaged").unwrap();
    assert!(setup.start_refused().contains("hash-key is damaged"));
    fs::write(&file, &kept).unwrap();
    let server = setup.start();
    assert_eq!(fs::read_to_string(&file).unwrap(), kept);
    assert_eq!(status(&server, &secret), 200);
    assert_eq!(server.data.with_token("the-key-of-acme-1").get("/v1/acme").status, 200);
}

/// The output of a command that calls the server with this token.
#[track_caller]
fn command(server: &Client, token: &str, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_gristmill"))
        .args(arguments)
        .args(["--admin", server.address()])
        .env("GRISTMILL_ADMIN_TOKEN", token)
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_command_line_makes_and_shows_tokens() {
    let server = Server::start();
    server.open_tenant("acme");
    let run = |token: &str, arguments: &[&str]| command(&server.admin, token, arguments);
    let create =
        ["token", "create", "ci", "--role", "deploy", "--tenant", "acme", "--expires", "90d"];
    let made = run(ADMIN_TOKEN, &create);
    let line = made.strip_prefix("token ci ").unwrap();
    let secret = line.strip_suffix(" (shown only this once)\n").unwrap().to_owned();
    let shown: Value =
        serde_json::from_str(&run(&secret, &["token", "show", "--output", "json"])).unwrap();
    assert_eq!((&shown["name"], &shown["tenants"]), (&json!("ci"), &json!(["acme"])));
    let list = run(ADMIN_TOKEN, &["token", "list"]);
    assert!(list.starts_with("NAME") && list.contains("ci    deploy  acme"), "{list}");
    // A token that is there is not changed by `create`.
    let twice = Command::new(env!("CARGO_BIN_EXE_gristmill"))
        .args(create)
        .args(["--admin", server.admin.address(), "--token", ADMIN_TOKEN])
        .output()
        .unwrap();
    let error = String::from_utf8(twice.stderr).unwrap();
    assert!(
        error.contains("cannot make token ci: 412") && error.contains("token \"ci\""),
        "{error}"
    );
    let rotated = run(ADMIN_TOKEN, &["token", "rotate", "ci", "--output", "json"]);
    let rotated: Value = serde_json::from_str(&rotated).unwrap();
    let other = rotated["secret"].as_str().unwrap();
    assert_eq!((status(&server, &secret), status(&server, other)), (403, 200));
    let deleted = run(ADMIN_TOKEN, &["token", "delete", "ci"]);
    assert_eq!(deleted, "deleted token ci in release 4\n");
    assert_eq!(status(&server, other), 403);
    assert_eq!(run(ADMIN_TOKEN, &["token", "list", "--output", "json"]), "[]\n");
}
