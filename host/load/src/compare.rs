//! Comparing two measurements: what differs, and what is noise.

use crate::arrivals::Random;
use crate::measured::{Measured, Second};
use crate::statistics::{median, percentile};

/// The samples that are drawn to estimate how much a median varies.
const DRAWS: usize = 2000;

/// The percentiles of these that are the bounds: 95 % lie between them.
const BOUNDS: [f64; 2] = [2.5, 97.5];

/// A figure of a second: its name, and its value.
type Figure = (&'static str, fn(&Second) -> f64);

/// How one figure differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The figure.
    pub what: &'static str,
    /// Before and after: the medians over the seconds.
    pub values: [f64; 2],
    /// After over before.
    pub ratio: f64,
    /// The ratio lies between these with a probability of 95 %.
    pub bounds: (f64, f64),
    /// Whether 1 lies between them: then nothing is known to differ.
    pub is_noise: bool,
}

/// How `after` differs from `before`. Each second of both is a sample; the bounds come from drawing
/// them again and again (bootstrap).
pub fn compare(before: &Measured, after: &Measured) -> Vec<Change> {
    let figures: [Figure; 3] = [
        ("answers a second", |second| second.answered as f64),
        ("p50 us", |second| second.p50 as f64),
        ("p99 us", |second| second.p99 as f64),
    ];
    let change = |(what, figure): Figure| {
        let [before, after] = [before, after].map(|measured| samples(measured, figure));
        let values = [&before, &after].map(|samples| median(samples).unwrap_or_default());
        let mut random = Random::new(1);
        let ratios: Vec<f64> = (0..DRAWS)
            .map(|_| ratio(drawn(&after, &mut random), drawn(&before, &mut random)))
            .collect();
        let [least, most] = BOUNDS.map(|at| percentile(&ratios, at).unwrap_or_default());
        let bounds = (least, most);
        let is_noise = bounds.0 <= 1.0 && bounds.1 >= 1.0;
        Change { what, values, ratio: ratio(values[1], values[0]), bounds, is_noise }
    };
    figures.into_iter().map(change).collect()
}

/// The figure in each second that had answers.
fn samples(measured: &Measured, figure: fn(&Second) -> f64) -> Vec<f64> {
    measured.seconds.iter().filter(|second| second.answered > 0).map(figure).collect()
}

/// The median of a sample of the same size, drawn with repetition; 0 of none.
fn drawn(samples: &[f64], random: &mut Random) -> f64 {
    let drawn = samples.iter().map(|_| samples[random.below(samples.len())]);
    median(&drawn.collect::<Vec<_>>()).unwrap_or_default()
}

fn ratio(over: f64, under: f64) -> f64 {
    if under == 0.0 { f64::INFINITY } else { over / under }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::measured::Latencies;

    fn measured(answered: &[u64]) -> Measured {
        let second = |answered: &u64| Second { answered: *answered, p50: 100, p99: 1000 };
        Measured {
            connections: Some(1),
            rate: None,
            duration_s: answered.len() as f64,
            answered: answered.iter().sum(),
            per_second: 0.0,
            errors: BTreeMap::new(),
            latency_us: Latencies::default(),
            client_cpu_us: 0.0,
            seconds: answered.iter().map(second).collect(),
        }
    }

    #[test]
    fn a_difference_is_told_from_noise() {
        let before = measured(&[100, 110, 90, 105, 95, 100, 102, 98]);
        let same = measured(&[101, 109, 92, 104, 94, 99, 103, 97]);
        let faster = measured(&[150, 160, 140, 155, 145, 150, 152, 148]);
        let rate = |after| compare(&before, after).remove(0);
        assert!(rate(&same).is_noise);
        let change = rate(&faster);
        assert!(!change.is_noise && (change.ratio - 1.5).abs() < 0.01, "{change:?}");
        assert!(change.bounds.0 > 1.3 && change.bounds.1 < 1.7, "{change:?}");
        assert!(compare(&before, &before).iter().all(|change| change.is_noise));
        assert!(rate(&measured(&[])).ratio < 0.01);
    }
}
