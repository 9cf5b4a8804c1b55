//! Stores of values by key: what plugins get from a real Redis, and what they are told when it is
//! dead, hangs or answers garbage.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::admin_api::read;
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::redis::{FakeRedis, Redis};
use crate::support::stores::{asked, configured, granted};
use crate::support::tls::Authority;

/// The table of a store that waits long enough for any machine.
fn bound(name: &str, redis: &Redis, more: &str) -> String {
    format!("[stores.{name}]\nredis = '{}'\ntimeout_ms = 20000\n{more}\n", redis.url())
}

fn row(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn plugins_read_and_change_values() {
    let redis = Redis::start();
    let server = configured(&bound("features", &redis, "prefix = 'f:'")).start();
    granted(&server, "acme", json!({ "features": "write" }));
    redis.command(&[b"SET", b"f:a", b"one"]);
    assert_eq!(asked(&server, "acme", "op=get&bucket=features&keys=a"), "one");
    assert_eq!(asked(&server, "acme", "op=get&bucket=features&keys=b"), "none");
    assert_eq!(asked(&server, "acme", "op=get-many&bucket=features&keys=b,a,a"), "none,one,one");
    redis.command(&[b"SET", b"f:empty", b""]);
    assert_eq!(asked(&server, "acme", "op=get-many&bucket=features&keys=empty,b"), ",none");
    redis.command(&[b"RPUSH", b"f:list", b"x"]);
    let wrong = asked(&server, "acme", "op=get-many&bucket=features&keys=a,list");
    assert!(wrong.starts_with("invalid-argument: store \"features\": WRONGTYPE Op"), "{wrong}");

    assert_eq!(asked(&server, "acme", "op=set&bucket=features&keys=k&value=v"), "set");
    assert_eq!(redis.command(&[b"GET", b"f:k"]), "v");
    assert_eq!(redis.command(&[b"PTTL", b"f:k"]), "-1");
    let query = "op=set&bucket=features&keys=k&value=v&ttl=90000";
    assert_eq!(asked(&server, "acme", query), "set");
    let left: u64 = redis.command(&[b"PTTL", b"f:k"]).parse().unwrap();
    assert!((1..=90_000).contains(&left), "{left}");

    assert_eq!(asked(&server, "acme", "op=increment&bucket=features&keys=n&delta=5"), "5");
    assert_eq!(asked(&server, "acme", "op=increment&bucket=features&keys=n&delta=-7"), "-2");
    let wrong = asked(&server, "acme", "op=increment&bucket=features&keys=k&delta=1");
    assert!(wrong.starts_with("invalid-argument: store \"features\": ERR value is not"), "{wrong}");

    // A connection that the server has closed costs neither a read nor a change anything.
    let kill = || redis.command(&[b"CLIENT", b"KILL", b"TYPE", b"normal"]);
    kill();
    assert_eq!(asked(&server, "acme", "op=get&bucket=features&keys=a"), "one");
    kill();
    assert_eq!(asked(&server, "acme", "op=set&bucket=features&keys=k&value=w"), "set");
    kill();
    assert_eq!(asked(&server, "acme", "op=increment&bucket=features&keys=n&delta=1"), "-1");
}

#[test]
fn rows_are_gathered_on_the_host() {
    let redis = Redis::start();
    let server = configured(&bound("features", &redis, "prefix = ''")).start();
    granted(&server, "acme", json!({ "features": "read" }));
    redis.command(&[b"SET", b"a", &row(&[1.0, 2.5])]);
    redis.command(&[b"SET", b"b", &row(&[3.0, 4.0])]);
    redis.command(&[b"SET", b"short", &row(&[3.0])]);
    let rows = asked(&server, "acme", "op=gather&bucket=features&keys=b,none,a&width=2");
    assert_eq!(rows, "[3, 2] [3.0, 4.0, -1.0, -1.0, 1.0, 2.5]");
    let wrong = asked(&server, "acme", "op=gather&bucket=features&keys=a,short&width=2");
    let text = "invalid-argument: the value of \"short\" has 4 bytes, but 2 float32 have 8";
    assert_eq!(wrong, text);
    let wrong = asked(&server, "acme", "op=gather&bucket=features&keys=a&width=0");
    assert_eq!(wrong, "invalid-argument: width is 0: must be at least 1");
    // Two rows of 8 MiB and 4 bytes.
    let wrong = asked(&server, "acme", "op=gather&bucket=features&keys=a,b&width=2097153");
    let text = "invalid-argument: 2 different keys with rows of 8388612 bytes have 16777224 bytes";
    assert!(wrong.starts_with(text), "{wrong}");
}

#[test]
fn the_wait_for_a_store_is_in_the_times() {
    let redis = Redis::start();
    let server = configured(&bound("features", &redis, "")).start();
    granted(&server, "acme", json!({ "features": "read" }));
    let timing = |query: &str| {
        let answer = server.data.post(&format!("/v1/acme/infer/hostile{query}"), b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.header("server-timing").to_owned()
    };
    let with = timing("?do=store&op=get&bucket=features&keys=a");
    assert!(with.contains(", lookup;dur="), "{with}");
    let without = timing("");
    assert!(!without.contains("lookup"), "{without}");
}

#[test]
fn tenants_have_keys_of_their_own() {
    let redis = Redis::start();
    let server = configured(&bound("sessions", &redis, "")).start();
    for tenant in ["acme", "beta"] {
        granted(&server, tenant, json!({ "sessions": "write" }));
        let query = format!("op=set&bucket=sessions&keys=k&value=of-{tenant}");
        assert_eq!(asked(&server, tenant, &query), "set");
    }
    assert_eq!(asked(&server, "acme", "op=get&bucket=sessions&keys=k"), "of-acme");
    assert_eq!(asked(&server, "beta", "op=get&bucket=sessions&keys=k"), "of-beta");
    assert_eq!(redis.command(&[b"GET", b"sessions:acme:k"]), "of-acme");
    // No key of a plugin gets out of its tenant's.
    assert_eq!(asked(&server, "acme", "op=get&bucket=sessions&keys=beta:k"), "none");
    // Each tenant has a connection, and this command the third one.
    eventually("there are two connections", || {
        redis.command(&[b"CLIENT", b"LIST"]).lines().count() == 3
    });
}

#[test]
fn a_tenant_has_what_its_document_grants() {
    let redis = Redis::start();
    let tables = bound("features", &redis, "") + &bound("sessions", &redis, "");
    let server = configured(&tables).start();
    granted(&server, "acme", json!({ "features": "read", "elsewhere": "read" }));
    let document = read(&server, "tenants/acme");
    assert_eq!(document["stores"], json!({ "features": "read", "elsewhere": "read" }));

    let text = |bucket: &str| {
        let answer = asked(&server, "acme", &format!("op=get&bucket={bucket}&keys=k"));
        answer.replace(bucket, "..")
    };
    let not_granted = text("sessions");
    assert!(not_granted.starts_with("not-granted: the tenant's document grants no store"));
    assert_eq!(not_granted, text("no-such-store"), "nobody learns which stores there are");
    let unbound = asked(&server, "acme", "op=get&bucket=elsewhere&keys=k");
    assert!(unbound.starts_with("unavailable: ") && unbound.contains("[stores.elsewhere]"));

    let set = "op=set&bucket=features&keys=k&value=v";
    let read_only = asked(&server, "acme", set);
    assert!(read_only.starts_with("read-only: ") && read_only.contains("\"write\""));
    granted(&server, "acme", json!({ "features": "write" }));
    assert_eq!(asked(&server, "acme", set), "set");
    granted(&server, "acme", json!({}));
    assert!(asked(&server, "acme", set).starts_with("not-granted: "));
    granted(&server, "acme", Value::Null);
    let wrong = json!({ "open": true, "stores": { "features": "all" } });
    let refused = server.admin.put_json("/admin/v1/tenants/acme", &wrong);
    let named = ["stores.features is \"all\": must be one of read, write"];
    refused.refused(422, "unprocessable", &named);
}

#[test]
fn samples_and_shadows_change_nothing() {
    const PIPELINE: &str = "tenants/acme/pipelines/hostile";
    const QUERY: &str = "op=increment&bucket=features&keys=n&delta=5";
    let redis = Redis::start();
    let server = configured(&bound("features", &redis, "prefix = 'f:'")).start();
    granted(&server, "acme", json!({ "features": "write" }));
    server.plugin("acme", "other", "hostile");
    redis.command(&[b"SET", b"f:n", b"2"]);
    let mut pipeline = processor("hostile", json!({}));
    let request = json!({ "query": format!("do=store&{QUERY}") });
    pipeline["samples"] = json!([{ "name": "sum", "request": request, "expect": { "text": "7" } }]);
    server.put_json(PIPELINE, &pipeline);
    assert_eq!(redis.command(&[b"GET", b"f:n"]), "2");

    pipeline["candidate"] = json!({ "pre": "other", "post": "other", "shadow_percent": 100 });
    server.put_json(PIPELINE, &pipeline);
    let mut sum = 2;
    eventually("a shadow was compared", || {
        sum += 5;
        assert_eq!(asked(&server, "acme", QUERY), sum.to_string());
        let report = read(&server, &format!("{PIPELINE}/candidate"));
        report["shadow"]["compared"].as_u64().unwrap() > 0
    });
    assert_eq!(redis.command(&[b"GET", b"f:n"]), sum.to_string());
}

#[test]
fn a_store_that_dies_is_an_error_until_it_is_back() {
    let mut redis = Redis::start();
    let table = format!("[stores.features]\nredis = '{}'\ntimeout_ms = 1000\n", redis.url());
    let server = configured(&table).start();
    granted(&server, "acme", json!({ "features": "read" }));
    server.digits("beta");
    let get = "op=get&bucket=features&keys=a";
    assert_eq!(asked(&server, "acme", get), "none");
    thread::scope(|scope| {
        let askers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (mut answers, began) = (Vec::new(), Instant::now());
                    while began.elapsed() < Duration::from_secs(3) {
                        let asked_at = Instant::now();
                        answers.push(asked(&server, "acme", get));
                        assert!(asked_at.elapsed() < Duration::from_secs(20));
                    }
                    answers
                })
            })
            .collect();
        redis.kill();
        for asker in askers {
            let answers = asker.join().unwrap();
            let is_expected =
                |answer: &String| answer == "none" || answer.starts_with("unavailable: ");
            assert!(answers.iter().all(is_expected), "{answers:?}");
            assert!(answers.last().unwrap().starts_with("unavailable: "), "{answers:?}");
        }
    });
    server.assert_reads("beta", 7);
    server.logs("a store does not answer");
    redis.restart();
    eventually("the store answers again", || asked(&server, "acme", get) == "none");
    server.logs("a store answers again");
}

#[test]
fn a_store_that_hangs_holds_up_nobody_else() {
    let redis = Redis::start();
    let table = format!("[stores.features]\nredis = '{}'\ntimeout_ms = 300\n", redis.url());
    let server = configured(&table).start();
    granted(&server, "acme", json!({ "features": "read" }));
    server.digits("beta");
    let get = "op=get&bucket=features&keys=a";
    eventually("the store answers", || asked(&server, "acme", get) == "none");
    redis.pause();
    let began = Instant::now();
    let late = asked(&server, "acme", get);
    let text = "unavailable: store \"features\": no answer within 300 ms (timeout_ms of \
                [stores.features] in gristmill.toml)";
    assert_eq!(late, text);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(asked(&server, "acme", get).starts_with("unavailable: ")));
        }
        (0..10).for_each(|digit| server.assert_reads("beta", digit));
    });
    // After failures in a row, calls fail at once.
    eventually("calls fail at once", || {
        asked(&server, "acme", get).contains("it did not answer before")
    });
    redis.go_on();
    eventually("the store answers again", || asked(&server, "acme", get) == "none");
}

#[test]
fn a_store_that_hangs_leaves_the_tenants_other_stores_alone() {
    let redis = Redis::start();
    // More would have to come.
    let fake = FakeRedis::that_answers(b"*1000000000\r\n");
    let hangs = format!("[stores.hangs]\nredis = '{}'\ntimeout_ms = 100\n", fake.url);
    let server = configured(&(bound("features", &redis, "") + &hangs)).start();
    granted(&server, "acme", json!({ "features": "read", "hangs": "read" }));
    // Each counts for 16 MiB. Together they count for more than the tenant's calls may take.
    let keys: Vec<_> = (0..16).map(|key| key.to_string()).collect();
    let many = format!("op=get-many&bucket=hangs&keys={}", keys.join(","));
    for _ in 0..5 {
        let late = asked(&server, "acme", &many);
        assert!(late.starts_with("unavailable: store \"hangs\": no answer within"), "{late}");
    }
    assert_eq!(asked(&server, "acme", "op=get&bucket=features&keys=a"), "none");
}

/// What a server answers that looks like Redis, to a call with two keys, and what the plugin gets.
struct Garbage {
    op: &'static str,
    answer: &'static [u8],
    /// The beginning of its text, without the store's name.
    text: &'static str,
}

const BROKEN: &str = "unavailable: store ..: the connection failed: ";
const NOT_AN_ANSWER: &str = "unavailable: store ..: its answer is not one to the command";
const WRONG_TYPE: &str = "invalid-argument: store ..: WRONGTYPE Operation against a key";
const GATHER: &str = "gather&width=1";
const GET: &str = "get-many";

const fn gets(op: &'static str, answer: &'static [u8], text: &'static str) -> Garbage {
    Garbage { op, answer, text }
}

#[test]
fn garbage_is_an_error_of_its_call() {
    const ALL: [Garbage; 16] = [
        gets(GATHER, b"", BROKEN),
        gets(GATHER, b"hello\r\n", BROKEN),
        gets(GATHER, b"\xff\xfe\xfd\r\n", BROKEN),
        gets(GATHER, b":7\r\n:7\r\n", NOT_AN_ANSWER),
        gets(GATHER, b"$4\r\nabcd\r\n:7\r\n", NOT_AN_ANSWER),
        gets(GATHER, b"*1\r\n$1\r\nx\r\n*1\r\n$1\r\nx\r\n", NOT_AN_ANSWER),
        gets(GATHER, b"$4\r\nabcd\r\n-WRONGTYPE Operation against a key\r\n", WRONG_TYPE),
        gets(GATHER, b"$4\r\nabcd\r\n-ERR no\r\n", "unavailable: store ..: ERR no"),
        gets(GATHER, b"-OOM no\r\n$4\r\nabcd\r\n", "unavailable: store ..: OOM no"),
        // Of these more would have to come.
        gets(GATHER, b"$4\r\nabcd\r\n", "unavailable: store ..: no answer within 2000 ms"),
        gets(GATHER, b"$99999999999999\r\nx", "unavailable: store ..: "),
        gets(GATHER, b"*1000000000\r\n", "unavailable: store ..: "),
        gets(GET, b":7\r\n:7\r\n:7\r\n:7\r\n:7\r\n:7\r\n", NOT_AN_ANSWER),
        gets(
            GET,
            b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n\
              *4\r\n:0\r\n$1\r\nx\r\n:0\r\n$0\r\n\r\n",
            NOT_AN_ANSWER,
        ),
        gets(
            GET,
            b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n\
              *4\r\n:1\r\n$1\r\nx\r\n:1\r\n-WRONGTYPE Operation against a key\r\n",
            WRONG_TYPE,
        ),
        gets(
            GET,
            b"+OK\r\n+QUEUED\r\n-ERR unknown command\r\n+QUEUED\r\n+QUEUED\r\n\
              -EXECABORT Transaction discarded\r\n",
            "unavailable: store ..: ERR unknown command",
        ),
    ];
    let servers = ALL.map(|garbage| FakeRedis::that_answers(garbage.answer));
    let tables = servers.iter().enumerate().map(|(at, FakeRedis { url, .. })| {
        format!("[stores.g{at}]\nredis = '{url}'\ntimeout_ms = 2000\n")
    });
    let mut server = configured(&tables.collect::<String>()).start();
    let grants: Value = (0..ALL.len()).map(|at| (format!("g{at}"), json!("read"))).collect();
    granted(&server, "acme", grants);
    server.digits("beta");
    for (at, (Garbage { op, text, .. }, fake)) in ALL.iter().zip(&servers).enumerate() {
        let answer = asked(&server, "acme", &format!("op={op}&bucket=g{at}&keys=a,b"));
        let without_name = answer.replace(&format!("\"g{at}\""), "..");
        assert!(without_name.starts_with(text), "{at}: {answer}");
        assert!(!answer.contains("127.0.0.1"), "{at}: {answer}");
        assert_eq!(fake.sent(), 1, "{at}: {answer}");
    }
    server.assert_reads("beta", 3);
    server.assert_alive();
}

#[test]
fn stores_on_one_database_must_have_keys_of_their_own() {
    let tables = "[stores.a]\nredis = 'redis://127.0.0.1'\nprefix = '{tenant}:'\n\
                  [stores.b]\nredis = 'redis://127.0.0.1:6379/0'\n";
    let log = configured(tables).start_refused();
    assert!(log.contains("stores.a.prefix and stores.b.prefix begin with"), "{log}");
}

#[test]
fn a_connection_over_tls_needs_an_authority_that_the_system_trusts() {
    let authority = Authority::new();
    // 1.0 as a value.
    let fake = FakeRedis::over_tls(b"$4\r\n\x00\x00\x80\x3f\r\n", &authority);
    let table = format!("[stores.s]\nredis = '{}'\ntimeout_ms = 20000\n", fake.url);
    let gather = "op=gather&bucket=s&keys=a&width=1";
    let others = Authority::new();
    for (trusted, expected) in [
        (&authority, "[1, 1] [1.0]"),
        (&others, "unavailable: store \"s\": the connection failed: "),
    ] {
        let setup = configured(&table).variable("SSL_CERT_FILE", trusted.ca().to_str().unwrap());
        let server = setup.start();
        granted(&server, "acme", json!({ "s": "read" }));
        let rows = asked(&server, "acme", gather);
        assert!(rows.starts_with(expected), "{rows}");
    }
    let nothing = tempfile::tempdir().unwrap();
    let setup = configured(&table)
        .variable("SSL_CERT_FILE", "/dev/null")
        .variable("SSL_CERT_DIR", nothing.path().to_str().unwrap());
    let log = setup.start_refused();
    assert!(log.contains("stores.s.redis is a URL with rediss://, but"), "{log}");
}

#[test]
fn a_password_is_in_a_file_and_nowhere_else() {
    const WORD: &str = "the-password-of-redis";
    let redis = Redis::start_with(&["--requirepass", WORD]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    fs::write(&file, format!("{WORD}\n")).unwrap();
    let with = format!("password_file = {:?}", file.to_str().unwrap());
    let wrong = directory.path().join("wrong");
    fs::write(&wrong, "another").unwrap();
    let wrong = format!("password_file = {:?}", wrong.to_str().unwrap());
    let tables = bound("with", &redis, &with)
        + &bound("without", &redis, "")
        + &bound("wrong", &redis, &wrong);
    let server = configured(&tables).start();
    granted(&server, "acme", json!({ "with": "write", "without": "read", "wrong": "read" }));
    assert_eq!(asked(&server, "acme", "op=set&bucket=with&keys=k&value=v"), "set");
    let refused = asked(&server, "acme", "op=get&bucket=without&keys=k");
    assert!(refused.starts_with("unavailable: ") && refused.contains("NOAUTH"), "{refused}");
    let failed = asked(&server, "acme", "op=get&bucket=wrong&keys=k");
    assert!(failed.contains("password_file is wrong ([stores.wrong] in gristmill"), "{failed}");
    assert!(!server.status().to_string().contains(WORD));
    assert!(!server.log().contains(WORD));

    let in_url = format!("[stores.a]\nredis = 'redis://:{WORD}@127.0.0.1'\n");
    let log = configured(&in_url).start_refused();
    assert!(log.contains("stores.a.redis must have no password") && !log.contains(WORD), "{log}");
}

#[test]
fn a_guest_that_holds_values_reaches_its_limit() {
    let redis = Redis::start();
    let server = configured(&bound("features", &redis, "prefix = ''")).start();
    granted(&server, "acme", json!({ "features": "read" }));
    redis.command(&[b"SET", b"held", &vec![7; 1 << 20]]);
    let path = "/v1/acme/infer/patient?do=store-hold&bucket=features";
    let answer = server.data.post(path, b"");
    answer.refused(500, "plugin_out_of_memory", &["tensors, pictures and blobs"]);
    redis.command(&[b"SET", b"large", &vec![7; (1 << 20) + 1]]);
    let large = asked(&server, "acme", "op=get&bucket=features&keys=large");
    assert!(large.starts_with("invalid-argument: a value in the store is over"), "{large}");
}
