//! The rows that a tenant has under way in models' queues and runs.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Without a limit, rows are not counted.
const NO_LIMIT: usize = usize::MAX;

/// The rows under way of one tenant, and how many there may be.
#[derive(Debug)]
pub struct RowsInFlight {
    held: AtomicUsize,
    max: AtomicUsize,
}

/// Rows that count as under way until this is dropped.
#[derive(Debug)]
pub struct HeldRows<'a> {
    of: &'a RowsInFlight,
    rows: usize,
}

/// More rows than there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyRows {
    /// The rows that would be under way.
    pub wanted: usize,
    /// The most rows.
    pub max: usize,
}

impl Default for RowsInFlight {
    fn default() -> Self {
        Self { held: AtomicUsize::new(0), max: AtomicUsize::new(NO_LIMIT) }
    }
}

impl RowsInFlight {
    /// The rows that are under way and counted.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Replace the limit. Rows under way stay so.
    pub fn set(&self, max: Option<usize>) {
        self.max.store(max.unwrap_or(NO_LIMIT), Ordering::Relaxed);
    }

    /// Count `rows` as under way.
    ///
    /// # Errors
    /// [`TooManyRows`]. Nothing changes then.
    pub fn take(&self, rows: usize) -> Result<HeldRows<'_>, TooManyRows> {
        let max = self.max.load(Ordering::Relaxed);
        if max == NO_LIMIT {
            return Ok(HeldRows { of: self, rows: 0 });
        }
        let held = HeldRows { of: self, rows };
        let wanted = self.held.fetch_add(rows, Ordering::Relaxed).saturating_add(rows);
        if wanted > max { Err(TooManyRows { wanted, max }) } else { Ok(held) }
    }
}

impl Drop for HeldRows<'_> {
    fn drop(&mut self) {
        self.of.held.fetch_sub(self.rows, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_the_limit_are_refused_until_others_end() {
        let rows = RowsInFlight::default();
        let uncounted = rows.take(1_000_000).unwrap();
        assert_eq!(rows.held(), 0);
        rows.set(Some(10));
        let first = rows.take(6).unwrap();
        assert_eq!(rows.take(5).unwrap_err(), TooManyRows { wanted: 11, max: 10 });
        let second = rows.take(4).unwrap();
        drop((first, uncounted));
        assert_eq!(rows.held(), 4);
        // What is under way stays so when the limit is lowered.
        rows.set(Some(3));
        assert!(rows.take(1).is_err());
        drop(second);
        assert!(rows.take(3).is_ok());
        assert_eq!(rows.held(), 0);
    }
}
