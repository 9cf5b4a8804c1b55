//! Stores in a Redis Cluster: three servers, one of which may die, and slots that move.

use serde_json::json;

use crate::support::redis::Redis;
use crate::support::redis_cluster::RedisCluster;
use crate::support::server::Server;
use crate::support::stores::{asked, configured, granted};

/// A server with the store `features`, whose keys begin with `f:`, on the last servers of a
/// cluster: it finds the others itself.
fn server(cluster: &RedisCluster, seeds: usize) -> Server {
    let server = configured(&format!(
        "[stores.features]\nredis = {}\ncluster = true\nprefix = 'f:'\ntimeout_ms = 20000\n",
        cluster.urls(seeds)
    ))
    .start();
    granted(&server, "acme", json!({ "features": "write" }));
    server
}

fn set(server: &Server, key: &str, value: &str) {
    let query = format!("op=set&bucket=features&keys={key}&value={value}");
    assert_eq!(asked(server, "acme", &query), "set");
}

fn get(server: &Server, keys: &str) -> String {
    asked(server, "acme", &format!("op=get-many&bucket=features&keys={keys}"))
}

#[test]
fn keys_are_on_all_servers_of_a_cluster() {
    let cluster = RedisCluster::start();
    let server = server(&cluster, 1);
    let keys = [0, 1, 2].map(|at| cluster.key_on(at, "f:"));
    for (at, key) in keys.iter().enumerate() {
        set(&server, key, &format!("of-{at}"));
        let stored = format!("f:{key}");
        assert_eq!(cluster.servers[at].command(&[b"GET", stored.as_bytes()]), format!("of-{at}"));
    }
    let [first, second, third] = &keys;
    let wanted = format!("{third},none,{first},{second},{third},other");
    assert_eq!(get(&server, &wanted), "of-2,none,of-0,of-1,of-2,none");
    let increment = |key: &str, delta: i64| {
        asked(&server, "acme", &format!("op=increment&bucket=features&keys={key}&delta={delta}"))
    };
    for at in 0..3 {
        let key = cluster.key_on(at, "f:n-").replace('k', "n-k");
        assert_eq!([increment(&key, 5), increment(&key, -7)], ["5", "-2"]);
    }
    let wrong = increment(first, 1);
    assert!(wrong.starts_with("invalid-argument: store \"features\": ERR value is not"), "{wrong}");
    cluster.servers[1].command(&[b"DEL", format!("f:{second}").as_bytes()]);
    cluster.servers[1].command(&[b"RPUSH", format!("f:{second}").as_bytes(), b"x"]);
    let wrong = get(&server, &wanted);
    assert!(wrong.starts_with("invalid-argument: store \"features\": WRONGTYPE Op"), "{wrong}");
    // Rows, as `gather` gets them: one command for each key.
    for (at, key) in [(0, first), (2, third)] {
        let row: Vec<u8> = [at as f32, 0.5].iter().flat_map(|value| value.to_le_bytes()).collect();
        cluster.servers[at].command(&[b"SET", format!("f:{key}").as_bytes(), &row]);
    }
    let query = format!("op=gather&bucket=features&keys={third},none,{first}&width=2");
    assert_eq!(asked(&server, "acme", &query), "[3, 2] [2.0, 0.5, -1.0, -1.0, 0.0, 0.5]");
}

#[test]
fn keys_are_found_where_a_slot_moves() {
    let cluster = RedisCluster::start();
    let server = server(&cluster, 3);
    let key = cluster.key_on(0, "f:");
    let (stored, slot) = (format!("f:{key}"), cluster.slot(&format!("f:{key}")));
    let other = cluster.key_on(1, "f:");
    assert_eq!(get(&server, &format!("{key},{other}")), "none,none");
    cluster.begin_moving(slot, 0, 1);
    // The first server does not have the key, so it says to ask the second one.
    set(&server, &key, "moving");
    assert_eq!(cluster.servers[0].command(&[b"DBSIZE"]), "0");
    assert_eq!(get(&server, &format!("{key},{other}")), "moving,none");
    assert!(cluster.errors(0, "ASK") > 0);
    assert_eq!(cluster.errors(0, "MOVED"), 0);
    cluster.end_moving(slot, 0, 1);
    assert_eq!(get(&server, &format!("{key},{other}")), "moving,none");
    let moved = cluster.errors(0, "MOVED");
    assert!(moved > 0);
    // The new place is known from then on.
    set(&server, &key, "moved");
    assert_eq!(get(&server, &key), "moved");
    assert_eq!(cluster.servers[1].command(&[b"GET", stored.as_bytes()]), "moved");
    assert_eq!(cluster.errors(0, "MOVED"), moved);
}

#[test]
fn a_server_that_dies_takes_its_own_keys_alone() {
    let mut cluster = RedisCluster::start();
    let server = server(&cluster, 3);
    let keys = [0, 1, 2].map(|at| cluster.key_on(at, "f:"));
    keys.iter().for_each(|key| set(&server, key, "v"));
    // The one of the first seed.
    cluster.servers[2].kill();
    for _ in 0..8 {
        let gone = get(&server, &keys[2]);
        assert!(gone.starts_with("unavailable: store \"features\": "), "{gone}");
        assert!(!gone.contains("127.0.0.1"), "{gone}");
        assert_eq!(get(&server, &format!("{},{}", keys[1], keys[0])), "v,v");
    }
    let mixed = get(&server, &keys.join(","));
    assert!(mixed.starts_with("unavailable: store \"features\": "), "{mixed}");
    set(&server, &keys[0], "w");
    assert_eq!(get(&server, &keys[0]), "w");
    server.logs("a store does not answer");
    // A server that knows only the dead one and a living one at the start.
    let other = self::server(&cluster, 2);
    assert_eq!(get(&other, &format!("{},{}", keys[0], keys[1])), "w,v");
}

#[test]
fn a_server_that_belongs_to_no_cluster_is_told() {
    let redis = Redis::start();
    let url = redis.url();
    let table = format!("[stores.features]\nredis = '{url}'\ncluster = true\ntimeout_ms = 20000\n");
    let server = configured(&table).start();
    granted(&server, "acme", json!({ "features": "read" }));
    let wrong = get(&server, "a");
    assert!(wrong.contains("ERR This instance has cluster support disabled"), "{wrong}");
}
