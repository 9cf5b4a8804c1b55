//! Whether requests of a lane still share batches. They do until a run shows that rows influence
//! each other.
//!
//! A proof and a declaration can be wrong. Two things show it: another number of rows comes out
//! than went in, or a request that is run again alone gets another answer. Runs are repeated only
//! where the independence of rows is declared, not proven.
//!
//! Invariant: once sharing has ended, no two requests run together, and none is padded or cut.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// One in so many shared batches is checked, the first one among them.
const CHECK_EVERY: u64 = 100;

/// Whether requests share batches.
pub(crate) struct Sharing {
    model: Arc<str>,
    /// Whether shared batches are checked.
    is_checked: bool,
    /// Shared batches so far, if they are checked.
    batches: AtomicU64,
    /// Why it ended.
    ended: OnceLock<Arc<str>>,
}

impl Sharing {
    pub(crate) fn new(model: Arc<str>, is_checked: bool) -> Self {
        Self { model, is_checked, batches: AtomicU64::new(0), ended: OnceLock::new() }
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

    /// Count a shared batch of so many requests. Returns the request that is to be run again alone,
    /// if one is.
    pub(crate) fn checks(&self, requests: usize) -> Option<usize> {
        if !self.is_checked || requests < 2 {
            return None;
        }
        let batch = self.batches.fetch_add(1, Ordering::Relaxed);
        let round = (batch / CHECK_EVERY) as usize;
        batch.is_multiple_of(CHECK_EVERY).then_some(round % requests)
    }
}
