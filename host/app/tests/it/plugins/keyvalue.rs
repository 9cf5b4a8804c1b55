//! `wasi:keyvalue`: a guest of stock wit-bindgen over a store in a file and over a real Redis, with
//! the values that our own interface and the admin API see.

use serde_json::{Value, json};

use crate::support::admin_api::read;
use crate::support::client::TestAnswer;
use crate::support::eventually::eventually;
use crate::support::redis::{FakeRedis, Redis};
use crate::support::server::Server;
use crate::support::stores::{asked, configured, granted};

const FILE: &str = "[stores.file]\nembedded = true\nmax_bytes = 67108864\ntimeout_ms = 20000\n";
const STORES: [&str; 2] = ["file", "redis"];

/// A server with a store of each kind, which the tenant `acme` may use like this by our own
/// interface and by `wasi:keyvalue`.
fn serving(redis: &Redis, access: &str) -> Server {
    let tables = format!("{FILE}[stores.redis]\nredis = '{}'\ntimeout_ms = 20000\n", redis.url());
    serving_with(&tables, json!({ "file": access, "redis": access }))
}

fn serving_with(tables: &str, stores: Value) -> Server {
    let server = configured(tables).start();
    granted(&server, "acme", stores);
    server.plugin("acme", "keyvalue", "hostile-keyvalue");
    server.pipeline("acme", "keyvalue", &pipeline());
    server
}

/// Its requests have so much time that only other limits end one.
fn pipeline() -> Value {
    let limits = json!({ "timeout_ms": 60_000, "cpu_ms": 30_000 });
    json!({ "handler": "keyvalue", "models": { "digits": "digits" }, "limits": limits })
}

fn sent(server: &Server, deed: &Value) -> TestAnswer {
    server.data.post("/v1/acme/infer/keyvalue", deed.to_string().as_bytes())
}

/// What came of each step.
#[track_caller]
fn outcomes(server: &Server, bucket: &str, steps: Value) -> Vec<Value> {
    let deed = json!({ "bucket": bucket, "steps": steps });
    sent(server, &deed).ok().as_array().unwrap().clone()
}

/// What came of the one step.
#[track_caller]
fn outcome(server: &Server, bucket: &str, step: Value) -> Value {
    outcomes(server, bucket, json!([step])).remove(0)
}

/// The error of the one step.
#[track_caller]
fn error(server: &Server, bucket: &str, step: Value) -> String {
    let outcome = outcome(server, bucket, step);
    outcome["Err"].as_str().unwrap_or_else(|| panic!("{outcome}")).to_owned()
}

/// The texts that are kept of the plugin.
fn lines(server: &Server) -> String {
    read(server, "tenants/acme/plugins/keyvalue/logs")["lines"].to_string()
}

fn ok(values: &[Value]) -> Vec<Value> {
    values.iter().map(|value| json!({ "Ok": value })).collect()
}

#[test]
fn values_are_those_of_our_own_interface_and_of_the_operator() {
    let redis = Redis::start();
    let server = serving(&redis, "write");
    for store in STORES {
        let path = format!("/admin/v1/tenants/acme/stores/{store}/values");
        server.admin.put_json(&format!("{path}/by-operator"), &json!({ "text": "o" })).ok();
        let set = format!("op=set&bucket={store}&keys=own&value=w");
        assert_eq!(asked(&server, "acme", &set), "set");
        let steps = json!([
            ["get", "by-operator"],
            ["get", "own"],
            ["get", "none"],
            ["exists", "own"],
            ["exists", "none"],
            ["set", "k", "v"],
            ["set", "empty", ""],
            ["get", "empty"],
            ["exists", "empty"],
            ["increment", "n", "5"],
            ["increment", "n", "-7"],
            ["delete", "own"],
            ["delete", "own"],
            ["exists", "own"]
        ]);
        let expected = [
            json!("o"),
            json!("w"),
            json!(null),
            json!(true),
            json!(false),
            json!(null),
            json!(null),
            json!(""),
            json!(true),
            json!(5),
            json!(-2),
            json!(null),
            json!(null),
            json!(false),
        ];
        assert_eq!(outcomes(&server, store, steps), ok(&expected), "{store}");
        let get = format!("op=get-many&bucket={store}&keys=k,n,own,by-operator");
        assert_eq!(asked(&server, "acme", &get), "v,-2,none,o");
        let found = server.admin.get(&format!("{path}/k")).ok();
        assert_eq!(found["text"], "v", "{found}");
    }
    assert_eq!(redis.command(&[b"GET", b"redis:acme:k"]), "v");
    let deed = json!({ "bucket": "redis", "steps": [["get", "k"]] });
    let timing = sent(&server, &deed).header("server-timing").to_owned();
    assert!(timing.contains(", lookup;dur="), "{timing}");
}

#[test]
fn many_values_are_one_call() {
    let redis = Redis::start();
    let server = serving(&redis, "write");
    for store in STORES {
        let steps = json!([
            ["set-many", "a", "1", "b", "2", "a", "3"],
            ["get-many", "b", "none", "a", "b"],
            ["delete-many", "a", "none", "a"],
            ["get-many", "a", "b"],
            ["set-many"],
            ["delete-many"],
            ["get-many"]
        ]);
        let expected = [
            json!(null),
            json!([["b", "2"], null, ["a", "3"], ["b", "2"]]),
            json!(null),
            json!([null, ["b", "2"]]),
            json!(null),
            json!(null),
            json!([]),
        ];
        assert_eq!(outcomes(&server, store, steps), ok(&expected), "{store}");
    }
}

#[test]
fn keys_are_listed_page_by_page() {
    let redis = Redis::start();
    // Its characters are no pattern.
    let tables = format!(
        "{FILE}[stores.redis]\nredis = '{}'\nprefix = '[{{tenant}}]*:'\ntimeout_ms = 20000\n",
        redis.url()
    );
    let server = serving_with(&tables, json!({ "file": "write", "redis": "write" }));
    // Of others, and those that no call can name.
    redis.command(&[b"SET", b"[beta]*:k", b"v"]);
    redis.command(&[b"SET", b"acme:k", b"v"]);
    redis.command(&[b"SET", b"[acme]*:\xff", b"v"]);
    for store in STORES {
        assert_eq!(outcome(&server, store, json!(["list"])), json!({ "Ok": [[], 1] }), "{store}");
        let steps =
            json!([["set-numbered", "2500"], ["list"], ["delete-numbered", "2499"], ["list"]]);
        let outcomes = outcomes(&server, store, steps);
        let mut keys: Vec<_> = (0..2500).map(|at| format!("k{at}")).collect();
        keys.sort_unstable();
        assert_eq!(outcomes[1]["Ok"][0], json!(keys), "{store}");
        // Redis gives pages of about the number of keys that it is asked for.
        let pages = outcomes[1]["Ok"][1].as_u64().unwrap();
        assert!((2..10).contains(&pages), "{store}: {pages}");
        assert_eq!(outcomes[3]["Ok"][0], json!(["k2499"]), "{store}");
        assert_eq!(outcome(&server, store, json!(["exists", "k2499"])), json!({ "Ok": true }));
    }
    let wrong = error(&server, "redis", json!(["list-from", "0 MATCH *"]));
    assert_eq!(wrong, "store \"redis\": the cursor is not one that a page of its keys had");
    let after = outcome(&server, "file", json!(["list-from", "k2"]));
    assert_eq!(after, json!({ "Ok": ["k2499"] }));
    let long = error(&server, "file", json!(["list-from", "k".repeat(1025)]));
    assert_eq!(long, "a cursor of 1025 bytes is over the limit of 1024");
}

#[test]
fn a_value_is_swapped_if_it_is_the_known_one() {
    let redis = Redis::start();
    let server = serving(&redis, "write");
    for store in STORES {
        let steps = json!([
            ["swap", "k", "1"],
            ["swap", "k", "2"],
            ["race", "k", "mine", "3"],
            ["get", "k"],
            ["race", "k", "", "4"],
            ["get", "k"],
            ["race", "k", "4", "5"],
            ["get", "k"],
            ["delete", "k"],
            ["race", "k", "first", "6"]
        ]);
        let expected = [
            json!([null, "swapped"]),
            json!(["1", "swapped"]),
            json!(["mine", "swapped"]),
            json!("3"),
            json!([null, "swapped"]),
            json!("4"),
            json!("swapped"),
            json!("5"),
            json!(null),
            json!(["first", "swapped"]),
        ];
        assert_eq!(outcomes(&server, store, steps), ok(&expected), "{store}");
    }
    redis.command(&[b"RPUSH", b"redis:acme:list", b"x"]);
    let wrong = error(&server, "redis", json!(["swap", "list", "v"]));
    assert!(wrong.starts_with("store \"redis\": WRONGTYPE Operation"), "{wrong}");
}

#[test]
fn a_bucket_is_what_the_document_grants() {
    let redis = Redis::start();
    let server = serving(&redis, "read");
    for store in STORES {
        let path = format!("/admin/v1/tenants/acme/stores/{store}/values/k");
        server.admin.put_json(&path, &json!({ "text": "v" })).ok();
        let steps = json!([
            ["get", "k"],
            ["exists", "k"],
            ["list"],
            ["set", "k", "w"],
            ["delete", "k"],
            ["increment", "n", "1"],
            ["set-many", "k", "w"],
            ["delete-many", "k"],
            ["set-many"],
            ["swap", "k", "w"]
        ]);
        let outcomes = outcomes(&server, store, steps);
        assert_eq!(outcomes[..3], ok(&[json!("v"), json!(true), json!([["k"], 1])]), "{store}");
        for refused in &outcomes[3..9] {
            assert_eq!(*refused, json!({ "Err": "access-denied" }), "{store}");
        }
        assert_eq!(outcomes[9], json!({ "Ok": ["v", "access-denied"] }), "{store}");
        assert_eq!(outcome(&server, store, json!(["get", "k"])), json!({ "Ok": "v" }));
    }
    assert!(lines(&server).contains("lets it only read the store"), "{}", lines(&server));
    for unknown in ["secrets", "", "redis://127.0.0.1:6379"] {
        assert_eq!(error(&server, unknown, json!(["get", "k"])), "no-such-store", "{unknown}");
    }
    assert!(lines(&server).contains("document grants no store"), "{}", lines(&server));
    server.put_json("tenants/acme", &json!({ "open": true, "stores": { "elsewhere": "read" } }));
    assert_eq!(error(&server, "file", json!(["get", "k"])), "no-such-store");
    let unbound = error(&server, "elsewhere", json!(["get", "k"]));
    assert!(unbound.contains("[stores.elsewhere]"), "{unbound}");
}

#[test]
fn samples_change_nothing() {
    let redis = Redis::start();
    let server = serving(&redis, "write");
    for store in STORES {
        let path = format!("/admin/v1/tenants/acme/stores/{store}/values/k");
        server.admin.put_json(&path, &json!({ "text": "v" })).ok();
        let steps = json!([
            ["set", "k", "w"],
            ["delete", "k"],
            ["delete-many", "k"],
            ["set-many", "k", "w"],
            ["swap", "k", "w"],
            ["increment", "n", "2"],
            ["get", "k"]
        ]);
        let deed = json!({ "bucket": store, "steps": steps });
        let answer = ok(&[
            json!(null),
            json!(null),
            json!(null),
            json!(null),
            json!(["v", "swapped"]),
            json!(2),
            json!("v"),
        ]);
        let mut pipeline = pipeline();
        let request = json!({ "json": deed });
        pipeline["samples"] =
            json!([{ "name": store, "request": request, "expect": { "json": answer } }]);
        server.pipeline("acme", "keyvalue", &pipeline);
        assert_eq!(outcome(&server, store, json!(["get", "k"])), json!({ "Ok": "v" }), "{store}");
        assert_eq!(outcome(&server, store, json!(["exists", "n"])), json!({ "Ok": false }));
    }
}

#[test]
fn what_a_call_asks_for_is_bounded() {
    let redis = Redis::start();
    let server = serving(&redis, "write");
    let long_key = "k".repeat(1025);
    for store in STORES {
        let path = format!("op=get&bucket={store}&keys=k0");
        for (step, text) in [
            (json!(["get", ""]), "a key is empty"),
            (json!(["get", long_key]), "of 1025 bytes is over the limit of 1024"),
            (json!(["exists", long_key]), "of 1025 bytes is over the limit of 1024"),
            (json!(["swap", long_key, "v"]), "of 1025 bytes is over the limit of 1024"),
            (json!(["get-often", "k", "4097"]), "4097 keys are over the limit of 4096"),
            (json!(["set-numbered", "4097"]), "4097 keys are over the limit of 4096"),
            (json!(["delete-numbered", "4097"]), "4097 keys are over the limit of 4096"),
            (json!(["set-long", "k", "1048577"]), "1048577 bytes is over the limit of 1048576"),
        ] {
            let refused = error(&server, store, step.clone());
            assert!(refused.contains(text), "{store} {step}: {refused}");
        }
        assert_eq!(asked(&server, "acme", &path), "none", "{store}");
        let set = outcome(&server, store, json!(["set-long", "long", "1048576"]));
        assert_eq!(set, json!({ "Ok": null }), "{store}");
        // The guest gets a value as often as it names its key.
        let often = outcome(&server, store, json!(["get-often", "long", "16"]));
        assert_eq!(often, json!({ "Ok": 16 }), "{store}");
        let often = error(&server, store, json!(["get-often", "long", "17"]));
        assert!(often.contains("17825792 bytes: the limit for one call is 16777216"), "{often}");
        let answer = sent(&server, &json!({ "bucket": store, "steps": [["hold", "long"]] }));
        answer.refused(500, "plugin_out_of_memory", &["tensors, pictures and blobs"]);
    }
    redis.command(&[b"SET", b"redis:acme:large", &vec![7; (1 << 20) + 1]]);
    for step in [json!(["get", "large"]), json!(["swap", "large", "v"])] {
        let large = error(&server, "redis", step);
        assert!(large.starts_with("a value in the store is over the limit"), "{large}");
    }
}

#[test]
fn a_redis_that_is_gone_or_answers_garbage_is_an_error_of_the_call() {
    let steps = json!([
        ["get", "k"],
        ["set", "k", "v"],
        ["delete", "k"],
        ["exists", "k"],
        ["list"],
        ["increment", "n", "1"],
        ["set-many", "k", "v"],
        ["delete-many", "k"],
        ["swap", "k", "v"]
    ]);
    let mut redis = Redis::start();
    let fakes = [&b""[..], b":7\r\n", b"*2\r\n:7\r\n:7\r\n", b"$1\r\nx\r\n"];
    let fakes = fakes.map(FakeRedis::that_answers);
    let mut tables = format!("[stores.redis]\nredis = '{}'\ntimeout_ms = 1000\n", redis.url());
    let mut grants = json!({ "redis": "write" });
    for (at, fake) in fakes.iter().enumerate() {
        let url = &fake.url;
        tables += &format!("[stores.fake{at}]\nredis = '{url}'\ntimeout_ms = 1000\n");
        grants[format!("fake{at}")] = json!("write");
    }
    let mut server = serving_with(&tables, grants);
    server.digits("beta");
    assert_eq!(outcome(&server, "redis", json!(["get", "k"])), json!({ "Ok": null }));
    for at in 0..fakes.len() {
        let garbage = error(&server, &format!("fake{at}"), json!(["list"]));
        assert!(garbage.starts_with(&format!("store \"fake{at}\": ")), "{garbage}");
        assert!(!garbage.contains("127.0.0.1"), "{garbage}");
    }
    redis.kill();
    for outcome in outcomes(&server, "redis", steps) {
        let error = outcome["Err"].as_str().unwrap_or_else(|| panic!("{outcome}"));
        assert!(error.starts_with("store \"redis\": ") && !error.contains("127.0.0.1"), "{error}");
    }
    server.assert_reads("beta", 7);
    server.assert_alive();
    redis.restart();
    eventually("the store answers again", || {
        outcome(&server, "redis", json!(["get", "k"])) == json!({ "Ok": null })
    });
}

#[test]
fn guests_of_the_earlier_version_have_pages_and_sums_without_a_sign() {
    let redis = Redis::start();
    let server = serving(&redis, "write");
    for store in STORES {
        outcome(&server, store, json!(["set-numbered", "1500"]));
        let steps = json!([
            ["get", "k7"],
            ["set", "a", "v"],
            ["exists", "a"],
            ["delete", "a"],
            ["increment", "n", "5"],
            ["set-many", "b", "w"],
            ["get-many", "b", "none"],
            ["delete-many", "b", "none"],
            ["increment", "n", "9223372036854775808"],
            ["list"],
            ["list-from", "7"]
        ]);
        let deed = json!({ "bucket": store, "draft": true, "steps": steps });
        let outcomes = sent(&server, &deed).ok().as_array().unwrap().clone();
        let (none, many) = (json!(null), json!(["w", null]));
        let expected = [
            json!("v"),
            none.clone(),
            json!(true),
            none.clone(),
            json!(5),
            none.clone(),
            many,
            none,
        ];
        assert_eq!(outcomes[..8], ok(&expected), "{store}");
        let large = outcomes[8]["Err"].as_str().unwrap();
        assert_eq!(large, "delta is 9223372036854775808: must be at most 9223372036854775807");
        let keys = outcomes[9]["Ok"][0].as_array().unwrap();
        assert_eq!(keys.len(), 1501, "{store}");
        let lost = outcomes[10]["Err"].as_str().unwrap();
        assert!(lost.starts_with("the cursor 7 is not that of this bucket's last page"), "{lost}");
    }
}
