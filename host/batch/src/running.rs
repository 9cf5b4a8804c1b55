//! The batches that run now: the time until which each may run, and how a run is ended.
//!
//! A run that goes on for too long after the last deadline of its requests is told to end
//! (`core::Interrupt`). If it still goes on, it is lost: its thread and its instance are counted
//! and no longer used, and others replace them (`watch`).
//!
//! Invariant: a run is told to end only under the lane's lock and while it is on this list. So the
//! order never reaches the instance's next run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use gristmill_core::{Interrupt, Model};

/// One instance of the model, and the order to end its runs.
pub(crate) struct Instance {
    pub(crate) model: Box<dyn Model>,
    pub(crate) stop: Arc<Stop>,
}

impl Instance {
    pub(crate) fn new(model: Box<dyn Model>) -> Self {
        let interrupt = model.interrupt();
        Self { model, stop: Arc::new(Stop { ordered: AtomicBool::new(false), interrupt }) }
    }
}

/// The order to end a run.
pub(crate) struct Stop {
    ordered: AtomicBool,
    /// None if the model cannot be interrupted.
    interrupt: Option<Arc<dyn Interrupt>>,
}

impl Stop {
    pub(crate) fn is_ordered(&self) -> bool {
        self.ordered.load(Ordering::Acquire)
    }

    fn order(&self) {
        self.ordered.store(true, Ordering::Release);
        if let Some(interrupt) = &self.interrupt {
            interrupt.interrupt();
        }
    }

    pub(crate) fn lift(&self) {
        if self.ordered.swap(false, Ordering::AcqRel)
            && let Some(interrupt) = &self.interrupt
        {
            interrupt.rearm();
        }
    }
}

/// A batch in an instance.
struct Run {
    id: u64,
    /// When it is expected to end.
    until: Instant,
    /// When it is told to end.
    give_up_at: Instant,
    /// When it was told to end. None before.
    told_at: Option<Instant>,
    /// Whether a submitting task runs it, not a worker.
    led: bool,
    stop: Arc<Stop>,
}

/// A run that begins.
pub(crate) struct Begun<'a> {
    pub(crate) until: Instant,
    pub(crate) give_up_at: Instant,
    pub(crate) led: bool,
    pub(crate) instance: &'a Instance,
}

/// The batches that run now.
#[derive(Default)]
pub(crate) struct RunningBatches {
    runs: Vec<Run>,
    next: u64,
    /// Runs that were told to end, did not end, and still go on.
    lost: usize,
}

/// A run that was given up and still goes on.
pub(crate) struct Lost {
    pub(crate) led: bool,
}

impl RunningBatches {
    /// The number under which the run [ends](Self::end).
    pub(crate) fn begin(&mut self, begun: Begun<'_>) -> u64 {
        let Begun { until, give_up_at, led, instance } = begun;
        let (id, stop) = (self.next, instance.stop.clone());
        self.next += 1;
        self.runs.push(Run { id, until, give_up_at, told_at: None, led, stop });
        id
    }

    /// The run is over. Returns false if it was lost: then its instance must not be used again.
    pub(crate) fn end(&mut self, id: u64) -> bool {
        let Some(at) = self.runs.iter().position(|run| run.id == id) else {
            self.lost -= 1;
            return false;
        };
        self.runs.swap_remove(at).stop.lift();
        true
    }

    /// When the first instance is expected to be free.
    pub(crate) fn first_end(&self) -> Option<Instant> {
        self.runs.iter().map(|run| run.until).min()
    }

    /// Whether no batch runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The number of runs that are not over, including lost ones.
    pub(crate) fn len(&self) -> usize {
        self.runs.len() + self.lost
    }

    /// Tell all runs that are due at `now` to end. Returns how many there were.
    pub(crate) fn tell_overdue(&mut self, now: Instant) -> usize {
        let due = |run: &&mut Run| run.told_at.is_none() && run.give_up_at <= now;
        let mut count = 0;
        for run in self.runs.iter_mut().filter(due) {
            run.told_at = Some(now);
            run.stop.order();
            count += 1;
        }
        count
    }

    /// Give up a run that was told to end before `told_before` and goes on.
    pub(crate) fn lose(&mut self, told_before: Instant) -> Option<Lost> {
        let is_due = |run: &Run| run.told_at.is_some_and(|at| at <= told_before);
        let at = self.runs.iter().position(is_due)?;
        self.lost += 1;
        Some(Lost { led: self.runs.swap_remove(at).led })
    }
}

#[cfg(test)]
mod tests;
