//! The tables of an embedded store, and what reads and changes them.
//!
//! A value has the time at which it ends before its bytes. `ends` has the same times in their
//! order, so that those that have passed are found without a search. `sizes` has the bytes that the
//! values of each prefix take: of each tenant, or of all where they share keys.
//!
//! Transactions that reach the disk allow a quick repair: after a crash, and after an end of the
//! process without destructors, the file is usable at once, however large it is.
//!
//! Invariant: each change of a value changes the other two tables within the same transaction.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use gristmill_sandbox::{StoreFault, incremented};
use redb::{
    Database, Durability, Error, ReadableDatabase, ReadableTable, Table, TableDefinition,
    WriteTransaction,
};

const VALUES: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("values");

/// The time, in milliseconds since 1970, and the key; the bytes of the key's prefix.
const ENDS: TableDefinition<'static, (u64, &[u8]), u32> = TableDefinition::new("ends");

const SIZES: TableDefinition<'static, &str, u64> = TableDefinition::new("sizes");

/// The bytes of the time before a value. 0 stands for no end.
const END_BYTES: usize = size_of::<u64>();

/// What a value takes besides its key and its bytes: places in the tables.
const BESIDE_BYTES: u64 = 64;

/// The parts of the tables that a change writes anew.
const PAGES_BYTES: u64 = 32 << 10;

/// Maximum values whose time has passed that a change forgets, and a flush.
const FORGOTTEN_BY_CHANGE: usize = 16;
const FORGOTTEN_BY_FLUSH: usize = 4096;

/// A key of a tenant.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The prefix and the key of the plugin.
    pub(crate) whole: String,
    /// The bytes of the prefix.
    pub(crate) prefix_bytes: usize,
}

/// The keys that a call wants.
pub(crate) struct WantedKeys {
    pub(crate) keys: Vec<String>,
    /// Of a longer value come only so many bytes and one more.
    pub(crate) most_bytes: usize,
    pub(crate) none_if_empty: bool,
}

/// A change of one value.
#[derive(Debug)]
pub(crate) enum Change {
    /// Set it, for so many milliseconds if that is given.
    Set { key: Key, value: Bytes, ttl_ms: Option<u64> },
    /// Add to a number. It keeps its end.
    Increment { key: Key, delta: i64 },
    /// Forget it. The number is 1 if it was there, otherwise 0.
    Remove { key: Key },
}

/// Make the tables, if they are missing.
pub(super) fn prepare(database: &Database) -> Result<(), Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    Tables::open(&transaction, 0)?;
    transaction.commit()?;
    Ok(())
}

/// The values of these keys, in their order, all of one moment.
pub(super) fn read(
    database: &Database,
    WantedKeys { keys, most_bytes, none_if_empty }: &WantedKeys,
) -> Result<Vec<Option<Bytes>>, Error> {
    let (transaction, now) = (database.begin_read()?, now_ms());
    let values = transaction.open_table(VALUES)?;
    let value = |key: &String| -> Result<Option<Bytes>, Error> {
        let Some(found) = values.get(key.as_bytes())? else { return Ok(None) };
        let Some((end, value)) = parts(found.value()) else { return Ok(None) };
        let is_there = !has_passed(end, now) && !(*none_if_empty && value.is_empty());
        let bytes = value.len().min(most_bytes.saturating_add(1));
        Ok(is_there.then(|| Bytes::copy_from_slice(&value[..bytes])))
    };
    keys.iter().map(value).collect()
}

/// Make these changes, all or none. The values of each prefix may take `max_bytes`. Returns the
/// number that the last change leaves, if it is one.
pub(super) fn change(
    database: &Database,
    changes: &[Change],
    max_bytes: u64,
) -> Result<Result<Option<i64>, StoreFault>, Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::None)?;
    let done = {
        let mut tables = Tables::open(&transaction, max_bytes)?;
        tables.forget_passed(FORGOTTEN_BY_CHANGE)?;
        tables.make(changes)?
    };
    match done {
        Ok(_) => transaction.commit()?,
        Err(_) => transaction.abort()?,
    }
    Ok(done)
}

/// Forget values whose time has passed, and write all changes so far to the disk. Returns whether
/// more values may be to forget.
pub(super) fn flush(database: &Database) -> Result<bool, Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    let forgotten = Tables::open(&transaction, 0)?.forget_passed(FORGOTTEN_BY_FLUSH)?;
    transaction.commit()?;
    Ok(forgotten == FORGOTTEN_BY_FLUSH)
}

struct Tables<'t> {
    values: Table<'t, &'static [u8], &'static [u8]>,
    ends: Table<'t, (u64, &'static [u8]), u32>,
    sizes: Table<'t, &'static str, u64>,
    max_bytes: u64,
    now: u64,
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
    fn open(transaction: &'t WriteTransaction, max_bytes: u64) -> Result<Self, Error> {
        Ok(Self {
            values: transaction.open_table(VALUES)?,
            ends: transaction.open_table(ENDS)?,
            sizes: transaction.open_table(SIZES)?,
            max_bytes,
            now: now_ms(),
        })
    }

    fn make(&mut self, changes: &[Change]) -> Result<Result<Option<i64>, StoreFault>, Error> {
        let mut left = None;
        for change in changes {
            let made = match change {
                Change::Set { key, value, ttl_ms } => {
                    let end = ttl_ms.map_or(0, |ttl_ms| self.now.saturating_add(ttl_ms));
                    self.set(key, value, end)?.map(|()| None)
                }
                Change::Increment { key, delta } => self.increment(key, *delta)?.map(Some),
                Change::Remove { key } => {
                    let found = self.found(&key.whole)?;
                    if let Some(found) = &found {
                        self.remove(key.whole.as_bytes(), key.prefix(), found)?;
                    }
                    let is_there = found.is_some_and(|found| !has_passed(found.end, self.now));
                    Ok(Some(i64::from(is_there)))
                }
            };
            left = match made {
                Ok(left) => left,
                Err(fault) => return Ok(Err(fault)),
            };
        }
        Ok(Ok(left))
    }

    fn set(&mut self, key: &Key, value: &[u8], end: u64) -> Result<Result<(), StoreFault>, Error> {
        let found = self.found(&key.whole)?;
        let before = found.as_ref().map_or(0, |found| found.bytes);
        let bytes = bytes_of(key.whole.len(), value.len());
        let used = self.used(key.prefix())?.saturating_sub(before).saturating_add(bytes);
        if used > self.max_bytes && bytes > before {
            return Ok(Err(StoreFault::unavailable(format!(
                "it is full: with this value, the tenant's would take {used} bytes; max_bytes is {}",
                self.max_bytes
            ))));
        }
        let whole = key.whole.as_bytes();
        if let Some(Found { end: end @ 1.., .. }) = found {
            self.ends.remove((end, whole))?;
        }
        let stored = [end.to_le_bytes().as_slice(), value].concat();
        self.values.insert(whole, stored.as_slice())?;
        if end > 0 {
            self.ends.insert((end, whole), key.prefix_bytes as u32)?;
        }
        self.sizes.insert(key.prefix(), used)?;
        Ok(Ok(()))
    }

    fn increment(&mut self, key: &Key, delta: i64) -> Result<Result<i64, StoreFault>, Error> {
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

    fn found(&self, whole: &str) -> Result<Option<Found>, Error> {
        let Some(stored) = self.values.get(whole.as_bytes())? else { return Ok(None) };
        let Some((end, value)) = parts(stored.value()) else { return Ok(None) };
        let number = (value.len() <= NUMBER_BYTES).then(|| value.to_vec());
        Ok(Some(Found { end, bytes: bytes_of(whole.len(), value.len()), number }))
    }

    fn remove(&mut self, whole: &[u8], prefix: &str, found: &Found) -> Result<(), Error> {
        self.values.remove(whole)?;
        if found.end > 0 {
            self.ends.remove((found.end, whole))?;
        }
        match self.used(prefix)?.saturating_sub(found.bytes) {
            0 => drop(self.sizes.remove(prefix)?),
            used => drop(self.sizes.insert(prefix, used)?),
        }
        Ok(())
    }

    fn used(&self, prefix: &str) -> Result<u64, Error> {
        Ok(self.sizes.get(prefix)?.map_or(0, |used| used.value()))
    }

    /// Forget at most so many values whose time has passed. Returns how many.
    fn forget_passed(&mut self, max: usize) -> Result<usize, Error> {
        let mut passed = Vec::new();
        let later: (u64, &[u8]) = (self.now.saturating_add(1), &[]);
        for entry in self.ends.range(..later)?.take(max) {
            let (at, prefix_bytes) = entry?;
            let (_, whole) = at.value();
            passed.push((whole.to_vec(), prefix_bytes.value() as usize));
        }
        let count = passed.len();
        for (whole, prefix_bytes) in passed {
            let Ok(text) = str::from_utf8(&whole) else { continue };
            if let Some(found) = self.found(text)? {
                let prefix = text.get(..prefix_bytes).unwrap_or_default();
                self.remove(&whole, prefix, &found)?;
            }
        }
        Ok(count)
    }
}

impl Change {
    /// The bytes that it writes to the file, about.
    pub(super) fn written_bytes(&self) -> u64 {
        let value = match self {
            Self::Set { value, .. } => value.len(),
            Self::Increment { .. } | Self::Remove { .. } => 0,
        };
        PAGES_BYTES + value as u64
    }
}

impl Key {
    fn prefix(&self) -> &str {
        self.whole.get(..self.prefix_bytes).unwrap_or_default()
    }
}

/// The end of a stored value, and its bytes.
fn parts(stored: &[u8]) -> Option<(u64, &[u8])> {
    let (end, value) = stored.split_first_chunk::<END_BYTES>()?;
    Some((u64::from_le_bytes(*end), value))
}

fn has_passed(end: u64, now: u64) -> bool {
    end > 0 && end <= now
}

fn bytes_of(key: usize, value: usize) -> u64 {
    (key + value) as u64 + BESIDE_BYTES
}

/// The time in milliseconds since 1970.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
