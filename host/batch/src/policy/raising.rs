//! Taking requests of a smaller bucket along in a batch of a larger one, if that is cheaper. Pure.
//!
//! A batch of the larger bucket takes longer with more rows, but the requests of the smaller bucket
//! then need no batch of their own. The times of both are learned from the batches that ran at the
//! size of their bucket, for each bucket by itself. Until both have run, nothing is taken along.

use std::collections::HashMap;
use std::time::Duration;

use super::shape::buckets_in;
use crate::service_time::ServiceTime;

/// How long batches take, by their buckets.
#[derive(Debug, Default)]
pub(super) struct Raising {
    times: HashMap<u64, ServiceTime>,
}

impl Raising {
    /// A batch of the shape `key` with `rows` rows, at the size of its bucket, took `time`.
    pub(super) fn observe(&mut self, key: u64, rows: usize, time: Duration) {
        if let Some(buckets) = buckets_in(key) {
            self.times.entry(buckets).or_default().observe(rows, time);
        }
    }

    /// Whether a batch of the `larger` shape, which has so many rows, should take along all queued
    /// rows of the `smaller` shape. Both are the key of a shape and a number of rows.
    pub(super) fn pays(&self, larger: (u64, usize), smaller: (u64, usize)) -> bool {
        let time = |key: u64, rows: usize| self.times.get(&buckets_in(key)?)?.of(rows);
        let together = time(larger.0, larger.1 + smaller.1);
        let (Some(together), Some(without), Some(alone)) =
            (together, time(larger.0, larger.1), time(smaller.0, smaller.1))
        else {
            return false;
        };
        together.saturating_sub(without) < alone
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::config::LaneConfig;
    use crate::policy::shape::key_of_buckets;
    use crate::policy::{Entry, Policy, Taken};

    const ROWS: [usize; 4] = [1, 2, 4, 8];

    /// The times of two buckets: each is a fixed time and one for each row, in microseconds.
    fn learned(small: (u64, u64), large: (u64, u64)) -> (Raising, u64, u64) {
        let mut raising = Raising::default();
        let keys = [key_of_buckets(5, &[0]), key_of_buckets(5, &[2])];
        for (key, (fixed, per_row)) in keys.into_iter().zip([small, large]) {
            for rows in ROWS {
                let time = Duration::from_micros(fixed + per_row * rows as u64);
                raising.observe(key, rows, time);
            }
        }
        (raising, keys[0], keys[1])
    }

    #[test]
    fn few_rows_are_taken_along_and_many_are_not() {
        // Each row costs 90 us more in the larger batch, and a batch of its own 200 us.
        let (raising, small, large) = learned((200, 10), (200, 100));
        for (rows, pays) in [(1, true), (2, true), (3, false), (8, false)] {
            assert_eq!(raising.pays((large, 4), (small, rows)), pays, "{rows} rows");
        }
    }

    #[test]
    fn nothing_is_taken_along_before_both_are_learned() {
        let (raising, small, large) = learned((200, 10), (200, 100));
        let other = key_of_buckets(5, &[1]);
        assert!(!raising.pays((large, 4), (other, 1)) && !raising.pays((other, 4), (small, 1)));
        assert!(!raising.pays((3, 4), (small, 1)), "a shape that is not padded");
    }

    /// The rows of the batch that is taken while the tenant `a` has queued `first` and the tenant
    /// `b` then `second`, each the key of a shape and a number of rows.
    fn taken(first: (u64, usize), second: (u64, usize), idle: usize) -> Vec<usize> {
        let mut policy = Policy::new(LaneConfig::new(8, 100));
        policy.raising = learned((200, 10), (200, 100)).0;
        let now = Instant::now();
        for (tenant, (shape_key, rows)) in ["a", "b"].into_iter().zip([first, second]) {
            policy.push(Entry {
                tenant: tenant.parse().unwrap(),
                weight: 1,
                level: 0,
                rows,
                bytes: rows,
                shape_key,
                arrived: now,
                deadline: now + Duration::from_secs(60),
                timeout: None,
                item: (),
            });
        }
        let mut taken = Taken::default();
        policy.take(now, (&ServiceTime::default(), idle), |()| false, &mut taken);
        taken.batch.iter().map(|entry| entry.rows).collect()
    }

    #[test]
    fn a_batch_takes_all_of_a_smaller_bucket_along_or_none() {
        let [small, large] = [0, 2].map(|bucket| key_of_buckets(5, &[bucket]));
        assert_eq!(taken((large, 4), (small, 2), 1), [4, 2]);
        assert_eq!(taken((large, 4), (small, 3), 1), [4], "it does not pay");
        assert_eq!(taken((large, 7), (small, 2), 1), [7], "there is no room for all");
        assert_eq!(taken((large, 4), (small, 2), 2), [4], "another instance is idle");
        assert_eq!(taken((small, 2), (large, 4), 1), [2], "a longer row does not fit");
        let other = key_of_buckets(6 << 20, &[0]);
        assert_eq!(taken((large, 4), (other, 2), 1), [4], "another shape");
    }
}
