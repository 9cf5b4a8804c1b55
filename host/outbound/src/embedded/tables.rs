//! The tables of an embedded store within one transaction, and the changes in them.
//!
//! A value has the time at which it ends before its bytes. `ends` has the same times for each
//! prefix in their order, so that those that have passed are found without a search. `sizes` has
//! the bytes that the values of each prefix take: of each tenant, or of all where they share keys.
//!
//! Invariant: each change of a value changes the other two tables within the same transaction.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use gristmill_sandbox::{Cleared, STORE_VALUE_BYTES_MAX, StoreFault, Swapped, incremented};
use redb::{Error, ReadableTable, Table, TableDefinition, WriteTransaction};

pub(super) const VALUES: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("values");

/// The prefix, the time in milliseconds since 1970, and the rest of the key; what the value takes.
const ENDS: TableDefinition<'static, (&str, u64, &str), u64> = TableDefinition::new("ends");

const SIZES: TableDefinition<'static, &str, u64> = TableDefinition::new("sizes");

/// The bytes of the time before a value. 0 stands for no end.
const END_BYTES: usize = size_of::<u64>();

/// What an entry of a table takes besides its key and its value.
const BESIDE_BYTES: u64 = 64;

/// The bytes of a page. A longer entry has pages of its own, whose number is a power of two.
const PAGE_BYTES: u64 = 4096;

/// The parts of the tables that a change of one value writes anew.
const PAGES_BYTES: u64 = 32 << 10;

/// The bytes that forgetting values may read and write before it stops: in a change, in a flush,
/// and in a step of clearing a prefix.
pub(super) const FORGOTTEN_BY_CHANGE: u64 = 512 << 10;
const FORGOTTEN_BY_FLUSH: u64 = 32 << 20;
const CLEARED_BY_STEP: u64 = 16 << 20;

/// Maximum prefixes at which a flush looks. The next one goes on after them.
const PREFIXES_BY_FLUSH: usize = 64;

/// A key of a tenant.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The prefix and the key of the plugin.
    whole: String,
    /// The bytes of the prefix.
    prefix_bytes: usize,
}

/// A change of one value.
#[derive(Debug)]
pub(crate) enum Change {
    /// Set it, for so many milliseconds if that is given.
    Set { key: Key, value: Bytes, ttl_ms: Option<u64> },
    /// Forget it.
    Remove { key: Key },
}

/// A swap, with its own memory.
#[derive(Debug)]
pub(crate) struct OwnedSwap {
    pub(crate) key: Key,
    pub(crate) expected: Option<Bytes>,
    pub(crate) value: Bytes,
}

/// The tables, while a transaction changes them.
pub(super) struct Tables<'t> {
    values: Table<'t, &'static [u8], &'static [u8]>,
    ends: Table<'t, (&'static str, u64, &'static str), u64>,
    sizes: Table<'t, &'static str, u64>,
    max_bytes: u64,
    now: u64,
    /// The bytes that were written so far, about.
    pub(super) written_bytes: u64,
}

/// What is there for a key.
struct Found {
    end: u64,
    bytes: u64,
    /// The value, if it is short enough for a number.
    number: Option<Vec<u8>>,
}

/// Maximum bytes of a number's text.
const NUMBER_BYTES: usize = 20;

impl<'t> Tables<'t> {
    pub(super) fn open(transaction: &'t WriteTransaction, max_bytes: u64) -> Result<Self, Error> {
        Ok(Self {
            values: transaction.open_table(VALUES)?,
            ends: transaction.open_table(ENDS)?,
            sizes: transaction.open_table(SIZES)?,
            max_bytes,
            now: now_ms(),
            written_bytes: 0,
        })
    }

    /// Make these changes. Returns how many of them changed a value.
    pub(super) fn make(&mut self, changes: &[Change]) -> Result<Result<usize, StoreFault>, Error> {
        let mut changed = 0;
        for change in changes {
            match change {
                Change::Set { key, value, ttl_ms } => {
                    let end = ttl_ms.map_or(0, |ttl_ms| self.now.saturating_add(ttl_ms));
                    if let Err(fault) = self.set(key, value, end)? {
                        return Ok(Err(fault));
                    }
                    changed += 1;
                }
                Change::Remove { key } => {
                    let found = self.found(&key.whole)?;
                    if let Some(found) = &found {
                        self.remove(key, found)?;
                    }
                    let is_there = found.is_some_and(|found| !has_passed(found.end, self.now));
                    changed += usize::from(is_there);
                }
            }
        }
        Ok(Ok(changed))
    }

    fn set(&mut self, key: &Key, value: &[u8], end: u64) -> Result<Result<(), StoreFault>, Error> {
        let found = self.found(&key.whole)?;
        let before = found.as_ref().map_or(0, |found| found.bytes);
        let bytes = bytes_of(key.whole.len(), value.len(), end);
        let used = self.used(key.prefix())?.saturating_sub(before).saturating_add(bytes);
        if used > self.max_bytes && bytes > before {
            return Ok(Err(StoreFault::unavailable(format!(
                "it is full: with this value, the tenant's would take {used} bytes; max_bytes is {}",
                self.max_bytes
            ))));
        }
        self.remove_end(key, found.map_or(0, |found| found.end))?;
        let stored = [end.to_le_bytes().as_slice(), value].concat();
        self.values.insert(key.whole.as_bytes(), stored.as_slice())?;
        if end > 0 {
            self.ends.insert((key.prefix(), end, key.rest()), bytes)?;
        }
        self.sizes.insert(key.prefix(), used)?;
        self.written_bytes += PAGES_BYTES + bytes;
        Ok(Ok(()))
    }

    /// Add to a number. It keeps its end. Returns the sum.
    pub(super) fn increment(
        &mut self,
        key: &Key,
        delta: i64,
    ) -> Result<Result<i64, StoreFault>, Error> {
        let found = self.found(&key.whole)?.filter(|found| !has_passed(found.end, self.now));
        let (end, number) = match found {
            // A value that is too long for a number is none.
            Some(Found { end, number, .. }) => (end, Some(number.unwrap_or_default())),
            None => (0, None),
        };
        let sum = match incremented(number.as_deref(), delta) {
            Ok(sum) => sum,
            Err(fault) => return Ok(Err(fault)),
        };
        let set = self.set(key, sum.to_string().as_bytes(), end)?;
        Ok(set.map(|()| sum))
    }

    /// Compare a value and set it.
    pub(super) fn swap(
        &mut self,
        OwnedSwap { key, expected, value }: &OwnedSwap,
    ) -> Result<Result<Swapped, StoreFault>, Error> {
        let other = {
            let stored = self.values.get(key.whole.as_bytes())?;
            let present = stored.as_ref().and_then(|stored| parts(stored.value()));
            let present = present.filter(|(end, _)| !has_passed(*end, self.now));
            let present = present.map(|(_, value)| value);
            // One byte more says that a value is longer.
            let cut = |value: &[u8]| {
                Bytes::copy_from_slice(&value[..value.len().min(STORE_VALUE_BYTES_MAX + 1)])
            };
            (present != expected.as_deref()).then(|| present.map(cut))
        };
        match other {
            Some(other) => Ok(Ok(Swapped::Other(other))),
            None => Ok(self.set(key, value, 0)?.map(|()| Swapped::Done)),
        }
    }

    fn found(&self, whole: &str) -> Result<Option<Found>, Error> {
        let Some(stored) = self.values.get(whole.as_bytes())? else { return Ok(None) };
        let Some((end, value)) = parts(stored.value()) else { return Ok(None) };
        let number = (value.len() <= NUMBER_BYTES).then(|| value.to_vec());
        Ok(Some(Found { end, bytes: bytes_of(whole.len(), value.len(), end), number }))
    }

    fn remove(&mut self, key: &Key, found: &Found) -> Result<(), Error> {
        self.values.remove(key.whole.as_bytes())?;
        self.remove_end(key, found.end)?;
        match self.used(key.prefix())?.saturating_sub(found.bytes) {
            0 => drop(self.sizes.remove(key.prefix())?),
            used => drop(self.sizes.insert(key.prefix(), used)?),
        }
        self.written_bytes += PAGES_BYTES;
        Ok(())
    }

    fn remove_end(&mut self, key: &Key, end: u64) -> Result<(), Error> {
        if end > 0 {
            self.ends.remove((key.prefix(), end, key.rest()))?;
        }
        Ok(())
    }

    fn used(&self, prefix: &str) -> Result<u64, Error> {
        Ok(self.sizes.get(prefix)?.map_or(0, |used| used.value()))
    }

    /// Forget values of this prefix whose time has passed, until that has read and written so many
    /// bytes. Returns how many bytes it was.
    pub(super) fn forget_passed(&mut self, prefix: &str, work_max: u64) -> Result<u64, Error> {
        let (mut passed, mut work_bytes) = (Vec::new(), 0);
        let first: (&str, u64, &str) = (prefix, 0, "");
        let later: (&str, u64, &str) = (prefix, self.now.saturating_add(1), "");
        for entry in self.ends.range(first..later)? {
            if work_bytes >= work_max {
                break;
            }
            let (at, bytes) = entry?;
            let (_, end, rest) = at.value();
            passed.push((end, Key::new(prefix, rest)));
            work_bytes += PAGES_BYTES + bytes.value();
        }
        for (end, key) in passed {
            match self.found(&key.whole)? {
                Some(found) if found.end == end => self.remove(&key, &found)?,
                // The entry belongs to no value, which is a fault of the file.
                _ => self.remove_end(&key, end)?,
            }
        }
        Ok(work_bytes)
    }

    /// Forget values whose time has passed, a few of each prefix from `next` on. Returns whether
    /// more may be to forget: those are forgotten by later flushes until one finds none up to the
    /// last prefix.
    pub(super) fn forget_in_turn(&mut self, next: &mut String) -> Result<bool, Error> {
        let mut work_bytes = 0;
        for _ in 0..PREFIXES_BY_FLUSH {
            let first: (&str, u64, &str) = (next.as_str(), 0, "");
            let entry = self.ends.range(first..)?.next().transpose()?;
            let Some(prefix) = entry.map(|(at, _)| at.value().0.to_owned()) else {
                next.clear();
                break;
            };
            work_bytes += self.forget_passed(&prefix, FORGOTTEN_BY_CHANGE)?;
            // No other text is between both.
            *next = prefix + "\0";
            if work_bytes >= FORGOTTEN_BY_FLUSH {
                break;
            }
        }
        Ok(work_bytes > 0 || !next.is_empty())
    }

    /// Forget values of this prefix, those that have not ended, too, until that has read and
    /// written so many bytes.
    pub(super) fn clear(&mut self, prefix: &str) -> Result<Cleared, Error> {
        let (mut keys, mut work_bytes, mut is_all) = (Vec::new(), 0, true);
        for entry in self.values.range(prefix.as_bytes()..)? {
            let (at, stored) = entry?;
            let rest = str::from_utf8(at.value()).ok().and_then(|whole| whole.strip_prefix(prefix));
            let Some(rest) = rest else { break };
            if work_bytes >= CLEARED_BY_STEP {
                is_all = false;
                break;
            }
            work_bytes += PAGES_BYTES + stored.value().len() as u64;
            keys.push(Key::new(prefix, rest));
        }
        for key in &keys {
            match self.found(&key.whole)? {
                Some(found) => self.remove(key, &found)?,
                None => drop(self.values.remove(key.whole.as_bytes())?),
            }
        }
        if is_all {
            self.sizes.remove(prefix)?;
        }
        Ok(Cleared { values: keys.len(), is_all })
    }
}

impl Change {
    pub(super) fn key(&self) -> &Key {
        match self {
            Self::Set { key, .. } | Self::Remove { key } => key,
        }
    }
}

impl Key {
    /// The key of a plugin under this prefix.
    pub(crate) fn new(prefix: &str, rest: &str) -> Self {
        Self { whole: format!("{prefix}{rest}"), prefix_bytes: prefix.len() }
    }

    pub(super) fn prefix(&self) -> &str {
        self.whole.get(..self.prefix_bytes).unwrap_or_default()
    }

    fn rest(&self) -> &str {
        self.whole.get(self.prefix_bytes..).unwrap_or_default()
    }
}

/// The end of a stored value, and its bytes.
pub(super) fn parts(stored: &[u8]) -> Option<(u64, &[u8])> {
    let (end, value) = stored.split_first_chunk::<END_BYTES>()?;
    Some((u64::from_le_bytes(*end), value))
}

pub(super) fn has_passed(end: u64, now: u64) -> bool {
    end > 0 && end <= now
}

/// What a value takes in the file, with its entry in `ends` if it has an end.
fn bytes_of(key: usize, value: usize, end: u64) -> u64 {
    let (key, value) = (key as u64 + BESIDE_BYTES, value as u64);
    let stored = match key + value {
        bytes @ ..PAGE_BYTES => bytes,
        bytes => bytes.next_power_of_two(),
    };
    if end > 0 { stored + key } else { stored }
}

/// The time in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
