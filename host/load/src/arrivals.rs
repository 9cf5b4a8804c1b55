//! When requests are sent.

use std::time::Duration;

/// How load is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Closed loop: each connection sends the next request when it has the answer to the one
    /// before.
    Closed {
        /// The connections.
        connections: usize,
    },
    /// Open loop: requests are sent at their times, whether or not answers have come.
    Open {
        /// Requests a second, on average.
        rate: f64,
        /// How they are spread.
        arrivals: Arrivals,
        /// Maximum connections. A request that finds none free waits for one, and its time counts.
        connections: usize,
    },
}

impl Pace {
    /// Maximum connections.
    pub(crate) fn connections(self) -> usize {
        match self {
            Self::Closed { connections } | Self::Open { connections, .. } => connections,
        }
    }
}

/// How the requests of an open loop are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At equal intervals.
    Constant,
    /// At random, as those of many independent clients.
    Poisson,
    /// So many at once, at equal intervals.
    Bursts(u32),
}

/// The times of an open loop's requests, from its begin on.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    interval_s: f64,
    arrivals: Arrivals,
    /// The last time that was given, in seconds.
    at_s: f64,
    count: u64,
    random: Random,
}

impl Times {
    pub(crate) fn new(rate: f64, arrivals: Arrivals, seed: u64) -> Self {
        Self { interval_s: 1.0 / rate, arrivals, at_s: 0.0, count: 0, random: Random::new(seed) }
    }

    /// The time of the next request.
    pub(crate) fn next(&mut self) -> Duration {
        match self.arrivals {
            Arrivals::Constant => self.at_s += self.interval_s,
            Arrivals::Poisson => {
                // 1 - random is never 0.
                self.at_s -= (1.0 - self.random.fraction()).ln() * self.interval_s;
            }
            Arrivals::Bursts(size) => {
                if self.count.is_multiple_of(u64::from(size)) {
                    self.at_s += self.interval_s * f64::from(size);
                }
            }
        }
        self.count += 1;
        Duration::from_secs_f64(self.at_s)
    }
}

/// Random numbers that are the same for the same seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// At least 0, and below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrivals, Times};

    #[test]
    fn all_spread_the_same_number_over_a_second() {
        for arrivals in [Arrivals::Constant, Arrivals::Poisson, Arrivals::Bursts(10)] {
            let mut times = Times::new(1000.0, arrivals, 7);
            let all: Vec<f64> = (0..100_000).map(|_| times.next().as_secs_f64()).collect();
            assert!(all.is_sorted());
            let last = all[all.len() - 1];
            assert!((last - 100.0).abs() < 1.5, "{arrivals:?}: {last}");
            let together = all.windows(2).filter(|pair| pair[0] == pair[1]).count();
            assert_eq!(together > 80_000, arrivals == Arrivals::Bursts(10), "{arrivals:?}");
        }
    }
}
