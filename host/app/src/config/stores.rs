//! The stores that plugins may use: the tables `[stores.NAME]` of the file.
//!
//! A flag has no place for a map, so they are in the file alone. All faults are named at once, with
//! the key and what it must be. A password is in a file of its own, and no fault repeats it, nor a
//! URL, in which one may stand.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gristmill_core::Name;
use gristmill_outbound::{BucketConfig, Password, Place, Prefix, RedisUrl};
use toml::{Table, Value};

use super::fault::Fault;

/// The key of the file.
pub(crate) const KEY: &str = "stores";

/// The keys of a store.
const KEYS: [&str; 6] = ["redis", "password_file", "embedded", "max_bytes", "prefix", "timeout_ms"];

/// The time for a call, in milliseconds. A disk can take longer than a network.
const REDIS_TIMEOUT_MS: u64 = 50;
const EMBEDDED_TIMEOUT_MS: u64 = 1000;
const TIMEOUT_MS_MAX: u64 = 60_000;

/// Maximum bytes of a tenant's values in an embedded store.
const MAX_BYTES: u64 = 1 << 30;
const MAX_BYTES_RANGE: RangeInclusive<u64> = 1 << 20..=1 << 40;

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
            let (Place::Redis { url, .. }, Place::Redis { url: other_url, .. }) =
                (&one.place, &other.place)
            else {
                // An embedded store has a file of its own.
                continue;
            };
            let is_shared = url.database() == other_url.database();
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
        let place = self.place();
        let prefix = self.prefix();
        let usual_ms = match &place {
            Some(Place::Embedded { .. }) => EMBEDDED_TIMEOUT_MS,
            _ => REDIS_TIMEOUT_MS,
        };
        let timeout_ms = self.whole("timeout_ms", 1..=TIMEOUT_MS_MAX);
        let timeout = timeout_ms.map(|ms| Duration::from_millis(ms.unwrap_or(usual_ms)));
        Some(BucketConfig { place: place?, prefix: prefix?, timeout: timeout? })
    }

    fn place(&mut self) -> Option<Place> {
        let table = self.table;
        let is_embedded = match table.get("embedded") {
            None | Some(Value::Boolean(false)) => false,
            Some(Value::Boolean(true)) => true,
            Some(_) => return self.fault("embedded", " must be true or false"),
        };
        let others = match is_embedded {
            true => &["redis", "password_file"][..],
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
            return Some(Place::Embedded { max_bytes });
        }
        let (url, password) = (self.redis(), self.password());
        Some(Place::Redis { url: url?, password: password? })
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

    fn redis(&mut self) -> Option<RedisUrl> {
        let Some(text) = self.text("redis")? else {
            return self.fault(
                "redis",
                " is missing: a URL such as redis://10.0.0.7:6379/0, or embedded = true",
            );
        };
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
mod tests {
    use super::*;

    fn stores(file: &str) -> (Stores, Vec<String>) {
        let mut faults = Vec::new();
        let stores = read(&file.parse().unwrap(), &mut faults);
        (stores, faults.iter().map(ToString::to_string).collect())
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
        let Place::Redis { url, password: None } = &features.place else { panic!("{features:?}") };
        assert_eq!(url.to_string(), "redis://10.0.0.7/2");
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
        let bound = |name: &str| match found[name].place {
            Place::Embedded { max_bytes } => max_bytes,
            Place::Redis { .. } => panic!("{found:?}"),
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
            "stores.a: unknown key \"port\"; known are redis, password_file, embedded, \
             max_bytes, prefix, timeout_ms",
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
        let Place::Redis { password, .. } = &found["a"].place else { panic!("{found:?}") };
        assert_eq!(*password, Some(Password::of_file("word")));
        assert!(!format!("{found:?}").contains("word\""), "{found:?}");
    }
}
