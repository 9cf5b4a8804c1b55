//! How long a batch of n rows takes: s(n) = a + b n, learned from the batches that ran. Pure.
//!
//! A least-squares fit in which a batch counts a little less than the next one. So if a model
//! becomes slower, the estimate follows after some dozens of batches.

use std::time::Duration;

/// The factor by which a batch's weight is reduced at each later batch.
const DECAY: f64 = 0.95;

/// The most that one batch counts, as a multiple of the usual time: a single stall must not change
/// the estimate much.
const STALL: f64 = 8.0;

/// The learned service time of a lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceTime {
    weight: f64,
    rows: f64,
    rows_squared: f64,
    seconds: f64,
    rows_seconds: f64,
}

impl ServiceTime {
    /// A batch of `rows` rows took `time`.
    pub(crate) fn observe(&mut self, rows: usize, time: Duration) {
        let stall = self.of(rows).map_or(f64::INFINITY, |usual| usual.as_secs_f64() * STALL);
        let (n, t) = (rows as f64, time.as_secs_f64().min(stall));
        for (sum, new) in [
            (&mut self.weight, 1.0),
            (&mut self.rows, n),
            (&mut self.rows_squared, n * n),
            (&mut self.seconds, t),
            (&mut self.rows_seconds, n * t),
        ] {
            *sum = *sum * DECAY + new;
        }
    }

    /// The learned a and b in seconds; neither is negative. None until batches of different sizes
    /// have run.
    pub(crate) fn line(&self) -> Option<(f64, f64)> {
        let (mean_rows, mean_seconds) = self.mean()?;
        let variance = self.rows_squared / self.weight - mean_rows * mean_rows;
        let covariance = self.rows_seconds / self.weight - mean_rows * mean_seconds;
        if variance < 1e-3 * mean_rows * mean_rows {
            return None;
        }
        let slope = (covariance / variance).clamp(0.0, mean_seconds / mean_rows);
        Some((mean_seconds - slope * mean_rows, slope))
    }

    /// s(`rows`); none before the first batch. If all batches so far had about the same size, a
    /// smaller batch is assumed to take as long, and a larger one longer in proportion.
    pub(crate) fn of(&self, rows: usize) -> Option<Duration> {
        let (mean_rows, mean_seconds) = self.mean()?;
        let seconds = match self.line() {
            Some((fixed, per_row)) => fixed + per_row * rows as f64,
            None => mean_seconds * (rows as f64 / mean_rows).max(1.0),
        };
        Duration::try_from_secs_f64(seconds).ok()
    }

    fn mean(&self) -> Option<(f64, f64)> {
        (self.weight > 0.0).then(|| (self.rows / self.weight, self.seconds / self.weight))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(time: Option<Duration>, expected_us: f64) -> bool {
        time.is_some_and(|time| (time.as_secs_f64() * 1e6 - expected_us).abs() < expected_us * 0.02)
    }

    #[test]
    fn a_line_is_learned_and_learned_anew() {
        let mut service = ServiceTime::default();
        assert_eq!(service.of(1), None);
        for n in (0..200).map(|i| 1 + i * 7 % 32) {
            service.observe(n, Duration::from_micros(100 + 10 * n as u64));
        }
        assert!(near(service.of(1), 110.0) && near(service.of(64), 740.0));
        for n in (0..200).map(|i| 1 + i * 7 % 32) {
            service.observe(n, Duration::from_micros(500));
        }
        assert!(near(service.of(64), 500.0), "{:?}", service.of(64));
    }

    #[test]
    fn from_batches_of_one_size_nothing_is_hoped_for_smaller_ones() {
        let mut service = ServiceTime::default();
        for time in [10, 11, 9, 10] {
            service.observe(4, Duration::from_millis(time));
        }
        assert!(near(service.of(1), 10_000.0) && near(service.of(8), 20_000.0));
        assert_eq!(service.line(), None);
    }

    const MAX_ROWS: usize = 64;

    /// Batches of any size, each up to a tenth faster or slower than s(n).
    fn noisy_batches() -> impl Strategy<Value = Vec<(usize, f64)>> {
        prop::collection::vec((1..=MAX_ROWS, 0.9..1.1_f64), 200..220)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

        /// About 100,000 batches. After 200 of them the estimate is within an eighth of the longest
        /// batch. After 200 batches with another s(n), the estimate has followed.
        #[test]
        fn any_line_is_learned_from_noisy_batches_and_learned_anew(
            lines in prop::array::uniform2((50.0..2000.0_f64, 1.0..100.0_f64)),
            batches in prop::array::uniform2(noisy_batches()),
        ) {
            let mut service = ServiceTime::default();
            for ((fixed_us, row_us), batches) in lines.into_iter().zip(batches) {
                let line_us = |rows: usize| fixed_us + row_us * rows as f64;
                for (rows, noise) in batches {
                    service.observe(rows, Duration::from_secs_f64(line_us(rows) * noise / 1e6));
                }
                for rows in [1, MAX_ROWS / 2, MAX_ROWS] {
                    let (expected, learned) = (line_us(rows), service.of(rows).unwrap());
                    let off = (learned.as_secs_f64() * 1e6 - expected).abs();
                    prop_assert!(off < line_us(MAX_ROWS) / 8.0, "{rows} rows: {learned:?}, {expected} us");
                }
            }
        }
    }
}
