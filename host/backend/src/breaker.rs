//! The circuit breaker of a provider. It has no clock: its callers pass the time.

use std::time::{Duration, Instant};

/// The number of faults in a row that opens the breaker.
pub(crate) const FAULTS_MAX: u32 = 3;

/// How long a breaker stays open at first. The time doubles each time the probe fails, up to the
/// maximum.
pub(crate) const OPEN_MIN: Duration = Duration::from_secs(1);
pub(crate) const OPEN_MAX: Duration = Duration::from_secs(60);

/// Whether a provider may be tried.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    faults: u32,
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    until: Instant,
    time: Duration,
}

impl Breaker {
    /// Whether the provider may be tried at `now`.
    pub(crate) fn may_try(&self, now: Instant) -> bool {
        self.open.is_none_or(|open| open.until <= now)
    }

    /// Whether the breaker is open: the provider is not tried for a while.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The provider ran a batch.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// The provider failed at `now` on a batch that another provider ran.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.faults += 1;
        let time = match self.open {
            Some(open) => (open.time * 2).min(OPEN_MAX),
            None if self.faults >= FAULTS_MAX => OPEN_MIN,
            None => return,
        };
        self.open = Some(Open { until: now + time, time });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breaker_opens_after_faults_in_a_row_and_stays_open_longer_each_time() {
        let (mut breaker, begin) = (Breaker::default(), Instant::now());
        for _ in 1..FAULTS_MAX {
            breaker.failed(begin);
        }
        assert!(breaker.may_try(begin) && !breaker.is_open());
        breaker.failed(begin);
        assert!(!breaker.may_try(begin) && breaker.is_open());
        let mut now = begin + OPEN_MIN;
        let mut time = OPEN_MIN;
        for _ in 0..20 {
            assert!(breaker.may_try(now), "one batch probes it");
            breaker.failed(now);
            time = (time * 2).min(OPEN_MAX);
            assert!(!breaker.may_try(now + time - Duration::from_millis(1)));
            now += time;
        }
        breaker.succeeded();
        breaker.failed(now);
        assert!(breaker.may_try(now), "faults before a success do not count");
    }
}
