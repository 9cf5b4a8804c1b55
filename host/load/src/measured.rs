//! What a run has measured.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest time that is told apart, in microseconds.
const LONGEST_US: u64 = 600_000_000;

/// What a run has measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The connections, of a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<usize>,
    /// The requests a second that were asked for, of an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// How long it measured, in seconds.
    pub duration_s: f64,
    /// Requests that were answered while it measured.
    pub answered: u64,
    /// Answers a second.
    pub per_second: f64,
    /// Answers by status, other than 2xx.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// From the time at which each request should have been sent.
    pub latency_us: Latencies,
    /// The client's own CPU time for each answer, in microseconds.
    pub client_cpu_us: f64,
    /// Each second by itself.
    pub seconds: Vec<Second>,
}

/// Times of requests, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// The mean.
    pub mean: f64,
    /// Half of the requests took no longer.
    pub p50: u64,
    /// 90 of 100.
    pub p90: u64,
    /// 95 of 100.
    pub p95: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1000.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

/// What was measured in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Answers.
    pub answered: u64,
    /// Half of them took no longer, in microseconds.
    pub p50: u64,
    /// 99 of 100.
    pub p99: u64,
}

impl Measured {
    /// Answers with an error, and requests without an answer.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// What one thread counts, or several together.
#[derive(Clone)]
pub(crate) struct Tally {
    all: Histogram<u64>,
    seconds: Vec<Histogram<u64>>,
    answered: u64,
    errors: BTreeMap<String, u64>,
    cpu: Duration,
}

impl Tally {
    /// An empty one for a load that measures for `duration`.
    pub(crate) fn new(duration: Duration) -> Self {
        let seconds = duration.as_secs_f64().ceil() as usize;
        Self {
            all: histogram(3),
            seconds: (0..seconds).map(|_| histogram(2)).collect(),
            answered: 0,
            errors: BTreeMap::new(),
            cpu: Duration::ZERO,
        }
    }

    /// Count an answer in this second, if it came while this measured.
    pub(crate) fn answer(&mut self, second: Option<usize>, took: Duration) {
        if let Some(second) = second.and_then(|at| self.seconds.get_mut(at)) {
            self.answered += 1;
            record(second, took);
        }
    }

    /// Count the time of a request.
    pub(crate) fn time(&mut self, took: Duration) {
        record(&mut self.all, took);
    }

    /// Count an error.
    pub(crate) fn error(&mut self, what: String) {
        *self.errors.entry(what).or_default() += 1;
    }

    pub(crate) fn used(&mut self, cpu: Duration) {
        self.cpu += cpu;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.all.add(&other.all);
        for (second, other) in self.seconds.iter_mut().zip(&other.seconds) {
            let _ = second.add(other);
        }
        self.answered += other.answered;
        self.cpu += other.cpu;
        for (what, count) in &other.errors {
            *self.errors.entry(what.clone()).or_default() += count;
        }
    }

    pub(crate) fn measured(self, duration: Duration) -> Measured {
        let quantile = |share: f64| self.all.value_at_quantile(share);
        let duration_s = duration.as_secs_f64();
        let second = |histogram: &Histogram<u64>| Second {
            answered: histogram.len(),
            p50: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
        };
        let all = self.all.len().max(1);
        Measured {
            connections: None,
            rate: None,
            duration_s,
            answered: self.answered,
            per_second: self.answered as f64 / duration_s,
            errors: self.errors,
            latency_us: Latencies {
                mean: self.all.mean(),
                p50: quantile(0.5),
                p90: quantile(0.9),
                p95: quantile(0.95),
                p99: quantile(0.99),
                p999: quantile(0.999),
                max: self.all.max(),
            },
            client_cpu_us: self.cpu.as_secs_f64() * 1e6 / all as f64,
            seconds: self.seconds.iter().map(second).collect(),
        }
    }
}

#[expect(clippy::expect_used, reason = "the bounds are valid for any number of digits up to 5")]
fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, digits).expect("valid bounds")
}

fn record(histogram: &mut Histogram<u64>, took: Duration) {
    let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    histogram.saturating_record(us.clamp(1, LONGEST_US));
}
