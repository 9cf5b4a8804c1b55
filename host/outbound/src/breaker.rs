//! Keeps calls from a server that does not answer: after failures in a row they fail at once, and
//! now and then one of them tries. Pure, apart from its lock.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The failures in a row after which calls fail at once.
const FAILURES_MAX: u32 = 5;

/// The time for which they do so, before one of them tries.
const PAUSE: Duration = Duration::from_secs(1);

/// Decides which calls may go on.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<BreakerState>);

#[derive(Debug, Default)]
struct BreakerState {
    /// Failures in a row.
    failures: u32,
    /// Until when calls fail at once; none if they go on.
    pause_ends: Option<Instant>,
}

impl Breaker {
    /// Whether a call may go on now.
    ///
    /// # Errors
    /// The time until one may try.
    pub(crate) fn admit(&self, now: Instant) -> Result<(), Duration> {
        let mut state = self.0.lock();
        match state.pause_ends {
            None => Ok(()),
            Some(end) if now < end => Err(end.duration_since(now)),
            Some(_) => {
                // This one tries. If its outcome is never told, another one tries after the pause.
                state.pause_ends = Some(now + PAUSE);
                Ok(())
            }
        }
    }

    /// A call was answered. Returns whether calls failed at once before.
    pub(crate) fn succeeded(&self) -> bool {
        let BreakerState { pause_ends, .. } = std::mem::take(&mut *self.0.lock());
        pause_ends.is_some()
    }

    /// A call failed. Returns whether calls fail at once from now on, and did not before.
    pub(crate) fn failed(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        state.failures = state.failures.saturating_add(1);
        if state.failures < FAILURES_MAX && state.pause_ends.is_none() {
            return false;
        }
        state.pause_ends.replace(now + PAUSE).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn calls_fail_at_once_after_failures_in_a_row() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 1..FAILURES_MAX {
            assert!(!breaker.failed(now));
            breaker.admit(now).unwrap();
        }
        assert!(breaker.failed(now));
        assert_eq!(breaker.admit(now + 400 * MS), Err(600 * MS));
        // Those that were under way already.
        assert!(!breaker.failed(now));
    }

    #[test]
    fn an_answer_between_failures_lets_calls_go_on() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..3 {
            for _ in 1..FAILURES_MAX {
                assert!(!breaker.failed(now));
            }
            assert!(!breaker.succeeded());
        }
        breaker.admit(now).unwrap();
    }

    #[test]
    fn after_the_pause_one_call_tries() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..FAILURES_MAX {
            breaker.failed(now);
        }
        let later = now + PAUSE;
        breaker.admit(later).unwrap();
        breaker.admit(later).unwrap_err();
        // It fails.
        assert!(!breaker.failed(later + MS));
        breaker.admit(later + PAUSE).unwrap_err();
        breaker.admit(later + PAUSE + MS).unwrap();
        // The next one is answered.
        assert!(breaker.succeeded());
        breaker.admit(later + PAUSE + MS).unwrap();
        assert!(!breaker.failed(later + PAUSE + MS));
    }

    #[test]
    fn a_try_without_an_outcome_is_followed_by_another() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..FAILURES_MAX {
            breaker.failed(now);
        }
        breaker.admit(now + PAUSE).unwrap();
        breaker.admit(now + PAUSE + MS).unwrap_err();
        breaker.admit(now + 2 * PAUSE).unwrap();
    }
}
