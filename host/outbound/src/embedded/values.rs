//! What reads and changes the values of an embedded store: its transactions.
//!
//! The file reads a value whole, also to remove it. So all work is bounded by bytes: a read stops
//! at a bound, and values whose time has passed are forgotten in small steps. A change does that
//! for its own prefix alone, a flush for one prefix after the other.
//!
//! Transactions that reach the disk allow a quick repair: after a crash, and after an end of the
//! process without destructors, the file is usable at once, however large it is.

use std::time::Instant;

use bytes::Bytes;
use gristmill_sandbox::{Cleared, KeyPage, STORE_PAGE_KEYS, StoreFault, StoreFaultKind, Swapped};
use redb::{Database, Durability, Error, ReadableDatabase};

use super::tables::{
    Change, FORGOTTEN_BY_CHANGE, Key, OwnedSwap, Tables, VALUES, has_passed, now_ms, parts,
};

/// Maximum bytes that a call reads. A call gets at most 16 MiB. The rest is for values whose time
/// has passed.
const READ_BYTES_MAX: usize = 32 << 20;

/// Maximum bytes that a page of keys reads: their values, and so many for each of them besides.
const LISTED_BYTES_MAX: usize = 16 << 20;
const LISTED_KEY_BYTES: usize = 1024;

/// The bytes that forgetting values may read and write after a change for which there
/// was no room.
const FORGOTTEN_BY_REFUSAL: u64 = 16 << 20;

/// The keys that a call wants.
pub(crate) struct WantedKeys {
    pub(crate) keys: Vec<String>,
    /// Of a longer value come only so many bytes and one more.
    pub(crate) most_bytes: usize,
    pub(crate) none_if_empty: bool,
}

/// What a transaction did that is not on the disk yet.
pub(super) struct Written<T> {
    /// After a fault nothing was changed.
    pub(super) outcome: Result<T, StoreFault>,
    /// The bytes that were written, about.
    pub(super) bytes: u64,
}

/// Make the tables, if they are missing.
pub(super) fn prepare(database: &Database) -> Result<(), Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    Tables::open(&transaction, 0)?;
    transaction.commit()?;
    Ok(())
}

/// The values of these keys, in their order, all of one moment. After one that is longer than
/// wanted, the rest are not read: none of them is there.
pub(super) fn read(
    database: &Database,
    WantedKeys { keys, most_bytes, none_if_empty }: &WantedKeys,
    until: Instant,
) -> Result<Result<Vec<Option<Bytes>>, StoreFault>, Error> {
    let (transaction, now) = (database.begin_read()?, now_ms());
    let values = transaction.open_table(VALUES)?;
    let (mut found, mut read_bytes) = (Vec::with_capacity(keys.len()), 0_usize);
    for key in keys {
        if Instant::now() >= until {
            return Ok(Err(StoreFault::unavailable("no answer in time")));
        }
        let stored = values.get(key.as_bytes())?;
        let stored = stored.as_ref().map_or(&[][..], |stored| stored.value());
        read_bytes = read_bytes.saturating_add(stored.len());
        if read_bytes > READ_BYTES_MAX {
            return Ok(Err(StoreFault::unavailable(format!(
                "with values whose time has passed, these keys have more than {READ_BYTES_MAX} \
                 bytes: ask for fewer keys at once"
            ))));
        }
        let value = parts(stored)
            .filter(|(end, value)| !(has_passed(*end, now) || *none_if_empty && value.is_empty()));
        let Some((_, value)) = value else {
            found.push(None);
            continue;
        };
        let is_longer = value.len() > *most_bytes;
        let bytes = value.len().min(most_bytes.saturating_add(1));
        found.push(Some(Bytes::copy_from_slice(&value[..bytes])));
        if is_longer {
            found.resize(keys.len(), None);
            break;
        }
    }
    Ok(Ok(found))
}

/// Some of the keys that begin with this prefix, without it: those after a key, if that is given.
pub(super) fn keys(
    database: &Database,
    prefix: &str,
    after: Option<&str>,
) -> Result<KeyPage, Error> {
    let (transaction, now) = (database.begin_read()?, now_ms());
    let values = transaction.open_table(VALUES)?;
    let first = match after {
        // No other text is between both.
        Some(after) => format!("{prefix}{after}\0"),
        None => prefix.to_owned(),
    };
    let (mut keys, mut last, mut read_bytes) = (Vec::new(), String::new(), 0);
    for entry in values.range(first.as_bytes()..)? {
        let (at, stored) = entry?;
        let rest = str::from_utf8(at.value()).ok().and_then(|whole| whole.strip_prefix(prefix));
        let Some(rest) = rest else { break };
        if keys.len() == STORE_PAGE_KEYS || read_bytes >= LISTED_BYTES_MAX {
            return Ok(KeyPage { keys, next: Some(last) });
        }
        read_bytes += LISTED_KEY_BYTES + stored.value().len();
        if parts(stored.value()).is_some_and(|(end, _)| !has_passed(end, now)) {
            keys.push(rest.to_owned());
        }
        last.clear();
        last.push_str(rest);
    }
    Ok(KeyPage { keys, next: None })
}

/// Make these changes of one prefix, all or none. The values of the prefix may take `max_bytes`.
/// Returns how many of them changed a value.
pub(super) fn change(
    database: &Database,
    changes: &[Change],
    max_bytes: u64,
) -> Result<Written<usize>, Error> {
    let prefix = changes.first().map_or("", |change| change.key().prefix());
    with_room(database, prefix, max_bytes, |tables| tables.make(changes))
}

/// Add to a number. The values of its prefix may take `max_bytes`.
pub(super) fn increment(
    database: &Database,
    key: &Key,
    delta: i64,
    max_bytes: u64,
) -> Result<Written<i64>, Error> {
    with_room(database, key.prefix(), max_bytes, |tables| tables.increment(key, delta))
}

/// Compare a value and set it. The values of its prefix may take `max_bytes`.
pub(super) fn swap(
    database: &Database,
    swap: &OwnedSwap,
    max_bytes: u64,
) -> Result<Written<Swapped>, Error> {
    with_room(database, swap.key.prefix(), max_bytes, |tables| tables.swap(swap))
}

/// Make a change of values of one prefix, again if values had to be forgotten before.
fn with_room<T>(
    database: &Database,
    prefix: &str,
    max_bytes: u64,
    make: impl Fn(&mut Tables<'_>) -> Result<Result<T, StoreFault>, Error>,
) -> Result<Written<T>, Error> {
    let attempt = || {
        unflushed(database, max_bytes, |tables| {
            tables.forget_passed(prefix, FORGOTTEN_BY_CHANGE)?;
            make(tables)
        })
    };
    let refused = attempt()?;
    // Other faults are the change's own: room does not cure them.
    let is_full = |fault: &StoreFault| fault.kind == StoreFaultKind::Unavailable;
    if !refused.outcome.as_ref().is_err_and(is_full) {
        return Ok(refused);
    }
    // What was forgotten came back with the changes. In a transaction of its own it stays
    // forgotten, so that a store full of values whose time has passed gets room.
    let forgotten = unflushed(database, max_bytes, |tables| {
        tables.forget_passed(prefix, FORGOTTEN_BY_REFUSAL).map(Ok)
    })?;
    let last = match forgotten.outcome {
        Ok(1..) => attempt()?,
        _ => Written { bytes: 0, ..refused },
    };
    Ok(Written { bytes: refused.bytes + forgotten.bytes + last.bytes, ..last })
}

/// Forget values of this prefix, in one step of many.
pub(super) fn clear(database: &Database, prefix: &str) -> Result<Written<Cleared>, Error> {
    unflushed(database, 0, |tables| tables.clear(prefix).map(Ok))
}

/// Forget values whose time has passed, and write all changes so far to the disk. It begins with
/// the prefix `next`, and leaves there where the next flush begins. Returns whether more values may
/// be to forget.
pub(super) fn flush(database: &Database, next: &mut String) -> Result<bool, Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    let has_more = Tables::open(&transaction, 0)?.forget_in_turn(next)?;
    transaction.commit()?;
    Ok(has_more)
}

/// Do `work` in a transaction that a flush writes to the disk. After a fault nothing is changed.
fn unflushed<T>(
    database: &Database,
    max_bytes: u64,
    work: impl FnOnce(&mut Tables<'_>) -> Result<Result<T, StoreFault>, Error>,
) -> Result<Written<T>, Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::None)?;
    let (outcome, bytes) = {
        let mut tables = Tables::open(&transaction, max_bytes)?;
        let outcome = work(&mut tables)?;
        (outcome, tables.written_bytes)
    };
    match outcome {
        Ok(_) => transaction.commit()?,
        Err(_) => transaction.abort()?,
    }
    Ok(Written { outcome, bytes })
}
