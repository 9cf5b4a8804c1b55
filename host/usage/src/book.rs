//! All usage: the counters, the sums of the hour of now, and the files of earlier hours.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use gristmill_core::Name;
use parking_lot::Mutex;

use crate::counter::{Counter, Key, Use};
use crate::file::{self, Sums, UsageError};
use crate::hour::Hour;

/// The usage of all tenants of one server.
pub struct Book {
    folder: PathBuf,
    /// The hours that are kept, besides the one of now.
    keep_hours: u64,
    counters: Mutex<HashMap<Key, Arc<Counter>>>,
    now: Mutex<Now>,
}

/// The hour of now.
struct Now {
    hour: Hour,
    sums: Sums,
    /// Whether the file lacks some of the sums.
    is_changed: bool,
}

/// The usage that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    /// The first hour.
    pub from: Hour,
    /// The last hour.
    pub to: Hour,
    /// Whether each hour has rows of its own. Otherwise all hours are summed.
    pub by_hour: bool,
}

/// Usage of one tenant, pipeline and model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The hour, if hours have rows of their own.
    pub hour: Option<Hour>,
    /// Whose it is.
    pub key: Key,
    /// What was used.
    pub used: Use,
}

impl Book {
    /// The book in this folder, which is made if it is missing. Sums of the hour of now are read.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn open(folder: &Path, keep_hours: u64, time: SystemTime) -> Result<Self, UsageError> {
        fs::create_dir_all(folder).map_err(UsageError::at(folder))?;
        let hour = Hour::of(time);
        let now = Now { hour, sums: file::read(folder, hour)?, is_changed: false };
        let (counters, now) = (Mutex::default(), Mutex::new(now));
        Ok(Self { folder: folder.to_owned(), keep_hours, counters, now })
    }

    /// The counter of this tenant, pipeline and model.
    pub fn counter(&self, key: &Key) -> Arc<Counter> {
        self.counters.lock().entry(key.clone()).or_default().clone()
    }

    /// Add what was counted since the last time to the hour of `time`, and write it if something
    /// has changed. Counters that nobody holds any more are forgotten.
    ///
    /// # Errors
    /// It cannot be written. Nothing is lost: the next call tries again.
    pub fn keep(&self, time: SystemTime) -> Result<(), UsageError> {
        let mut now = self.now.lock();
        self.collect(&mut now);
        if now.is_changed {
            file::write(&self.folder, now.hour, &now.sums)?;
            now.is_changed = false;
        }
        let hour = Hour::of(time);
        // A clock that is set back does not open an earlier hour again.
        if hour > now.hour {
            *now = Now { hour, sums: Sums::new(), is_changed: false };
            drop(now);
            file::remove_before(&self.folder, hour.before(self.keep_hours))?;
        }
        Ok(())
    }

    /// The usage that is asked for, sorted by hour, tenant, pipeline and model. `is_seen` says
    /// whose usage the asker may see. This reads a file for each hour, so it may take a while.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn rows(
        &self,
        filter: Filter,
        is_seen: impl Fn(&Name) -> bool,
    ) -> Result<Vec<Row>, UsageError> {
        let Filter { from, to, by_hour } = filter;
        let (current, own) = {
            let mut now = self.now.lock();
            self.collect(&mut now);
            (now.hour, now.sums.clone())
        };
        let from = from.max(current.before(self.keep_hours));
        let mut rows: BTreeMap<(Option<Hour>, Key), Use> = BTreeMap::new();
        for hour in from.to(to.min(current)) {
            let sums = if hour == current { own.clone() } else { file::read(&self.folder, hour)? };
            for (key, used) in sums.into_iter().filter(|(key, _)| is_seen(&key.tenant)) {
                rows.entry((by_hour.then_some(hour), key)).or_default().add(&used);
            }
        }
        let rows = rows.into_iter().map(|((hour, key), used)| Row { hour, key, used });
        Ok(rows.collect())
    }

    /// Add what was counted to the sums of now.
    fn collect(&self, now: &mut Now) {
        self.counters.lock().retain(|key, counter| {
            let is_held = Arc::strong_count(counter) > 1;
            let used = counter.take();
            if used != Use::default() {
                now.sums.entry(key.clone()).or_default().add(&used);
                now.is_changed = true;
            }
            is_held
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant, UNIX_EPOCH};

    use gristmill_core::{ErrorCode, Receipt};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn key(tenant: &str) -> Key {
        let name = |text: &str| text.parse().unwrap();
        Key { tenant: name(tenant), pipeline: Some(name("p")), model: name("m") }
    }

    fn end(counter: &Arc<Counter>, rows: usize) {
        let mut receipt = Receipt::open(Instant::now());
        receipt.charge_to(counter.clone());
        receipt.note().rows = rows;
        receipt.note().model_time = Duration::from_nanos(1_999);
        match rows {
            0 => receipt.failed(ErrorCode::ModelFailed, 0),
            _ => receipt.answered(10),
        };
    }

    fn all(book: &Book, by_hour: bool) -> Vec<(Option<String>, String, u64, u64)> {
        let (from, to) = (Hour::of(UNIX_EPOCH), Hour::of(UNIX_EPOCH + 10_000 * HOUR));
        let rows = book.rows(Filter { from, to, by_hour }, |tenant| tenant.as_str() != "secret");
        let row = |row: Row| {
            let hour = row.hour.map(|hour| hour.to_string());
            (hour, row.key.tenant.to_string(), row.used.requests, row.used.rows)
        };
        rows.unwrap().into_iter().map(row).collect()
    }

    #[test]
    fn usage_is_summed_by_hour_and_survives() {
        let folder = tempfile::tempdir().unwrap();
        let time = UNIX_EPOCH + 100 * HOUR;
        let book = Book::open(folder.path(), 2, time).unwrap();
        let (acme, secret) = (book.counter(&key("acme")), book.counter(&key("secret")));
        end(&acme, 3);
        end(&acme, 0);
        end(&secret, 5);
        assert_eq!(all(&book, false), [(None, "acme".into(), 2, 3)]);
        book.keep(time).unwrap();
        end(&acme, 1);
        book.keep(time + HOUR).unwrap();
        end(&acme, 2);
        drop((acme, secret));
        book.keep(time + HOUR).unwrap();
        assert_eq!(book.counters.lock().len(), 0, "counters of what is gone are forgotten");
        drop(book);

        let book = Book::open(folder.path(), 2, time + HOUR).unwrap();
        let hours = [("1970-01-05T04", 3, 4), ("1970-01-05T05", 1, 2)];
        let expected =
            hours.map(|(hour, requests, rows)| (Some(hour.into()), "acme".into(), requests, rows));
        assert_eq!(all(&book, true), expected);
        assert_eq!(all(&book, false), [(None, "acme".into(), 4, 6)]);
        // Charges are whole microseconds each, so sums of them are exact.
        let (from, to) = (Hour::of(time), Hour::of(time + HOUR));
        let rows = book.rows(Filter { from, to, by_hour: false }, |_| true).unwrap();
        assert_eq!(rows[0].used.model_us, 8);
        assert_eq!((rows[0].used.failed, rows[0].used.sent_bytes), (1, 30));

        book.keep(time + 2 * HOUR).unwrap();
        book.keep(time + 3 * HOUR).unwrap();
        let kept = all(&book, true);
        assert_eq!(kept.len(), 1, "the first hour is not kept any more: {kept:?}");
        // A clock that was set back changes no hour that is over.
        let late = book.counter(&key("late"));
        end(&late, 1);
        book.keep(time).unwrap();
        assert_eq!(all(&book, true)[1].0.as_deref(), Some("1970-01-05T07"));
    }

    #[test]
    fn a_damaged_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let time = UNIX_EPOCH + 100 * HOUR;
        let book = Book::open(folder.path(), 2, time).unwrap();
        end(&book.counter(&key("acme")), 3);
        book.keep(time).unwrap();
        let path = folder.path().join("1970-01-05T04.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{{\"tenant\": \"acme\"\n{text}")).unwrap();
        let book = Book::open(folder.path(), 2, time).unwrap();
        assert_eq!(all(&book, false), [(None, "acme".into(), 1, 3)]);
    }
}
