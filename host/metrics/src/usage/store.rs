//! All usage: the counters, the sums of the hours that are not on disk yet, and the files.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::counter::{Counter, Key, Use};
use super::file::{self, Sums, UsageError};
use super::hour::Hour;

/// Maximum hours between two readings of the clock after which old files are removed. A clock that
/// jumps further is probably wrong, and must not remove what is not old.
const JUMP_MAX: u64 = 48;

/// The usage of all tenants of one server.
pub struct UsageStore {
    folder: PathBuf,
    /// Retention in hours, without the current one.
    keep_hours: u64,
    counters: Mutex<HashMap<Key, Arc<Counter>>>,
    current: Mutex<CurrentHour>,
}

struct CurrentHour {
    hour: Hour,
    /// The sums of the hour, and those of earlier hours that could not be written.
    sums: BTreeMap<Hour, HourTotals>,
}

/// The totals of an hour.
#[derive(Clone, Default)]
struct HourTotals {
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
    /// Maximum rows.
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

impl UsageStore {
    /// The store in this folder, which is made if it is missing. Sums of the current hour are read.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn open(folder: &Path, keep_hours: u64, time: SystemTime) -> Result<Self, UsageError> {
        fs::create_dir_all(folder).map_err(UsageError::at(folder))?;
        file::remove_temporary(folder)?;
        let hour = Hour::of(time);
        let totals = HourTotals { sums: file::read(folder, hour)?, is_changed: false };
        let current = Mutex::new(CurrentHour { hour, sums: BTreeMap::from([(hour, totals)]) });
        let counters = Mutex::default();
        Ok(Self { folder: folder.to_owned(), keep_hours, counters, current })
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
        let mut current = self.current.lock();
        self.collect(&mut current);
        let (hour, before) = (Hour::of(time), current.hour);
        if hour != before {
            if let Entry::Vacant(vacant) = current.sums.entry(hour) {
                let sums = file::read(&self.folder, hour)?;
                vacant.insert(HourTotals { sums, is_changed: false });
            }
            current.hour = hour;
        }
        for (hour, totals) in &mut current.sums {
            if totals.is_changed {
                file::write(&self.folder, *hour, &totals.sums)?;
                totals.is_changed = false;
            }
        }
        current.sums.retain(|kept_hour, _| *kept_hour == hour);
        drop(current);
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
            let mut current = self.current.lock();
            self.collect(&mut current);
            current.sums.clone()
        };
        let is_later = |row: &Row| after.as_ref().is_none_or(|after| row.place() > *after);
        let mut rows: BTreeMap<(Option<Hour>, Key), Use> = BTreeMap::new();
        for hour in from.to(*to) {
            let sums = match unwritten.get(&hour) {
                Some(totals) => totals.sums.clone(),
                None => file::read(&self.folder, hour)?,
            };
            for (key, used) in sums.into_iter().filter(|(key, _)| is_seen(key)) {
                let row_hour = by_hour.then_some(hour);
                let row = Row { hour: row_hour, key, used };
                if !*by_hour || is_later(&row) {
                    rows.entry((row_hour, row.key)).or_default().add(&row.used);
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

    /// Add what was counted to the sums of the current hour.
    fn collect(&self, current: &mut CurrentHour) {
        let totals = current.sums.entry(current.hour).or_default();
        self.counters.lock().retain(|key, counter| {
            let is_held = Arc::strong_count(counter) > 1;
            let used = counter.take();
            if used != Use::default() {
                totals.sums.entry(key.clone()).or_default().add(&used);
                totals.is_changed = true;
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
mod tests;
