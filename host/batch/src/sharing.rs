//! Whether requests of a lane still share batches. They do until a run shows that rows influence
//! each other.
//!
//! A proof and a declaration can be wrong. Two things show it: another number of rows comes out
//! than went in, or a request that ran among others or padded, and is run again alone, gets another
//! answer. Runs are repeated only where the independence of rows is declared, not proven.
//!
//! Invariant: once sharing has ended, no two requests run together, and none is padded or cut.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gristmill_core::Tensor;

use crate::config::LaneConfig;

/// One in so many shared or padded batches is checked, the first one among them.
const CHECK_EVERY: u64 = 100;

/// Whether requests share batches.
pub(crate) struct Sharing {
    model: Arc<str>,
    /// Whether the lane forms batches.
    is_shared: bool,
    /// Whether shared and padded batches are checked.
    is_checked: bool,
    /// Shared or padded batches so far, if they are checked.
    batches: AtomicU64,
    /// Why it ended.
    ended: OnceLock<Arc<str>>,
}

impl Sharing {
    pub(crate) fn new(model: Arc<str>, config: &LaneConfig) -> Self {
        Self {
            model,
            is_shared: config.max_batch_size > 1,
            is_checked: config.rows_are_declared,
            batches: AtomicU64::new(0),
            ended: OnceLock::new(),
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

    /// Compare the rows of a request that ran alone with those of its outputs. They may differ if
    /// the lane forms no batches.
    pub(crate) fn compare_rows(&self, rows: usize, outputs: &[Tensor]) {
        let odd = outputs.iter().map(Tensor::rows).find(|rows_out| *rows_out != rows);
        if let Some(rows_out) = odd.filter(|_| self.is_shared && !self.has_ended()) {
            self.end(&format!("{rows} rows went in, {rows_out} came out"));
        }
    }

    /// Count a batch of so many requests, whose rows were run with others or with so many rows of
    /// `padding`. Returns the request that is to be run again alone, if one is.
    pub(crate) fn checks(&self, requests: usize, padding: usize) -> Option<usize> {
        if !self.is_checked || requests < 2 && padding == 0 {
            return None;
        }
        let batch = self.batches.fetch_add(1, Ordering::Relaxed);
        let round = (batch / CHECK_EVERY) as usize;
        batch.is_multiple_of(CHECK_EVERY).then_some(round % requests)
    }
}
