//! Which requests share the next batch. Pure: time comes in as a parameter, requests are opaque.
//!
//! First come, first served within a shape: the oldest request decides the batch's shape, younger
//! ones of the same shape join it, and those of another shape keep their place.

use std::collections::VecDeque;
use std::time::Instant;

/// A queued request: what the policy needs to know of it, and the rest.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) rows: usize,
    /// Requests of equal keys fit one batch.
    pub(crate) shape_key: u64,
    /// When nobody waits any more.
    pub(crate) deadline: Instant,
    pub(crate) item: T,
}

/// The queue of a lane.
#[derive(Debug)]
pub(crate) struct Policy<T> {
    queue: VecDeque<Entry<T>>,
    queued_rows: usize,
    batch_rows_max: usize,
    queue_rows_max: usize,
}

/// What comes off the queue: a batch, empty where nothing is left, and what came too late for it.
#[derive(Debug)]
pub(crate) struct Taken<T> {
    pub(crate) batch: Vec<Entry<T>>,
    pub(crate) expired: Vec<Entry<T>>,
}

impl<T> Policy<T> {
    pub(crate) fn new(batch_rows_max: usize, queue_rows_max: usize) -> Self {
        Self { queue: VecDeque::new(), queued_rows: 0, batch_rows_max, queue_rows_max }
    }

    pub(crate) fn queued_rows(&self) -> usize {
        self.queued_rows
    }

    /// Queue `entry`, whose rows are at most a batch's; given back where the queue is full.
    pub(crate) fn push(&mut self, entry: Entry<T>) -> Result<(), Entry<T>> {
        if self.queued_rows + entry.rows > self.queue_rows_max {
            return Err(entry);
        }
        self.queued_rows += entry.rows;
        self.queue.push_back(entry);
        Ok(())
    }

    /// The next batch at `now`. Entries for which `gone` holds are dropped on the way: they cost no
    /// compute.
    pub(crate) fn take(&mut self, now: Instant, gone: impl Fn(&T) -> bool) -> Taken<T> {
        let mut taken = Taken { batch: Vec::new(), expired: Vec::new() };
        let mut rows = 0;
        let mut passed_over = VecDeque::new();
        while let Some(entry) = self.queue.pop_front() {
            if gone(&entry.item) {
                self.queued_rows -= entry.rows;
            } else if entry.deadline <= now {
                self.queued_rows -= entry.rows;
                taken.expired.push(entry);
            } else if taken.batch.first().is_some_and(|first| first.shape_key != entry.shape_key) {
                passed_over.push_back(entry);
            } else if rows + entry.rows > self.batch_rows_max {
                // Younger ones of this shape do not pass it.
                self.queue.push_front(entry);
                break;
            } else {
                self.queued_rows -= entry.rows;
                rows += entry.rows;
                taken.batch.push(entry);
            }
        }
        while let Some(entry) = passed_over.pop_back() {
            self.queue.push_front(entry);
        }
        taken
    }
}

#[cfg(test)]
mod tests;
