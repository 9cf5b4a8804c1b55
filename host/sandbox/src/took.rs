//! The time that requests of a pipeline take from the begin of their first call to their end. A
//! request that has too little time left is refused before it begins.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use gristmill_core::Deadline;

use crate::pace::Mean;

/// Measures one request, also if it ends early.
pub(crate) struct Took {
    takes: Arc<Mean>,
    /// When its first call began.
    pub(crate) began: OnceLock<Instant>,
}

/// A request has to have so many times as much time as the mean takes.
const TIMES_THE_MEAN: u32 = 2;

impl Took {
    pub(crate) fn new(takes: &Arc<Mean>) -> Self {
        Self { takes: takes.clone(), began: OnceLock::new() }
    }

    /// The time at which a request with this deadline has to begin.
    pub(crate) fn latest(&self, deadline: Deadline) -> Option<Instant> {
        deadline.instant().checked_sub(self.takes.get() * TIMES_THE_MEAN)
    }

    /// The request has had all of its calls.
    pub(crate) fn whole(mut self) {
        if let Some(began) = self.began.take() {
            self.takes.note(began.elapsed());
        }
    }
}

impl Drop for Took {
    fn drop(&mut self) {
        // One that ended early says only that it took at least so long.
        let took = self.began.get().map_or(Duration::ZERO, Instant::elapsed);
        if took > self.takes.get() {
            self.takes.note(took);
        }
    }
}
