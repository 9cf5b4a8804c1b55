//! What the caller of long work brings along, and asking it in the middle of the work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::error::Stopped;

/// Says whether the work may go on.
pub type Check<'a> = &'a (dyn Fn() -> Result<(), Stopped> + Sync);

/// What the caller of long work brings along.
pub struct Work<'a> {
    /// Is asked about every half of a millisecond, between steps.
    pub check: Check<'a>,
    /// The most that one search with an expression may cost here, which cannot be stopped: its
    /// places times the bytes of the text. One that may cost more stops the work before it.
    pub search_cost_max: usize,
    /// Is told how many bytes the work takes besides those before, before it takes them. The caller
    /// gives them back when the work has ended.
    pub reserve: &'a mut dyn FnMut(usize) -> Result<(), Stopped>,
}

/// The longest time between two checks, in microseconds, as far as the steps are shorter.
const BETWEEN: u64 = 500;

/// Decides when the next check is due, and makes it.
pub(crate) struct Pace<'a> {
    check: Check<'a>,
    search_cost_max: usize,
    begun: Instant,
    /// When the caller was last asked, in microseconds after the begin.
    asked: AtomicU64,
}

impl<'a> Pace<'a> {
    pub(crate) fn new(work: &Work<'a>) -> Self {
        Self {
            check: work.check,
            search_cost_max: work.search_cost_max,
            begun: Instant::now(),
            asked: AtomicU64::new(0),
        }
    }

    /// A search is next, which may cost so much.
    pub(crate) fn before_search(&self, cost: usize) -> Result<(), Stopped> {
        if cost > self.search_cost_max {
            return Err(Stopped);
        }
        self.ask()
    }

    /// A step is next.
    pub(crate) fn ask(&self) -> Result<(), Stopped> {
        let now = self.begun.elapsed().as_micros() as u64;
        if now - self.asked.load(Ordering::Relaxed) < BETWEEN {
            return Ok(());
        }
        self.asked.store(now, Ordering::Relaxed);
        (self.check)()
    }
}
