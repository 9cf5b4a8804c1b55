//! The CPU time that an owner's long calls take from the serving threads, and the exports that stay
//! off them. An export is one function of a pipeline's plugins here.
//!
//! The host cannot tell in advance how long a call takes. So a call begins on a serving thread, and
//! leaves it when it turns out to be long. Other calls wait in that time. An owner whose calls did
//! so often begins all of its calls on the threads for long calls, for a while: counted by export,
//! an owner with many pipelines, or with a new one each second, would have many shares.
//!
//! An export whose calls are still long there stays there when the owner's while is over.
//! Otherwise it would soon take all of the owner's share again, and the owner's short calls would
//! begin among its long ones for as long as that export is called.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// CPU time after which a call is long.
pub(crate) const LONG_AFTER: Duration = Duration::from_millis(3);

/// Long calls may use a hundredth of one serving thread: for each second of CPU time that they use,
/// their owner counts as long for up to this many seconds.
const TIMES_AS_LONG: u32 = 100;

/// CPU time that long calls may use at once, before their owner counts as long. A virtual machine's
/// host can stop a thread for 10 ms, which counts as the thread's CPU time: one such call must not
/// make an owner long.
const AT_ONCE: Duration = Duration::from_millis(20);

/// The longest time that an owner counts as long after a call that held a serving thread.
const LONG_FOR_MAX: Duration = Duration::from_secs(10);

/// How long an export counts as long after a call that ran elsewhere and would have held a serving
/// thread.
const STAYS_LONG: Duration = Duration::from_millis(500);

/// The time until which an owner is in debt for the CPU time that its long calls used on serving
/// threads, in nanoseconds since the sandbox started.
#[derive(Debug, Default)]
pub(crate) struct Pace(AtomicU64);

impl Pace {
    /// Whether the owner's calls run on the threads for long calls.
    pub(crate) fn is_long(&self, now: Duration) -> bool {
        self.0.load(Ordering::Relaxed) > nanos(now + AT_ONCE * TIMES_AS_LONG)
    }

    /// A call took this CPU time on a serving thread.
    pub(crate) fn took(&self, spent: Duration, now: Duration) {
        if spent <= LONG_AFTER {
            return;
        }
        let most = nanos(now + AT_ONCE * TIMES_AS_LONG + LONG_FOR_MAX);
        let later = |until: u64| {
            let added = until.max(nanos(now)).saturating_add(nanos(spent * TIMES_AS_LONG));
            Some(added.min(most).max(until))
        };
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }
}

/// The time until which an export stays on the threads for long calls, in nanoseconds since the
/// sandbox started.
#[derive(Debug, Default)]
pub(crate) struct StaysLong(AtomicU64);

impl StaysLong {
    /// Whether the export's calls run on the threads for long calls.
    pub(crate) fn is_long(&self, now: Duration) -> bool {
        self.0.load(Ordering::Relaxed) > nanos(now)
    }

    /// A call that ran on the threads for long calls would have taken this CPU time on a serving
    /// thread.
    pub(crate) fn would_take(&self, spent: Duration, now: Duration) {
        if spent > LONG_AFTER {
            self.0.fetch_max(nanos(now + STAYS_LONG), Ordering::Relaxed);
        }
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
    fn an_owner_is_long_when_it_takes_more_than_its_share_of_the_serving_threads() {
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
        let (export, now) = (StaysLong::default(), ms(1));
        (0..1000).for_each(|_| export.would_take(LONG_AFTER, now));
        assert!(!export.is_long(now));
        (0..1000).for_each(|_| export.would_take(ms(250), now));
        assert!(export.is_long(now + ms(499)) && !export.is_long(now + ms(500)));
    }
}
