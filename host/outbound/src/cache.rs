//! What this server keeps of a bucket's values for a while: the last used of them, within a bound.
//!
//! A key is here with its prefix, so a tenant finds what it would find in the bucket. The lock is
//! held for one key, or for [`DROPPED_MAX`] that go: a tenant that fills the cache costs another
//! one no more than a miss.
//!
//! Invariant: a value that was asked for before this server changed its key is not kept after that.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use gristmill_sandbox::WantedValues;
use parking_lot::Mutex;

use crate::config::CacheConfig;

/// The memory of a kept key besides its own bytes and its value: its places in maps, whose nodes
/// may be half empty.
const KEY_MEMORY: usize = 320;

/// Maximum values that are dropped at a time, before others may use the cache.
const DROPPED_MAX: usize = 64;

/// The groups of keys whose changes are counted together.
const GROUPS: usize = 256;

/// The kept values of a bucket.
pub(crate) struct Cache {
    config: CacheConfig,
    groups: RandomState,
    kept: Mutex<Kept>,
}

struct Kept {
    /// Not a hash map: that one moves all values while it grows, and never shrinks.
    values: BTreeMap<Arc<str>, KeptValue>,
    /// The keys, by when they were used.
    uses: BTreeMap<u64, Arc<str>>,
    next_use: u64,
    bytes: usize,
    /// How often the keys of each group were changed.
    changes: Box<[u64]>,
}

struct KeptValue {
    /// None if the bucket has no such key.
    value: Option<Bytes>,
    /// Whether none can be an empty value, too.
    may_be_empty: bool,
    ends: Instant,
    used: u64,
}

/// What the cache has of the values that a call wants.
pub(crate) struct Found {
    /// The values that it has, and none for the others.
    pub(crate) values: Vec<Option<Bytes>>,
    /// The others.
    pub(crate) missing: Vec<Missing>,
    asked: Instant,
}

/// A key that must be asked for.
pub(crate) struct Missing {
    /// Its place in the call.
    pub(crate) place: usize,
    key: String,
    /// How often the keys of its group were changed before.
    changes: u64,
}

impl Cache {
    pub(crate) fn new(config: CacheConfig) -> Self {
        let kept = Kept {
            values: BTreeMap::new(),
            uses: BTreeMap::new(),
            next_use: 0,
            bytes: 0,
            changes: vec![0; GROUPS].into(),
        };
        Self { config, groups: RandomState::new(), kept: Mutex::new(kept) }
    }

    /// The memory of the kept values.
    pub(crate) fn bytes(&self) -> usize {
        self.kept.lock().bytes
    }

    /// What it has at `now` of the values that are wanted.
    pub(crate) fn find(&self, prefix: &str, wanted: WantedValues<'_>, now: Instant) -> Found {
        let mut found = Found {
            values: Vec::with_capacity(wanted.keys.len()),
            missing: Vec::new(),
            asked: now,
        };
        for (place, key) in wanted.keys.iter().enumerate() {
            let key = format!("{prefix}{key}");
            let group = self.group(&key);
            let mut kept = self.kept.lock();
            let value = kept.get(&key, wanted, now);
            if value.is_none() {
                let changes = kept.changes.get(group).copied().unwrap_or_default();
                found.missing.push(Missing { place, key, changes });
            }
            found.values.push(value.flatten());
        }
        found
    }

    /// All values that are wanted: those that were found, and `fresh`, those that were missing.
    /// They are kept unless their keys were changed since.
    pub(crate) fn complete(
        &self,
        found: Found,
        wanted: WantedValues<'_>,
        fresh: Vec<Option<Bytes>>,
    ) -> Vec<Option<Bytes>> {
        let Found { mut values, missing, asked } = found;
        for (missing, value) in missing.into_iter().zip(fresh) {
            if let Some(place) = values.get_mut(missing.place) {
                place.clone_from(&value);
            }
            // A longer one may be cut.
            if value.as_ref().is_none_or(|value| value.len() <= wanted.most_bytes) {
                let may_be_empty = value.is_none() && wanted.none_if_empty;
                self.keep(missing, value, may_be_empty, asked);
            }
        }
        values
    }

    /// Forget a key, which was changed.
    pub(crate) fn changed(&self, key: &str) {
        let group = self.group(key);
        let mut kept = self.kept.lock();
        if let Some(changes) = kept.changes.get_mut(group) {
            *changes = changes.wrapping_add(1);
        }
        kept.forget(key);
    }

    fn keep(&self, missing: Missing, value: Option<Bytes>, may_be_empty: bool, asked: Instant) {
        let Missing { key, changes, .. } = missing;
        let group = self.group(&key);
        let bytes = memory(&key, value.as_ref());
        let room = self.config.max_bytes.checked_sub(bytes);
        let Some(room) = room else { return };
        // This way others come between steps.
        while !self.kept.lock().drop_until(room) {}
        let mut kept = self.kept.lock();
        // Others may have taken the room.
        if kept.changes.get(group) == Some(&changes) && kept.drop_until(room) {
            let ends = asked + self.config.ttl;
            kept.insert(key.into(), KeptValue { value, may_be_empty, ends, used: 0 });
        }
    }

    fn group(&self, key: &str) -> usize {
        self.groups.hash_one(key) as usize % GROUPS
    }
}

impl Kept {
    /// The value of a key, or none if it has no such key. None at all if that is not known.
    fn get(&mut self, key: &str, wanted: WantedValues<'_>, now: Instant) -> Option<Option<Bytes>> {
        let kept = self.values.get_mut(key)?;
        if kept.ends <= now {
            self.forget(key);
            return None;
        }
        if kept.may_be_empty && !wanted.none_if_empty {
            return None;
        }
        let key = self.uses.remove(&kept.used)?;
        kept.used = self.next_use;
        self.next_use += 1;
        self.uses.insert(kept.used, key);
        let cut = |value: &Bytes| value.slice(..value.len().min(wanted.most_bytes + 1));
        let value = kept.value.as_ref().map(cut);
        Some(value.filter(|value| !wanted.none_if_empty || !value.is_empty()))
    }

    fn insert(&mut self, key: Arc<str>, mut kept: KeptValue) {
        self.forget(&key);
        self.bytes += memory(&key, kept.value.as_ref());
        kept.used = self.next_use;
        self.next_use += 1;
        self.uses.insert(kept.used, key.clone());
        self.values.insert(key, kept);
    }

    fn forget(&mut self, key: &str) {
        if let Some(KeptValue { value, used, .. }) = self.values.remove(key) {
            self.uses.remove(&used);
            self.bytes = self.bytes.saturating_sub(memory(key, value.as_ref()));
        }
    }

    /// Drop some of the values that were not used for longest, until the others have at most `max`
    /// bytes. Returns whether they have.
    fn drop_until(&mut self, max: usize) -> bool {
        for _ in 0..DROPPED_MAX {
            if self.bytes <= max {
                return true;
            }
            match self.uses.pop_first() {
                Some((_, key)) => self.forget(&key),
                None => return true,
            }
        }
        self.bytes <= max
    }
}

fn memory(key: &str, value: Option<&Bytes>) -> usize {
    KEY_MEMORY + key.len() + value.map_or(0, Bytes::len)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const KEYS: [&str; 3] = ["a", "b", "c"];

    fn cache(max_bytes: usize) -> Cache {
        Cache::new(CacheConfig { ttl: Duration::from_secs(1), max_bytes })
    }

    fn wanted<'a>(keys: &'a [&'a str]) -> WantedValues<'a> {
        WantedValues { keys, most_bytes: 8, none_if_empty: false }
    }

    fn value(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    /// The keys that it does not have.
    fn missing(cache: &Cache, wanted: WantedValues<'_>, now: Instant) -> Vec<usize> {
        let found = cache.find("p:", wanted, now);
        found.missing.iter().map(|missing| missing.place).collect()
    }

    #[test]
    fn a_value_is_kept_for_its_time() {
        let (cache, now) = (cache(1 << 20), Instant::now());
        let found = cache.find("p:", wanted(&KEYS), now);
        assert_eq!(found.missing.len(), 3);
        let fresh = vec![value("x"), None, value("longer than 8")];
        assert_eq!(cache.complete(found, wanted(&KEYS), fresh.clone()), fresh);
        // That of "c" may be cut.
        let found = cache.find("p:", wanted(&["c", "b", "a"]), now);
        assert_eq!(found.values, [None, None, value("x")]);
        assert_eq!(missing(&cache, wanted(&["c", "b", "a"]), now), [0]);
        assert_eq!(cache.find("q:", wanted(&KEYS), now).missing.len(), 3, "another prefix");
        assert_eq!(cache.bytes(), 2 * (KEY_MEMORY + 3) + 1);
        let later = now + Duration::from_secs(1);
        assert_eq!(missing(&cache, wanted(&KEYS), later), [0, 1, 2]);
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn a_key_that_was_changed_meanwhile_is_not_kept() {
        let (cache, now) = (cache(1 << 20), Instant::now());
        let keys = ["a"];
        let old = cache.find("p:", wanted(&keys), now);
        cache.changed("p:a");
        cache.complete(old, wanted(&keys), vec![value("old")]);
        assert_eq!(missing(&cache, wanted(&keys), now), [0]);
        let new = cache.find("p:", wanted(&keys), now);
        cache.complete(new, wanted(&keys), vec![value("new")]);
        assert_eq!(cache.find("p:", wanted(&keys), now).values, [value("new")]);
        cache.changed("p:a");
        assert_eq!(missing(&cache, wanted(&keys), now), [0]);
    }

    #[test]
    fn an_empty_value_is_told_from_a_missing_key() {
        let (cache, now) = (cache(1 << 20), Instant::now());
        let keys = ["a"];
        let rows = WantedValues { none_if_empty: true, ..wanted(&keys) };
        let found = cache.find("p:", rows, now);
        cache.complete(found, rows, vec![None]);
        assert_eq!(missing(&cache, rows, now), [0; 0]);
        assert_eq!(missing(&cache, wanted(&keys), now), [0], "it may be empty");
        let found = cache.find("p:", wanted(&keys), now);
        cache.complete(found, wanted(&keys), vec![value("")]);
        assert_eq!(cache.find("p:", wanted(&keys), now).values, [value("")]);
        assert_eq!(cache.find("p:", rows, now).values, [None]);
        // One that is longer than wanted is cut as the store cuts it.
        cache.changed("p:a");
        let found = cache.find("p:", wanted(&keys), now);
        cache.complete(found, wanted(&keys), vec![value("12345678")]);
        let short = WantedValues { most_bytes: 2, ..rows };
        assert_eq!(cache.find("p:", short, now).values, [value("123")]);
    }

    #[test]
    fn the_values_that_were_not_used_for_longest_go() {
        let (cache, now) = (cache(2 * (KEY_MEMORY + 3)), Instant::now());
        let get = |key: &'static str| {
            let keys = [key];
            let found = cache.find("p:", wanted(&keys), now);
            let is_kept = found.missing.is_empty();
            if !is_kept {
                cache.complete(found, wanted(&keys), vec![None]);
            }
            is_kept
        };
        assert!(!get("a") && !get("b") && get("a"));
        assert!(!get("c") && get("a") && get("c") && !get("b"));
        assert_eq!(cache.bytes(), 2 * (KEY_MEMORY + 3));
        // What has no room at all drops nothing.
        let large = ["x".repeat(KEY_MEMORY * 4)];
        let keys = [large[0].as_str()];
        let found = cache.find("p:", wanted(&keys), now);
        cache.complete(found, wanted(&keys), vec![None]);
        assert_eq!(cache.bytes(), 2 * (KEY_MEMORY + 3));
    }
}
