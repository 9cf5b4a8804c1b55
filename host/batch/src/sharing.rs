//! Whether requests of a lane still share batches. They do until a run shows that rows influence
//! each other. Rows of different lengths do until a run shows that filling them up changes one.
//!
//! A proof and a declaration can be wrong. Two things show it: another number of rows comes out
//! than went in, or a request that ran among others, padded or filled up, and is run again alone,
//! gets another answer. Runs are repeated only where the independence of rows is declared, not
//! proven, and where rows were filled up: a trial of that proves little.
//!
//! A client can send a row that filling up changes, such as one whose mask hides all places. Such a
//! row ends filling up, and nothing else. If the independence of rows is declared, the next batch
//! that is shared and not filled up is checked.
//!
//! Invariant: once sharing has ended, no two requests run together, and none is padded or cut. Once
//! filling up has ended, none is filled up or cut back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gristmill_core::Tensor;

use crate::config::LaneConfig;

/// One in so many batches that may be checked is, the first one among them. Batches that are filled
/// up are counted apart.
const CHECK_EVERY: u64 = 100;

/// Whether requests share batches.
pub(crate) struct Sharing {
    model: Arc<str>,
    /// Whether the lane forms batches.
    is_shared: bool,
    /// Whether shared and padded batches are checked, not only those whose rows are filled up.
    is_checked: bool,
    /// Batches so far that may be checked and were not filled up.
    batches: AtomicU64,
    /// Batches so far that were filled up.
    filled_batches: AtomicU64,
    /// Why it ended.
    ended: OnceLock<Arc<str>>,
    /// Why rows are not filled up any more.
    filling_ended: OnceLock<Arc<str>>,
}

impl Sharing {
    pub(crate) fn new(model: Arc<str>, config: &LaneConfig) -> Self {
        Self {
            model,
            is_shared: config.max_batch_size > 1,
            is_checked: config.rows_are_declared,
            batches: AtomicU64::new(0),
            filled_batches: AtomicU64::new(0),
            ended: OnceLock::new(),
            filling_ended: OnceLock::new(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Why it ended.
    pub(crate) fn why_ended(&self) -> Option<Arc<str>> {
        self.ended.get().cloned()
    }

    /// End it for this reason.
    pub(crate) fn end(&self, why: &str) {
        if self.ended.set(why.into()).is_ok() {
            tracing::error!(
                model = &*self.model,
                why,
                "rows of this model influence each other: its requests run alone from now on"
            );
        }
    }

    /// Whether rows may not be filled up any more.
    pub(crate) fn has_filling_ended(&self) -> bool {
        self.filling_ended.get().is_some() || self.has_ended()
    }

    /// Why rows are not filled up any more.
    pub(crate) fn why_filling_ended(&self) -> Option<Arc<str>> {
        self.filling_ended.get().cloned()
    }

    /// End what a batch with a wrong answer has shown to be wrong.
    pub(crate) fn end_for(&self, why: &str, is_filled: bool) {
        if !is_filled {
            self.end(why);
        } else if self.filling_ended.set(why.into()).is_ok() {
            // The declaration may be wrong, too: the next batch without filling is checked.
            self.batches.store(0, Ordering::Relaxed);
            tracing::error!(
                model = &*self.model,
                why,
                "what pad and cut say is not true of this model for a request: rows of different \
                 lengths share no batches from now on"
            );
        }
    }

    /// Compare the rows of a request that ran alone with those of its outputs. They may differ if
    /// the lane forms no batches.
    pub(crate) fn compare_rows(&self, rows: usize, outputs: &[Tensor]) {
        let odd = outputs.iter().map(Tensor::rows).find(|rows_out| *rows_out != rows);
        if let Some(rows_out) = odd.filter(|_| self.is_shared && !self.has_ended()) {
            self.end(&format!("{rows} rows went in, {rows_out} came out"));
        }
    }

    /// Count a batch of so many requests, whose rows were run with others or with so many rows of
    /// `padding`. The rows in these places were `filled` up. Returns the request that is to be run
    /// again alone, if one is.
    pub(crate) fn checks(
        &self,
        requests: usize,
        padding: usize,
        filled: &[usize],
    ) -> Option<usize> {
        let is_shared = requests > 1 || padding > 0;
        if filled.is_empty() && !(self.is_checked && is_shared) {
            return None;
        }
        let batches = if filled.is_empty() { &self.batches } else { &self.filled_batches };
        let batch = batches.fetch_add(1, Ordering::Relaxed);
        let round = (batch / CHECK_EVERY) as usize;
        let place = match filled {
            [] => round % requests,
            filled => filled[round % filled.len()],
        };
        batch.is_multiple_of(CHECK_EVERY).then_some(place)
    }
}
