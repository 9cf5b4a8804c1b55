//! Waiting a moment after a batch for the clients that it answered. Pure.
//!
//! A client in a closed loop sends its next request right after each answer. Suppose that an
//! instance starts its next batch at once: then the batch is small, because the answered clients
//! are not back yet. Their requests form a large batch meanwhile, then a small one follows, and so
//! on. Throughput is halved. So an instance waits after a batch until the answered rows are queued
//! again, but at most a tenth of the batch's time.
//!
//! If clients do not come back (they send at random times), waiting does not pay. It is then tried
//! only once in a number of batches.

use std::time::{Duration, Instant};

use super::trial::Trial;

/// No waiting after batches that are shorter than this: clients take about this long to come back.
const BATCH_TIME_MIN: Duration = Duration::from_micros(500);

/// The wait is at most the batch's time divided by this.
const PART: u32 = 10;

/// Waiting pays if at least this part of the expected rows came.
const GAIN_MIN: f64 = 0.25;

/// If waiting does not pay, it is tried again after this many batches.
const TRY_EVERY: u32 = 32;

/// Decides whether to wait for clients to come back, and holds the current wait.
#[derive(Debug)]
pub(super) struct ClosedLoop {
    current: Option<Wait>,
    /// The part of the expected rows that came: an average in which recent waits weigh more.
    gain: f64,
    trial: Trial,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    until: Instant,
    rows_before: usize,
    rows_expected: usize,
}

/// Numbers of rows when a batch is about to be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueRows {
    /// Rows of the batch.
    pub(super) answered: usize,
    /// Rows in the queue.
    pub(super) queued: usize,
    /// Maximum rows of a batch.
    pub(super) max: usize,
}

impl QueueRows {
    /// The rows that will be queued when all clients of the batch are back, at most those of one
    /// batch.
    fn expected(self) -> usize {
        self.max.min(self.queued + self.answered)
    }
}

impl Default for ClosedLoop {
    fn default() -> Self {
        Self { current: None, gain: 1.0, trial: Trial::new(TRY_EVERY) }
    }
}

impl ClosedLoop {
    /// Whether to wait after a batch that takes `batch_time`. Call this once for each batch: it
    /// counts the batches until waiting is tried again.
    pub(super) fn should_wait(&mut self, rows: QueueRows, batch_time: Duration) -> bool {
        let may_pay = batch_time >= BATCH_TIME_MIN && rows.expected() > rows.queued;
        may_pay && self.trial.should_try(self.gain >= GAIN_MIN)
    }

    /// Begin a wait, because the batch was answered. If a wait is under way, it stays as it is.
    pub(super) fn begin(&mut self, now: Instant, rows: QueueRows, batch_time: Duration) {
        let (rows_before, rows_expected) = (rows.queued, rows.expected());
        if self.current.is_none() && rows_expected > rows_before {
            self.trial.begin();
            let until = now + batch_time / PART;
            self.current = Some(Wait { until, rows_before, rows_expected });
        }
    }

    /// The end of the wait while `queued` rows are queued; none if there is nothing to wait for.
    pub(super) fn until(&self, queued: usize) -> Option<Instant> {
        self.current.filter(|wait| queued < wait.rows_expected).map(|wait| wait.until)
    }

    /// End the wait, because the next batch is taken from `queued` rows.
    pub(super) fn end(&mut self, queued: usize) {
        if let Some(wait) = self.current.take() {
            let came = queued.saturating_sub(wait.rows_before) as f64;
            let expected = (wait.rows_expected - wait.rows_before) as f64;
            self.gain = 0.75 * self.gain + 0.25 * (came / expected).min(1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{BATCH_TIME_MIN, ClosedLoop, QueueRows, TRY_EVERY};

    const BATCH_TIME: Duration = Duration::from_millis(10);
    const MAX: usize = 64;

    fn rows(answered: usize, queued: usize) -> QueueRows {
        QueueRows { answered, queued, max: MAX }
    }

    /// A batch of 8 rows is answered while `before` rows are queued. The next batch is taken from
    /// `after` queued rows. Returns whether there was a wait between them.
    fn waited(closed_loop: &mut ClosedLoop, before: usize, after: usize) -> bool {
        let waits = closed_loop.should_wait(rows(8, before), BATCH_TIME);
        if waits {
            closed_loop.begin(Instant::now(), rows(8, before), BATCH_TIME);
        }
        closed_loop.end(after);
        waits
    }

    #[test]
    fn it_waits_at_most_a_tenth_of_the_batchs_time_until_all_are_back() {
        let (mut closed_loop, now) = (ClosedLoop::default(), Instant::now());
        assert_eq!(closed_loop.until(0), None);
        assert!(closed_loop.should_wait(rows(8, 2), BATCH_TIME));
        closed_loop.begin(now, rows(8, 2), BATCH_TIME);
        let until = now + Duration::from_millis(1);
        assert_eq!((closed_loop.until(2), closed_loop.until(9)), (Some(until), Some(until)));
        assert_eq!(closed_loop.until(10), None, "all are back");
        closed_loop.begin(now + BATCH_TIME, rows(8, 2), BATCH_TIME);
        assert_eq!(closed_loop.until(2), Some(until), "not prolonged");
        closed_loop.end(10);
        assert_eq!(closed_loop.until(2), None, "the batch is taken");
    }

    #[test]
    fn it_waits_neither_for_more_than_a_batch_nor_after_a_short_batch() {
        let (mut closed_loop, now) = (ClosedLoop::default(), Instant::now());
        assert!(closed_loop.should_wait(rows(8, MAX - 1), BATCH_TIME_MIN));
        assert!(!closed_loop.should_wait(rows(8, MAX), BATCH_TIME));
        assert!(!closed_loop.should_wait(rows(8, 0), BATCH_TIME_MIN - Duration::from_nanos(1)));
        closed_loop.begin(now, rows(8, MAX), BATCH_TIME);
        assert_eq!(closed_loop.until(0), None);
        closed_loop.begin(now, rows(8, MAX - 2), BATCH_TIME);
        assert!(closed_loop.until(MAX - 1).is_some());
        assert_eq!(closed_loop.until(MAX), None);
    }

    #[test]
    fn if_nobody_comes_back_waiting_is_only_tried_again_from_time_to_time() {
        let mut closed_loop = ClosedLoop::default();
        let began = (0..100).take_while(|_| waited(&mut closed_loop, 2, 2)).count();
        assert!((1..20).contains(&began), "given up after {began}");
        let tried = (0..10 * TRY_EVERY).filter(|_| waited(&mut closed_loop, 2, 2)).count();
        assert!((9..=10).contains(&tried), "{tried}");
        // One wait that pays is enough to wait after each batch again.
        while !waited(&mut closed_loop, 2, 10) {}
        assert!((0..100).all(|_| waited(&mut closed_loop, 2, 10)));
    }

    #[test]
    fn waiting_pays_if_enough_rows_come_back() {
        let mut closed_loop = ClosedLoop::default();
        assert!((0..100).all(|_| waited(&mut closed_loop, 0, 4)), "half of those answered");
        let mut closed_loop = ClosedLoop::default();
        assert!(!(0..100).all(|_| waited(&mut closed_loop, 0, 1)), "an eighth of them");
    }
}
