//! The CPU time that long calls take from the serving threads: those of one function of a
//! pipeline's plugins, called an export here, and those of an owner.
//!
//! The host cannot tell in advance how long a call takes. So a call begins on a serving thread, and
//! leaves it when it turns out to be long. Other calls wait in that time. An export whose
//! calls did so often begins on the threads for long calls. The owner's pace counts all of its
//! exports together: otherwise an owner with many pipelines, or with a new one each second, would
//! have their shares as well.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// CPU time after which a call is long.
pub(crate) const LONG_AFTER: Duration = Duration::from_millis(3);

/// Long calls may use a hundredth of one serving thread: for each second of CPU time that they use,
/// their export or their owner counts as long for up to this many seconds.
const TIMES_AS_LONG: u32 = 100;

/// CPU time that long calls may use at once, before their export or their owner counts as long. A
/// virtual machine's host can stop a thread for 10 ms, which counts as the thread's CPU time: one
/// such call must not make an export long.
const AT_ONCE: Duration = Duration::from_millis(20);

/// The longest time that an export or an owner counts as long after a call that held a serving
/// thread.
const LONG_FOR_MAX: Duration = Duration::from_secs(10);

/// How long an export counts as long after a call that ran elsewhere and would have held a serving
/// thread.
const STAYS_LONG: Duration = Duration::from_millis(500);

/// The time until which an export or an owner is in debt for the CPU time that its long calls used
/// on serving threads, in nanoseconds since the sandbox started.
#[derive(Debug, Default)]
pub(crate) struct Pace(AtomicU64);

impl Pace {
    /// Whether the calls run on the threads for long calls.
    pub(crate) fn is_long(&self, now: Duration) -> bool {
        self.0.load(Ordering::Relaxed) > nanos(now + AT_ONCE * TIMES_AS_LONG)
    }

    /// A call took this CPU time on a serving thread.
    pub(crate) fn took(&self, spent: Duration, now: Duration) {
        if spent > LONG_AFTER {
            self.add(spent, now, LONG_FOR_MAX);
        }
    }

    /// A call that ran on the threads for long calls would have taken this CPU time on a serving
    /// thread.
    pub(crate) fn would_take(&self, spent: Duration, now: Duration) {
        if spent > LONG_AFTER {
            self.add(LONG_AFTER, now, STAYS_LONG);
        }
    }

    fn add(&self, spent: Duration, now: Duration, long_for_max: Duration) {
        let most = nanos(now + AT_ONCE * TIMES_AS_LONG + long_for_max);
        let later = |until: u64| {
            let added = until.max(nanos(now)).saturating_add(nanos(spent * TIMES_AS_LONG));
            Some(added.min(most).max(until))
        };
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Duration = Duration::from_millis(9);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn an_export_is_long_when_it_takes_more_than_its_share_of_the_serving_threads() {
        let pace = Pace::default();
        for second in 0..100 {
            let now = ms(1000 * second);
            pace.took(HELD, now);
            assert!(!pace.is_long(now), "one long call a second");
            (0..1000).for_each(|_| pace.took(LONG_AFTER, now));
            assert!(!pace.is_long(now), "any number of short ones");
        }
        let now = ms(200_000);
        (0..3).for_each(|_| pace.took(HELD, now));
        assert!(pace.is_long(now + ms(600)) && !pace.is_long(now + ms(700)));
        (0..1000).for_each(|_| pace.took(HELD, now));
        assert!(pace.is_long(now + ms(9_999)) && !pace.is_long(now + ms(10_000)));
    }

    #[test]
    fn an_export_is_short_again_soon_after_its_calls_are() {
        let (pace, now) = (Pace::default(), ms(1));
        (0..3).for_each(|_| pace.took(HELD, now));
        (0..1000).for_each(|_| pace.would_take(ms(250), now));
        assert!(pace.is_long(now + ms(600)) && !pace.is_long(now + ms(700)));
        (0..1000).for_each(|_| pace.would_take(ms(250), now + ms(700)));
        assert!(pace.is_long(now + ms(1_199)) && !pace.is_long(now + ms(1_200)));
    }
}
