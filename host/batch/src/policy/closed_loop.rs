//! Waiting a moment for clients that were just answered. Pure.
//!
//! Clients that send one request after the other come back right after their answer. If the
//! instance took the few requests queued at that moment, it would run a small batch, a large one
//! would form meanwhile, and so on by turns: half the throughput. So after a batch an instance
//! waits for up to a tenth of that batch's time until as many rows are queued as were answered.
//! Where that does not pay (others send at random), it is tried only now and then.

use std::time::{Duration, Instant};

use super::trial::Trial;

/// Batches shorter than this do not wait: clients take about so long to come back.
const BATCH_TIME_MIN: Duration = Duration::from_micros(500);

/// The part of a batch's time that is waited at most.
const PART: u32 = 10;

/// Below this part of the expected rows it did not pay.
const GAIN_MIN: f64 = 0.25;

/// If it does not pay, it is tried again after this many batches.
const TRY_EVERY: u32 = 32;

/// Whether to wait for clients to come back, and the wait that goes on.
#[derive(Debug)]
pub(super) struct ClosedLoop {
    now: Option<Wait>,
    /// The part of the expected rows that came, recency-weighted.
    gain: f64,
    trial: Trial,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    until: Instant,
    rows_before: usize,
    rows_expected: usize,
}

/// Rows around a batch that is about to be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueRows {
    /// Of the batch.
    pub(super) answered: usize,
    pub(super) queued: usize,
    /// The most in a batch.
    pub(super) max: usize,
}

impl QueueRows {
    /// The rows that are queued once the clients of the batch are back, as far as a batch takes
    /// them.
    fn expected(self) -> usize {
        self.max.min(self.queued + self.answered)
    }
}

impl Default for ClosedLoop {
    fn default() -> Self {
        Self { now: None, gain: 1.0, trial: Trial::new(TRY_EVERY) }
    }
}

impl ClosedLoop {
    /// Whether to wait after a batch that takes `batch_time`. Asked once a batch: where it does not
    /// pay, these are counted until it is tried again.
    pub(super) fn should_wait(&mut self, rows: QueueRows, batch_time: Duration) -> bool {
        let may_pay = batch_time >= BATCH_TIME_MIN && rows.expected() > rows.queued;
        may_pay && self.trial.should_try(self.gain >= GAIN_MIN)
    }

    /// The batch was answered: wait. A wait that goes on already is not prolonged.
    pub(super) fn begin(&mut self, now: Instant, rows: QueueRows, batch_time: Duration) {
        let (rows_before, rows_expected) = (rows.queued, rows.expected());
        if self.now.is_none() && rows_expected > rows_before {
            self.trial.begin();
            let until = now + batch_time / PART;
            self.now = Some(Wait { until, rows_before, rows_expected });
        }
    }

    /// Until when to wait while `queued` rows wait; none if there is no reason to.
    pub(super) fn until(&self, queued: usize) -> Option<Instant> {
        self.now.filter(|wait| queued < wait.rows_expected).map(|wait| wait.until)
    }

    /// A batch is taken from `queued` rows.
    pub(super) fn end(&mut self, queued: usize) {
        if let Some(wait) = self.now.take() {
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

    /// A batch of 8 rows is answered while `before` rows wait, and the next one is taken from
    /// `after`: whether it was waited for.
    fn waited(closed_loop: &mut ClosedLoop, before: usize, after: usize) -> bool {
        let waits = closed_loop.should_wait(rows(8, before), BATCH_TIME);
        if waits {
            closed_loop.begin(Instant::now(), rows(8, before), BATCH_TIME);
        }
        closed_loop.end(after);
        waits
    }

    #[test]
    fn a_tenth_of_the_batchs_time_is_waited_until_as_many_are_back() {
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
    fn more_than_a_batch_takes_is_not_waited_for_nor_anything_after_a_short_batch() {
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
    fn where_nobody_comes_back_it_is_given_up_and_tried_now_and_then() {
        let mut closed_loop = ClosedLoop::default();
        let began = (0..100).take_while(|_| waited(&mut closed_loop, 2, 2)).count();
        assert!((1..20).contains(&began), "given up after {began}");
        let tried = (0..10 * TRY_EVERY).filter(|_| waited(&mut closed_loop, 2, 2)).count();
        assert!((9..=10).contains(&tried), "{tried}");
        // One that pays is enough to take it up again.
        while !waited(&mut closed_loop, 2, 10) {}
        assert!((0..100).all(|_| waited(&mut closed_loop, 2, 10)));
    }

    #[test]
    fn it_pays_where_a_part_comes_back() {
        let mut closed_loop = ClosedLoop::default();
        assert!((0..100).all(|_| waited(&mut closed_loop, 0, 4)), "half of those answered");
        let mut closed_loop = ClosedLoop::default();
        assert!(!(0..100).all(|_| waited(&mut closed_loop, 0, 1)), "an eighth of them");
    }
}
