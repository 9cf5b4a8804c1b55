//! Values of stores that a server keeps for a while.

use serde_json::json;

use crate::support::eventually::eventually;
use crate::support::redis::Redis;
use crate::support::server::Server;
use crate::support::stores::{asked, configured, granted};

const HOUR: &str = "cache_ttl_ms = 3600000";

fn server(redis: &Redis, more: &str) -> Server {
    let url = redis.url();
    let table = format!("[stores.features]\nredis = '{url}'\ntimeout_ms = 20000\n{more}\n");
    let server = configured(&table).start();
    granted(&server, "acme", json!({ "features": "write" }));
    server
}

fn get(server: &Server, tenant: &str, keys: &str) -> String {
    asked(server, tenant, &format!("op=get-many&bucket=features&keys={keys}"))
}

/// How often Redis was asked for a value.
fn reads(redis: &Redis) -> u64 {
    let stats = redis.command(&[b"INFO", b"commandstats"]);
    let calls =
        |line: &str| line.strip_prefix("cmdstat_getrange:calls=")?.split(',').next()?.parse().ok();
    stats.lines().find_map(calls).unwrap_or(0)
}

#[test]
fn a_kept_value_is_not_asked_for_again() {
    let redis = Redis::start();
    let server = server(&redis, &format!("prefix = 'f:'\n{HOUR}"));
    redis.command(&[b"SET", b"f:a", b"one"]);
    assert_eq!(get(&server, "acme", "a,b"), "one,none");
    assert_eq!(reads(&redis), 2);
    redis.command(&[b"SET", b"f:a", b"two"]);
    assert_eq!(get(&server, "acme", "b,a,a"), "none,one,one");
    assert_eq!(reads(&redis), 2);
    // Only what is missing is asked for.
    assert_eq!(get(&server, "acme", "c,a"), "none,one");
    assert_eq!(reads(&redis), 3);
    // The operator sees what Redis has.
    let kept = server.admin.get("/admin/v1/tenants/acme/stores/features/values/a").text();
    assert!(kept.contains("two"), "{kept}");
    assert!(server.status()["memory"]["store_caches_bytes"].as_u64() > Some(0));
}

#[test]
fn changes_of_this_server_are_seen_at_once() {
    let redis = Redis::start();
    let server = server(&redis, HOUR);
    let increment = || asked(&server, "acme", "op=increment&bucket=features&keys=n&delta=5");
    for (value, sum) in [("1", "6"), ("7", "12")] {
        let set = format!("op=set&bucket=features&keys=n&value={value}");
        assert_eq!(asked(&server, "acme", &set), "set");
        assert_eq!(get(&server, "acme", "n"), value);
        assert_eq!(increment(), sum);
        assert_eq!(get(&server, "acme", "n"), sum);
    }
    let path = "/admin/v1/tenants/acme/stores/features/values/n";
    server.admin.put_json(path, &json!({ "text": "9" })).ok();
    assert_eq!(get(&server, "acme", "n"), "9");
    server.admin.delete(path).ok();
    assert_eq!(get(&server, "acme", "n"), "none");
}

#[test]
fn tenants_find_their_own_values() {
    let redis = Redis::start();
    let server = server(&redis, HOUR);
    granted(&server, "beta", json!({ "features": "write" }));
    redis.command(&[b"SET", b"features:acme:k", b"of-acme"]);
    assert_eq!(get(&server, "acme", "k"), "of-acme");
    assert_eq!(get(&server, "beta", "k"), "none");
    redis.command(&[b"SET", b"features:beta:k", b"of-beta"]);
    assert_eq!(get(&server, "acme", "k"), "of-acme");
    assert_eq!(get(&server, "beta", "k"), "none", "that it is missing is kept, too");
}

#[test]
fn a_value_is_kept_for_its_time() {
    let redis = Redis::start();
    let server = server(&redis, "prefix = 'f:'\ncache_ttl_ms = 50");
    redis.command(&[b"SET", b"f:a", b"one"]);
    assert_eq!(get(&server, "acme", "a,b"), "one,none");
    redis.command(&[b"SET", b"f:a", b"two"]);
    redis.command(&[b"SET", b"f:b", b"new"]);
    eventually("the change of another program is seen", || {
        get(&server, "acme", "a,b") == "two,new"
    });
}

#[test]
fn a_cache_has_a_bound() {
    const VALUE: usize = 256 << 10;
    let redis = Redis::start();
    let more = format!("prefix = 'f:'\n{HOUR}\ncache_bytes = 1048576");
    let server = server(&redis, &more);
    for key in 0..8 {
        redis.command(&[b"SET", format!("f:{key}").as_bytes(), &vec![b'x'; VALUE]]);
        assert_eq!(get(&server, "acme", &key.to_string()).len(), VALUE);
        let held = server.status()["memory"]["store_caches_bytes"].as_u64().unwrap();
        assert!(held > 0 && held <= 1 << 20, "{held}");
    }
    // Those that were used last are kept.
    let before = reads(&redis);
    for key in [7, 6] {
        get(&server, "acme", &key.to_string());
    }
    assert_eq!(reads(&redis), before);
    get(&server, "acme", "0");
    assert_eq!(reads(&redis), before + 1);
    let metrics = server.admin.get("/metrics").text();
    assert!(metrics.contains("gristmill_memory_usage_bytes{part=\"store_caches\"} "), "{metrics}");
}
