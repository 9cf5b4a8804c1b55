use super::*;

fn stores(file: &str) -> (Stores, Vec<String>) {
    let mut faults = Vec::new();
    let stores = read(&file.parse().unwrap(), &mut faults);
    (stores, faults.iter().map(ToString::to_string).collect())
}

fn urls(redis: &RedisConfig) -> Vec<String> {
    redis.urls.iter().map(ToString::to_string).collect()
}

#[test]
fn a_store_has_a_url_and_defaults() {
    assert!(stores("listen = '127.0.0.1:1'").0.is_empty());
    let (found, faults) = stores(
        "[stores.features]\nredis = 'redis://10.0.0.7/2'\n\
         [stores.sessions]\nredis = 'rediss://app@cache'\nprefix = 's:{tenant}:'\ntimeout_ms = 7",
    );
    assert_eq!(faults, [""; 0]);
    let features = &found["features"];
    let BucketKind::Redis(redis) = &features.kind else { panic!("{features:?}") };
    assert_eq!((urls(redis), redis.password.is_some()), (vec!["redis://10.0.0.7/2".into()], false));
    assert!(!redis.is_cluster && features.cache.is_none());
    assert_eq!(features.prefix.shared_part(), "features:");
    assert_eq!(features.timeout, Duration::from_millis(50));
    let sessions = &found["sessions"];
    assert_eq!(sessions.prefix.shared_part(), "s:");
    assert_eq!(sessions.timeout, Duration::from_millis(7));
}

#[test]
fn a_store_can_be_a_file_with_a_bound() {
    let (found, faults) = stores(
        "[stores.a]\nembedded = true\n\
         [stores.b]\nembedded = true\nmax_bytes = 1048576\nprefix = ''\ntimeout_ms = 7",
    );
    assert_eq!(faults, [""; 0]);
    let bound = |name: &str| match found[name].kind {
        BucketKind::Embedded { max_bytes } => max_bytes,
        BucketKind::Redis(_) => panic!("{found:?}"),
    };
    assert_eq!((bound("a"), bound("b")), (1 << 30, 1 << 20));
    assert_eq!(found["a"].timeout, Duration::from_secs(1));
    let (found, faults) = stores(
        "[stores.a]\nembedded = true\nredis = 'redis://host'\n\
         [stores.b]\nredis = 'redis://host'\nmax_bytes = 1048576\n\
         [stores.c]\nembedded = 'yes'\n[stores.d]\nembedded = true\nmax_bytes = 7",
    );
    assert!(found.is_empty());
    let texts = [
        "stores.a.redis cannot be given with embedded = true: the values are in a file",
        "stores.b.max_bytes is for a store with embedded = true",
        "stores.c.embedded must be true or false",
        "stores.d.max_bytes is 7: must be 1048576 to 1099511627776",
    ];
    assert_eq!(faults, texts);
}

#[test]
fn all_faults_are_named_at_once() {
    let (found, faults) = stores(
        "[stores.a]\nredis = 'http://host'\nprefix = '{tenant}'\ntimeout_ms = 0\nport = 1\n\
         password_file = '/none/of/these'\n[stores.b]\n[stores.c]\nredis = 'redis://:word@host'\n\
         [stores.'B d']\n[stores.e]\nredis = 7\n[stores.f]\nredis = 'http://:word@host'",
    );
    assert!(found.is_empty());
    for named in [
        "stores.a: unknown key \"port\"; known are redis, cluster, password_file, embedded, \
         max_bytes, prefix, timeout_ms, cache_ttl_ms, cache_bytes",
        "stores.a.redis must be a URL such as redis://10.0.0.7:6379/0",
        "stores.a.prefix is \"{tenant}\": {tenant} must be followed by",
        "stores.a.timeout_ms is 0: must be 1 to 60000",
        "stores.a.password_file is \"/none/of/these\": No such file",
        "stores.b.redis is missing",
        "stores.c.redis must have no password",
        "stores.B d must be a table",
        "stores.e.redis must be text",
        "stores.f.redis must be a URL",
    ] {
        assert!(faults.iter().any(|fault| fault.starts_with(named)), "{named}: {faults:?}");
    }
    assert_eq!(faults.len(), 10, "{faults:?}");
    assert!(!faults.concat().contains("word@"), "{faults:?}");
    assert_eq!(stores("stores = 1").1.len(), 1);
}

#[test]
fn stores_on_one_database_have_keys_of_their_own() {
    let of = |first: &str, second: &str| {
        stores(&format!(
            "[stores.a]\nredis = 'redis://host'\n{first}\n\
             [stores.b]\nredis = 'redis://app@host:6379/0'\n{second}"
        ))
        .1
    };
    assert_eq!(of("", ""), [""; 0]);
    assert_eq!(of("", "prefix = 'x:'"), [""; 0]);
    for (first, second) in [
        ("prefix = 'f:'", "prefix = 'f:'"),
        ("prefix = 'f:'", "prefix = 'f:{tenant}:'"),
        ("", "prefix = '{tenant}:'"),
        ("prefix = ''", ""),
    ] {
        let faults = of(first, second);
        let text = "stores.a.prefix and stores.b.prefix begin with ";
        let is_told = faults.len() == 1 && faults[0].starts_with(text);
        assert!(is_told && faults[0].contains("{bucket}:{tenant}:"), "{faults:?}");
    }
    let elsewhere = "[stores.a]\nredis = 'redis://host/0'\nprefix = 'f:'\n\
                     [stores.b]\nredis = 'redis://host/1'\nprefix = 'f:'";
    assert_eq!(stores(elsewhere).1, [""; 0]);
}

#[test]
fn a_password_is_the_content_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("password");
    std::fs::write(&path, "word\n").unwrap();
    let file = format!("[stores.a]\nredis = 'redis://host'\npassword_file = {path:?}");
    let (found, faults) = stores(&file);
    assert_eq!(faults, [""; 0]);
    let BucketKind::Redis(redis) = &found["a"].kind else { panic!("{found:?}") };
    assert_eq!(redis.password, Some(Password::of_file("word")));
    assert!(!format!("{found:?}").contains("word\""), "{found:?}");
}

#[test]
fn a_cluster_has_servers_that_are_reached_in_one_way() {
    let (found, faults) = stores(
        "[stores.a]\nredis = 'redis://one'\ncluster = true\n\
         [stores.b]\nredis = ['rediss://app@one', 'rediss://app@two:7']\ncluster = true",
    );
    assert_eq!(faults, [""; 0]);
    let redis = |name: &str| match &found[name].kind {
        BucketKind::Redis(redis) if redis.is_cluster => urls(redis),
        other => panic!("{other:?}"),
    };
    assert_eq!(redis("a"), ["redis://one"]);
    assert_eq!(redis("b"), ["rediss://app@one", "rediss://app@two:7"]);
    let (found, faults) = stores(
        "[stores.a]\nredis = ['redis://one']\n\
         [stores.b]\nredis = 'redis://one/1'\ncluster = true\n\
         [stores.c]\nredis = ['redis://one', 'rediss://two']\ncluster = true\n\
         [stores.d]\nredis = []\ncluster = true\n\
         [stores.e]\nredis = ['redis://one', 7]\ncluster = true\n\
         [stores.f]\nredis = 'redis://one'\ncluster = 'yes'\n\
         [stores.g]\nembedded = true\ncluster = true",
    );
    assert!(found.is_empty());
    let texts = [
        "stores.a.redis must be one URL; a list is for cluster = true",
        "stores.b.redis names a database: a cluster has only the database 0",
        "stores.c.redis has URLs with different users, or with and without TLS: all servers of a \
         cluster are reached in one way",
        "stores.d.redis must have 1 to 64 URLs",
        "stores.e.redis must be text",
        "stores.f.cluster must be true or false",
        "stores.g.cluster cannot be given with embedded = true: the values are in a file",
    ];
    assert_eq!(faults, texts);
    let shared = "[stores.a]\nredis = ['redis://one', 'redis://two']\ncluster = true\nprefix = ''\n\
                  [stores.b]\nredis = ['redis://two', 'redis://three']\ncluster = true";
    assert_eq!(stores(shared).1.len(), 1);
}

#[test]
fn a_cache_has_a_time_and_a_bound() {
    let (found, faults) = stores(
        "[stores.a]\nredis = 'redis://host'\ncache_ttl_ms = 500\n\
         [stores.b]\nredis = 'redis://host'\ncache_ttl_ms = 1\ncache_bytes = 1048576",
    );
    assert_eq!(faults, [""; 0]);
    let cache = |name: &str| found[name].cache.unwrap();
    let of = |ms, max_bytes| CacheConfig { ttl: Duration::from_millis(ms), max_bytes };
    assert_eq!((cache("a"), cache("b")), (of(500, 64 << 20), of(1, 1 << 20)));
    let (found, faults) = stores(
        "[stores.a]\nredis = 'redis://host'\ncache_ttl_ms = 0\n\
         [stores.b]\nredis = 'redis://host'\ncache_bytes = 1048576\n\
         [stores.c]\nredis = 'redis://host'\ncache_ttl_ms = 1\ncache_bytes = 7\n\
         [stores.d]\nembedded = true\ncache_ttl_ms = 1",
    );
    assert!(found.is_empty());
    let texts = [
        "stores.a.cache_ttl_ms is 0: must be 1 to 3600000",
        "stores.b.cache_bytes is for a store with cache_ttl_ms",
        "stores.c.cache_bytes is 7: must be 1048576 to 1099511627776",
        "stores.d.cache_ttl_ms cannot be given with embedded = true: the values are in a file",
    ];
    assert_eq!(faults, texts);
}
