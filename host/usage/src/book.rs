//! All usage: the counters, the sums of the hours that are not on disk yet, and the files.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::counter::{Counter, Key, Use};
use crate::file::{self, Sums, UsageError};
use crate::hour::Hour;

/// The most hours between two looks at the clock after which old files are removed. A clock that
/// jumps further is probably wrong, and must not remove what is not old.
const JUMP_MAX: u64 = 48;

/// The usage of all tenants of one server.
pub struct Book {
    folder: PathBuf,
    /// The hours that are kept, besides the one of now.
    keep_hours: u64,
    counters: Mutex<HashMap<Key, Arc<Counter>>>,
    now: Mutex<Now>,
}

struct Now {
    hour: Hour,
    /// The sums of the hour, and those of earlier hours that could not be written.
    sums: BTreeMap<Hour, Kept>,
}

/// The sums of an hour.
#[derive(Clone, Default)]
struct Kept {
    sums: Sums,
    /// Whether the file lacks some of them.
    is_changed: bool,
}

/// The usage that is asked for.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The first hour.
    pub from: Hour,
    /// The last hour.
    pub to: Hour,
    /// Whether each hour has rows of its own. Otherwise all hours are summed.
    pub by_hour: bool,
    /// The most rows.
    pub limit: usize,
    /// The place of the row before the first one.
    pub after: Option<String>,
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

/// Rows, and the place of the last one if there are more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Sorted by hour, tenant, pipeline and model.
    pub rows: Vec<Row>,
    /// The [`Filter::after`] of the rows that come next.
    pub next: Option<String>,
}

impl Book {
    /// The book in this folder, which is made if it is missing. Sums of the hour of now are read.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn open(folder: &Path, keep_hours: u64, time: SystemTime) -> Result<Self, UsageError> {
        fs::create_dir_all(folder).map_err(UsageError::at(folder))?;
        file::remove_temporary(folder)?;
        let hour = Hour::of(time);
        let kept = Kept { sums: file::read(folder, hour)?, is_changed: false };
        let now = Mutex::new(Now { hour, sums: BTreeMap::from([(hour, kept)]) });
        let counters = Mutex::default();
        Ok(Self { folder: folder.to_owned(), keep_hours, counters, now })
    }

    /// The counter of this tenant, pipeline and model.
    pub fn counter(&self, key: &Key) -> Arc<Counter> {
        self.counters.lock().entry(key.clone()).or_default().clone()
    }

    /// Add what was counted since the last time to the hour that was current then, write what has
    /// changed, and go on with the hour of `time`, which may be an earlier one. Counters that
    /// are not in use any more are forgotten.
    ///
    /// # Errors
    /// Something cannot be written or read. Nothing is lost: the next call tries again.
    pub fn keep(&self, time: SystemTime) -> Result<(), UsageError> {
        let mut now = self.now.lock();
        self.collect(&mut now);
        let (hour, before) = (Hour::of(time), now.hour);
        if hour != before {
            if let Entry::Vacant(vacant) = now.sums.entry(hour) {
                let sums = file::read(&self.folder, hour)?;
                vacant.insert(Kept { sums, is_changed: false });
            }
            now.hour = hour;
        }
        for (hour, kept) in &mut now.sums {
            if kept.is_changed {
                file::write(&self.folder, *hour, &kept.sums)?;
                kept.is_changed = false;
            }
        }
        now.sums.retain(|own, _| *own == hour);
        drop(now);
        if hour > before && before.count_to(hour) <= JUMP_MAX {
            file::remove_before(&self.folder, hour.before(self.keep_hours))?;
        }
        Ok(())
    }

    /// The usage that is asked for. `is_seen` says which of it the asker may see. This reads a file
    /// for each hour, so it may take a while.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn rows(
        &self,
        filter: &Filter,
        is_seen: impl Fn(&Key) -> bool,
    ) -> Result<Rows, UsageError> {
        let Filter { from, to, by_hour, limit, after } = filter;
        let unwritten = {
            let mut now = self.now.lock();
            self.collect(&mut now);
            now.sums.clone()
        };
        let is_later = |row: &Row| after.as_ref().is_none_or(|after| row.place() > *after);
        let mut rows: BTreeMap<(Option<Hour>, Key), Use> = BTreeMap::new();
        for hour in from.to(*to) {
            let sums = match unwritten.get(&hour) {
                Some(kept) => kept.sums.clone(),
                None => file::read(&self.folder, hour)?,
            };
            for (key, used) in sums.into_iter().filter(|(key, _)| is_seen(key)) {
                let own = by_hour.then_some(hour);
                let row = Row { hour: own, key, used };
                if !*by_hour || is_later(&row) {
                    rows.entry((own, row.key)).or_default().add(&row.used);
                }
            }
            // One more, to see that there are more.
            if *by_hour && rows.len() > *limit {
                break;
            }
        }
        let rows = rows.into_iter().map(|((hour, key), used)| Row { hour, key, used });
        let mut rows = rows.filter(is_later);
        let shown: Vec<Row> = rows.by_ref().take(*limit).collect();
        let last = shown.last().map(Row::place);
        let next = last.filter(|_| rows.next().is_some());
        Ok(Rows { rows: shown, next })
    }

    /// Add what was counted to the sums of now.
    fn collect(&self, now: &mut Now) {
        let kept = now.sums.entry(now.hour).or_default();
        self.counters.lock().retain(|key, counter| {
            let is_held = Arc::strong_count(counter) > 1;
            let used = counter.take();
            if used != Use::default() {
                kept.sums.entry(key.clone()).or_default().add(&used);
                kept.is_changed = true;
            }
            is_held
        });
    }
}

impl Row {
    /// Its place among all rows. Texts of earlier rows are smaller, because a comma is smaller than
    /// every character of a name, and numbers have leading zeros.
    fn place(&self) -> String {
        let Key { tenant, since, pipeline, model } = &self.key;
        let hour = self.hour.map(|hour| hour.to_string()).unwrap_or_default();
        let pipeline = pipeline.as_ref().map(|name| name.as_str()).unwrap_or_default();
        format!("{hour},{tenant},{since:020},{pipeline},{model}")
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
        Key { tenant: name(tenant), since: 1, pipeline: Some(name("p")), model: name("m") }
    }

    fn end(counter: &Arc<Counter>, rows: usize) {
        let mut receipt = Receipt::open(Instant::now());
        receipt.charge_to(counter.clone());
        receipt.note().model.rows = rows;
        receipt.note().model.time = Duration::from_nanos(1_999);
        match rows {
            0 => receipt.failed(ErrorCode::ModelFailed, 0),
            _ => receipt.answered(10),
        };
    }

    fn all(book: &Book, by_hour: bool) -> Vec<(Option<String>, String, u64, u64)> {
        let (from, to) = (Hour::of(UNIX_EPOCH), Hour::of(UNIX_EPOCH + 10_000 * HOUR));
        let filter = Filter { from, to, by_hour, limit: 100, after: None };
        let rows = book.rows(&filter, |key| key.tenant.as_str() != "secret");
        let row = |row: Row| {
            let hour = row.hour.map(|hour| hour.to_string());
            (hour, row.key.tenant.to_string(), row.used.requests, row.used.rows)
        };
        rows.unwrap().rows.into_iter().map(row).collect()
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
        let filter = Filter { from, to, by_hour: false, limit: 100, after: None };
        let rows = book.rows(&filter, |_| true).unwrap().rows;
        assert_eq!(rows[0].used.model_us, 8);
        assert_eq!((rows[0].used.failed, rows[0].used.sent_bytes), (1, 30));

        book.keep(time + 2 * HOUR).unwrap();
        book.keep(time + 3 * HOUR).unwrap();
        let kept = all(&book, true);
        assert_eq!(kept.len(), 1, "the first hour is not kept any more: {kept:?}");
        // A clock that was set back adds to the hour that it shows.
        let late = book.counter(&key("late"));
        book.keep(time + 2 * HOUR).unwrap();
        end(&late, 1);
        book.keep(time + 2 * HOUR).unwrap();
        let hours: Vec<_> = all(&book, true).into_iter().map(|(hour, ..)| hour.unwrap()).collect();
        assert_eq!(hours, ["1970-01-05T05", "1970-01-05T06"]);
        // One that jumps far ahead removes nothing.
        book.keep(time + 1000 * HOUR).unwrap();
        book.keep(time + 2 * HOUR).unwrap();
        assert_eq!(all(&book, true).len(), 2);
    }

    #[test]
    fn rows_come_in_pages() {
        let folder = tempfile::tempdir().unwrap();
        let time = UNIX_EPOCH + 100 * HOUR;
        let book = Book::open(folder.path(), 9, time).unwrap();
        for hour in 0..3 {
            for tenant in ["a", "a-b", "b"] {
                end(&book.counter(&key(tenant)), 1);
            }
            book.keep(time + (hour + 1) * HOUR).unwrap();
        }
        for by_hour in [true, false] {
            let (from, to) = (Hour::of(time), Hour::of(time + 5 * HOUR));
            let mut filter = Filter { from, to, by_hour, limit: 100, after: None };
            let whole = book.rows(&filter, |_| true).unwrap();
            assert_eq!((whole.rows.len(), whole.next), (if by_hour { 9 } else { 3 }, None));
            filter.limit = 2;
            let mut pages = Vec::new();
            loop {
                let page = book.rows(&filter, |_| true).unwrap();
                assert!(page.rows.len() <= 2);
                pages.extend(page.rows);
                filter.after = page.next;
                if filter.after.is_none() {
                    break;
                }
            }
            assert_eq!(pages, whole.rows);
        }
    }

    #[test]
    fn hours_that_cannot_be_written_are_written_later() {
        let folder = tempfile::tempdir().unwrap();
        let (usage, away) = (folder.path().join("usage"), folder.path().join("away"));
        let time = UNIX_EPOCH + 100 * HOUR;
        let book = Book::open(&usage, 9, time).unwrap();
        fs::rename(&usage, &away).unwrap();
        end(&book.counter(&key("acme")), 1);
        assert!(book.keep(time + HOUR).is_err());
        end(&book.counter(&key("acme")), 1);
        assert!(book.keep(time + HOUR).is_err());
        assert_eq!(all(&book, true).len(), 2, "each in its own hour");
        fs::rename(&away, &usage).unwrap();
        book.keep(time + HOUR).unwrap();
        let read = Book::open(&usage, 9, time + HOUR).unwrap();
        assert_eq!(all(&read, true), all(&book, true));
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
        let damaged = [b"{\"tenant\": \"acme\"\n\xff\n", text.as_bytes()].concat();
        fs::write(&path, damaged).unwrap();
        let book = Book::open(folder.path(), 2, time).unwrap();
        assert_eq!(all(&book, false), [(None, "acme".into(), 1, 3)]);
    }
}
