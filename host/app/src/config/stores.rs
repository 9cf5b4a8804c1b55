//! The stores that plugins may use: the tables `[stores.NAME]` of the file.
//!
//! A flag has no place for a map, so they are in the file alone. All faults are named at once, with
//! the key and what it must be. A password is in a file of its own, and no fault repeats it, nor a
//! URL, in which one may stand.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::slice;
use std::time::Duration;

use gristmill_core::Name;
use gristmill_outbound::{
    BucketConfig, BucketKind, CacheConfig, Password, Prefix, RedisConfig, RedisUrl,
};
use toml::{Table, Value};

use super::fault::Fault;

/// The key of the file.
pub(crate) const KEY: &str = "stores";

/// The keys of a store.
const KEYS: [&str; 9] = [
    "redis",
    "cluster",
    "password_file",
    "embedded",
    "max_bytes",
    "prefix",
    "timeout_ms",
    "cache_ttl_ms",
    "cache_bytes",
];

/// Those that are not for a store in a file.
const REDIS_KEYS: [&str; 5] = ["redis", "cluster", "password_file", "cache_ttl_ms", "cache_bytes"];

/// The time for a call, in milliseconds. A disk can take longer than a network.
const REDIS_TIMEOUT_MS: u64 = 50;
const EMBEDDED_TIMEOUT_MS: u64 = 1000;
const TIMEOUT_MS_MAX: u64 = 60_000;

/// Maximum bytes of a tenant's values in an embedded store.
const MAX_BYTES: u64 = 1 << 30;
const MAX_BYTES_RANGE: RangeInclusive<u64> = 1 << 20..=1 << 40;

/// Maximum servers of a cluster that the configuration names.
const SEEDS_MAX: usize = 64;

/// How long a server keeps a value, and maximum bytes of all values of a store that it keeps.
const CACHE_TTL_MS_MAX: u64 = 3_600_000;
const CACHE_BYTES: u64 = 64 << 20;
const CACHE_BYTES_RANGE: RangeInclusive<u64> = 1 << 20..=1 << 40;

/// Stores by their names.
pub(crate) type Stores = BTreeMap<Name, BucketConfig>;

/// The stores of the file. Those with a fault are left out.
pub(crate) fn read(file: &Table, faults: &mut Vec<Fault>) -> Stores {
    let mut stores = Stores::new();
    let tables = match file.get(KEY) {
        None => return stores,
        Some(Value::Table(tables)) => tables,
        Some(_) => {
            let text = "stores must be tables, one for each store: [stores.features]";
            faults.push(Fault::Store(text.to_owned()));
            return stores;
        }
    };
    for (name, value) in tables {
        let (Ok(parsed), Value::Table(table)) = (name.parse::<Name>(), value) else {
            faults.push(Fault::Store(format!(
                "stores.{name} must be a table with the key redis or embedded, and its name 1 to 64 of a-z, 0-9, \
                 '-', '_' and '.', beginning with a letter or digit"
            )));
            continue;
        };
        let mut reader = StoreReader { name: &parsed, table, faults: &mut *faults };
        if let Some(bucket) = reader.read() {
            stores.insert(parsed, bucket);
        }
    }
    check_apart(&stores, faults);
    stores
}

/// Check that no two stores can have the same keys.
fn check_apart(stores: &Stores, faults: &mut Vec<Fault>) {
    for (at, (first, one)) in stores.iter().enumerate() {
        for (second, other) in stores.iter().skip(at + 1) {
            let [databases, others] = [one, other].map(|config| databases(&config.kind));
            let is_shared = databases.iter().any(|database| others.contains(database));
            if is_shared && one.prefix.may_meet(&other.prefix) {
                let (first, second) = (first.as_str(), second.as_str());
                let [part, other_part] = [&one.prefix, &other.prefix].map(Prefix::shared_part);
                faults.push(Fault::Store(format!(
                    "stores.{first}.prefix and stores.{second}.prefix begin with {part:?} and \
                     {other_part:?} before {{tenant}}: on the same database neither may be the \
                     beginning of the other, as with \"{{bucket}}:{{tenant}}:\""
                )));
            }
        }
    }
}

/// The databases that a store names. An embedded store has a file of its own.
fn databases(kind: &BucketKind) -> Vec<String> {
    match kind {
        BucketKind::Redis(RedisConfig { urls, .. }) => {
            urls.iter().map(RedisUrl::database).collect()
        }
        BucketKind::Embedded { .. } => Vec::new(),
    }
}

/// Reads the table of one store.
struct StoreReader<'a> {
    name: &'a Name,
    table: &'a Table,
    faults: &'a mut Vec<Fault>,
}

impl StoreReader<'_> {
    fn read(&mut self) -> Option<BucketConfig> {
        for key in self.table.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let text =
                format!("stores.{}: unknown key {key:?}; known are {}", self.name, KEYS.join(", "));
            self.faults.push(Fault::Store(text));
        }
        let kind = self.kind();
        let prefix = self.prefix();
        let usual_ms = match &kind {
            Some(BucketKind::Embedded { .. }) => EMBEDDED_TIMEOUT_MS,
            _ => REDIS_TIMEOUT_MS,
        };
        let timeout_ms = self.whole("timeout_ms", 1..=TIMEOUT_MS_MAX);
        let timeout = timeout_ms.map(|ms| Duration::from_millis(ms.unwrap_or(usual_ms)));
        let cache = self.cache();
        Some(BucketConfig { kind: kind?, prefix: prefix?, timeout: timeout?, cache: cache? })
    }

    /// The cache, if one is wanted. None at all if there is a fault.
    fn cache(&mut self) -> Option<Option<CacheConfig>> {
        let ttl_ms = self.whole("cache_ttl_ms", 1..=CACHE_TTL_MS_MAX);
        let max_bytes = self.whole("cache_bytes", CACHE_BYTES_RANGE)?;
        let Some(ttl_ms) = ttl_ms? else {
            return match max_bytes {
                Some(_) => self.fault("cache_bytes", " is for a store with cache_ttl_ms"),
                None => Some(None),
            };
        };
        let ttl = Duration::from_millis(ttl_ms);
        let max_bytes = usize::try_from(max_bytes.unwrap_or(CACHE_BYTES)).unwrap_or(usize::MAX);
        Some(Some(CacheConfig { ttl, max_bytes }))
    }

    fn kind(&mut self) -> Option<BucketKind> {
        let table = self.table;
        let is_embedded = self.flag("embedded")?;
        let others = match is_embedded {
            true => &REDIS_KEYS[..],
            false => &["max_bytes"],
        };
        if let Some(other) = others.iter().find(|key| table.contains_key(**key)) {
            let text = match is_embedded {
                true => " cannot be given with embedded = true: the values are in a file",
                false => " is for a store with embedded = true",
            };
            return self.fault(other, text);
        }
        if is_embedded {
            let max_bytes = self.whole("max_bytes", MAX_BYTES_RANGE)?.unwrap_or(MAX_BYTES);
            return Some(BucketKind::Embedded { max_bytes });
        }
        let is_cluster = self.flag("cluster");
        let (urls, password) = (self.redis(is_cluster.unwrap_or(true)), self.password());
        let (urls, is_cluster, password) = (urls?, is_cluster?, password?);
        Some(BucketKind::Redis(RedisConfig { urls, is_cluster, password }))
    }

    /// Whether a key is true. None if it is neither true nor false.
    fn flag(&mut self, key: &str) -> Option<bool> {
        let table = self.table;
        match table.get(key) {
            None => Some(false),
            Some(Value::Boolean(value)) => Some(*value),
            Some(_) => self.fault(key, " must be true or false"),
        }
    }

    /// One more fault of a key.
    fn fault<T>(&mut self, key: &str, text: impl std::fmt::Display) -> Option<T> {
        let text = format!("stores.{}.{key}{text}", self.name);
        self.faults.push(Fault::Store(text));
        None
    }

    /// The text under a key, if it is given. None at all if it is not a text.
    fn text(&mut self, key: &str) -> Option<Option<String>> {
        let table = self.table;
        match table.get(key) {
            None => Some(None),
            Some(Value::String(text)) => Some(Some(text.clone())),
            Some(_) => self.fault(key, " must be text"),
        }
    }

    /// The server, or servers of a cluster.
    fn redis(&mut self, is_cluster: bool) -> Option<Vec<RedisUrl>> {
        let table = self.table;
        let values = match table.get("redis") {
            None => {
                return self.fault(
                    "redis",
                    " is missing: a URL such as redis://10.0.0.7:6379/0, or embedded = true",
                );
            }
            Some(Value::Array(_)) if !is_cluster => {
                return self.fault("redis", " must be one URL; a list is for cluster = true");
            }
            Some(Value::Array(values)) if !(1..=SEEDS_MAX).contains(&values.len()) => {
                return self.fault("redis", format_args!(" must have 1 to {SEEDS_MAX} URLs"));
            }
            Some(Value::Array(values)) => values.as_slice(),
            Some(value) => slice::from_ref(value),
        };
        let urls: Vec<_> = values.iter().map(|value| self.url(value)).collect();
        let urls = urls.into_iter().collect::<Option<Vec<_>>>()?;
        if is_cluster && !urls.iter().all(RedisUrl::is_first_database) {
            return self.fault("redis", " names a database: a cluster has only the database 0");
        }
        if urls.iter().zip(urls.iter().skip(1)).any(|(one, other)| !one.is_reached_as(other)) {
            let text = " has URLs with different users, or with and without TLS: all servers of a \
                        cluster are reached in one way";
            return self.fault("redis", text);
        }
        Some(urls)
    }

    fn url(&mut self, value: &Value) -> Option<RedisUrl> {
        let Value::String(text) = value else { return self.fault("redis", " must be text") };
        match text.parse::<RedisUrl>() {
            Ok(url) => Some(url),
            // It is not repeated: what is no URL can have a password, too.
            Err(error) => self.fault("redis", format_args!(" {error}")),
        }
    }

    fn password(&mut self) -> Option<Option<Password>> {
        let Some(path) = self.text("password_file")?.map(PathBuf::from) else { return Some(None) };
        match std::fs::read_to_string(&path) {
            Ok(content) => Some(Some(Password::of_file(&content))),
            Err(error) => self.unreadable(&path, &error),
        }
    }

    fn unreadable<T>(&mut self, path: &Path, error: &std::io::Error) -> Option<T> {
        self.fault("password_file", format_args!(" is {path:?}: {error}"))
    }

    fn prefix(&mut self) -> Option<Prefix> {
        let Some(text) = self.text("prefix")? else { return Some(Prefix::usual(self.name)) };
        match Prefix::new(&text, self.name) {
            Ok(prefix) => Some(prefix),
            Err(error) => self.fault("prefix", format_args!(" is {text:?}: {error}")),
        }
    }

    /// The number under a key, if it is given. None at all if it is not in this range.
    fn whole(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<Option<u64>> {
        let table = self.table;
        match table.get(key) {
            None => Some(None),
            Some(Value::Integer(number)) => match u64::try_from(*number) {
                Ok(number) if range.contains(&number) => Some(Some(number)),
                _ => {
                    let (min, max) = range.into_inner();
                    self.fault(key, format_args!(" is {number}: must be {min} to {max}"))
                }
            },
            Some(_) => self.fault(key, " must be a whole number"),
        }
    }
}

#[cfg(test)]
mod tests;
