//! Waiting a moment for clients that were just answered.
//!
//! Clients that send one request after the other come back right after their answer. If the instance
//! took what little was queued at that moment, it would run a small batch, a large one would form
//! meanwhile, and so on by turns: half the throughput. So after a batch an instance waits for up to a
//! tenth of that batch's time until as many rows are queued as were answered. Where that does not pay
//! (others send at random), it is tried only now and then.

use std::time::{Duration, Instant};

/// Batches shorter than this do not wait: clients take about so long to come back.
const BATCH_TIME_MIN: Duration = Duration::from_micros(500);

/// The part of a batch's time that is waited at most.
const PART: u32 = 10;

/// Below this part of the rows that were hoped for it did not pay.
const GAIN_MIN: f64 = 0.25;

/// Where it does not pay it is tried after so many batches.
const TRY_EVERY: u32 = 32;

#[derive(Debug)]
pub(super) struct Linger {
    now: Option<Wait>,
    /// How much of what was hoped for came, recency-weighted.
    gain: f64,
    skipped: u32,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    until: Instant,
    rows_before: usize,
    rows_hoped: usize,
}

impl Default for Linger {
    fn default() -> Self {
        Self { now: None, gain: 1.0, skipped: 0 }
    }
}

impl Linger {
    /// Whether to wait after a batch of `answered` rows that takes `batch_time`, while `queued` wait.
    /// Asked once a batch: where it does not pay, that is what is counted until it is tried again.
    pub(super) fn hopes(
        &mut self,
        (answered, queued, max): (usize, usize, usize),
        batch_time: Duration,
    ) -> bool {
        let hopes = batch_time >= BATCH_TIME_MIN && max.min(queued + answered) > queued;
        let pays = self.gain >= GAIN_MIN || self.skipped >= TRY_EVERY;
        self.skipped += u32::from(hopes && !pays);
        hopes && pays
    }

    /// The batch was answered: wait. A wait that goes on already is not prolonged.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        (answered, queued, max): (usize, usize, usize),
        batch_time: Duration,
    ) {
        let rows_hoped = max.min(queued + answered);
        if self.now.is_none() && rows_hoped > queued {
            self.skipped = 0;
            let until = now + batch_time / PART;
            self.now = Some(Wait { until, rows_before: queued, rows_hoped });
        }
    }

    /// Until when to wait while `queued` rows wait; none where there is no reason to.
    pub(super) fn until(&self, queued: usize) -> Option<Instant> {
        self.now.filter(|wait| queued < wait.rows_hoped).map(|wait| wait.until)
    }

    /// A batch is taken from `queued` rows.
    pub(super) fn end(&mut self, queued: usize) {
        if let Some(wait) = self.now.take() {
            let came = queued.saturating_sub(wait.rows_before) as f64;
            let hoped = (wait.rows_hoped - wait.rows_before) as f64;
            self.gain = 0.75 * self.gain + 0.25 * (came / hoped).min(1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{BATCH_TIME_MIN, Linger, TRY_EVERY};

    const BATCH_TIME: Duration = Duration::from_millis(10);
    const MAX: usize = 64;

    /// A batch of 8 rows is answered while `before` rows wait, and the next one is taken from `after`:
    /// whether it was waited for.
    fn waited(linger: &mut Linger, before: usize, after: usize) -> bool {
        let hopes = linger.hopes((8, before, MAX), BATCH_TIME);
        if hopes {
            linger.begin(Instant::now(), (8, before, MAX), BATCH_TIME);
        }
        linger.end(after);
        hopes
    }

    #[test]
    fn a_tenth_of_the_batchs_time_is_waited_until_as_many_are_back() {
        let (mut linger, now) = (Linger::default(), Instant::now());
        assert_eq!(linger.until(0), None);
        assert!(linger.hopes((8, 2, MAX), BATCH_TIME));
        linger.begin(now, (8, 2, MAX), BATCH_TIME);
        let until = now + Duration::from_millis(1);
        assert_eq!((linger.until(2), linger.until(9)), (Some(until), Some(until)));
        assert_eq!(linger.until(10), None, "all are back");
        linger.begin(now + BATCH_TIME, (8, 2, MAX), BATCH_TIME);
        assert_eq!(linger.until(2), Some(until), "not prolonged");
        linger.end(10);
        assert_eq!(linger.until(2), None, "the batch is taken");
    }

    #[test]
    fn more_than_a_batch_takes_is_not_waited_for_nor_anything_after_a_short_batch() {
        let (mut linger, now) = (Linger::default(), Instant::now());
        assert!(linger.hopes((8, MAX - 1, MAX), BATCH_TIME_MIN));
        assert!(!linger.hopes((8, MAX, MAX), BATCH_TIME));
        assert!(!linger.hopes((8, 0, MAX), BATCH_TIME_MIN - Duration::from_nanos(1)));
        linger.begin(now, (8, MAX, MAX), BATCH_TIME);
        assert_eq!(linger.until(0), None);
        linger.begin(now, (8, MAX - 2, MAX), BATCH_TIME);
        assert!(linger.until(MAX - 1).is_some());
        assert_eq!(linger.until(MAX), None);
    }

    #[test]
    fn where_nobody_comes_back_it_is_given_up_and_tried_now_and_then() {
        let mut linger = Linger::default();
        let began = (0..100).take_while(|_| waited(&mut linger, 2, 2)).count();
        assert!((1..20).contains(&began), "given up after {began}");
        let tried = (0..10 * TRY_EVERY).filter(|_| waited(&mut linger, 2, 2)).count();
        assert!((9..=10).contains(&tried), "{tried}");
        // One that pays is enough to take it up again.
        while !waited(&mut linger, 2, 10) {}
        assert!((0..100).all(|_| waited(&mut linger, 2, 10)));
    }

    #[test]
    fn it_pays_where_a_part_comes_back() {
        let mut linger = Linger::default();
        assert!((0..100).all(|_| waited(&mut linger, 0, 4)), "half of those answered");
        let mut linger = Linger::default();
        assert!(!(0..100).all(|_| waited(&mut linger, 0, 1)), "an eighth of them");
    }
}
