//! A histogram of durations, made of atomic numbers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::collected::Distribution;

/// The upper bounds of the ranges, in seconds. Values above the last one have a range of their own.
pub const DURATION_BOUNDS_S: [f64; 17] = [
    0.00001, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
    2.5, 5.0, 10.0,
];

/// The same in nanoseconds.
const BOUNDS_NS: [u64; DURATION_BOUNDS_S.len()] = {
    let mut bounds = [0; DURATION_BOUNDS_S.len()];
    let mut at = 0;
    while at < bounds.len() {
        // Rounded: no bound is finer than a microsecond.
        bounds[at] = (DURATION_BOUNDS_S[at] * 1e6 + 0.5) as u64 * 1000;
        at += 1;
    }
    bounds
};

/// How often durations fell into each range, and their sum.
#[derive(Debug, Default)]
pub struct Durations {
    counts: [AtomicU64; BOUNDS_NS.len() + 1],
    sum_ns: AtomicU64,
}

impl Durations {
    /// Count `time`.
    pub fn add(&self, time: Duration) {
        let nanos = nanos(time);
        let range = BOUNDS_NS.partition_point(|bound| *bound < nanos);
        self.counts[range].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(nanos, Relaxed);
    }

    /// The counts so far.
    pub fn get(&self) -> Distribution {
        let mut sum = Distribution::of(&DURATION_BOUNDS_S);
        self.add_to(&mut sum);
        sum
    }

    /// Add the counts so far to `sum`, which has the same ranges.
    pub(crate) fn add_to(&self, sum: &mut Distribution) {
        for (sum, count) in sum.counts.iter_mut().zip(&self.counts) {
            *sum += count.load(Relaxed);
        }
        sum.sum += self.sum_ns.load(Relaxed) as f64 / 1e9;
    }
}

/// In nanoseconds; 584 years at most.
pub(crate) fn nanos(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_range_that_ends_at_or_above_it() {
        let durations = Durations::default();
        for us in [0, 10, 11, 100, 2_500, 10_000_000, 10_000_001] {
            durations.add(Duration::from_micros(us));
        }
        let Distribution { bounds, counts, sum } = durations.get();
        assert_eq!(bounds, DURATION_BOUNDS_S);
        let expected = [2, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1];
        assert_eq!(counts, expected);
        assert!((sum - 20.002_622).abs() < 1e-9, "{sum}");
    }
}
