//! The CPU time that an owner's calls take from the serving threads, and the calls that stay off
//! them.
//!
//! The host cannot tell in advance how long a call takes. It knows how long the calls of an export
//! took before; an export is one function of a pipeline's plugins.
//!
//! | calls of an export take | they begin |
//! |---|---|
//! | less than [`TINY`] | on a serving thread: to move one takes longer than to run it |
//! | up to [`LONG_AFTER`] | on a serving thread, while their owner is alone or within its share |
//! | more | on the threads for long calls |
//!
//! The sum counts all calls of an owner, whatever pipeline they belong to. A call that turns out to
//! be long has held a serving thread by surprise, so such calls have a smaller share. An owner
//! beyond that share begins the calls of the exports that surprised on the threads for long calls.
//! If it goes far beyond it, it begins all of its calls there: counted by export, an owner with
//! many pipelines, or with a new one each second, would have many shares.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::queue::Round;

/// CPU time after which a call is long.
const LONG_AFTER: Duration = Duration::from_millis(3);

/// A call that takes less than this runs where it began. At most as many as the owner has permits
/// wait for one another.
const TINY: Duration = Duration::from_micros(100);

/// The calls of an owner may use this part of the time of all serving threads together.
const SHARE_OF_ALL: u32 = 10;

/// Calls that turn out to be long may use this part of the time of one serving thread.
const SHARE_OF_LONG: u32 = 100;

/// CPU time that an owner may use at once of either share. A virtual machine's host can stop a
/// thread for 10 ms, which counts as the thread's CPU time: one such call must not make an owner
/// long.
const AT_ONCE: Duration = Duration::from_millis(20);

/// An owner that has used so much at once of its share for long calls has no export that can be
/// trusted.
const AT_ONCE_BY_ALL: Duration = Duration::from_millis(60);

/// A debt is paid after this time at the latest.
const DEBT_MAX: Duration = Duration::from_secs(10);

/// A new value counts as this part of a mean.
const WEIGHT_OF_NEW: u64 = 8;

/// CPU time that was used of a share, less what has come back since. It is kept as the time at
/// which all has come back, in nanoseconds since the sandbox started.
#[derive(Debug, Default)]
struct Debt(AtomicU64);

impl Debt {
    /// The time until all that was used has come back.
    fn left(&self, now: Duration) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed).saturating_sub(nanos(now)))
    }

    /// Something was used that comes back within `after`.
    fn add(&self, after: Duration, now: Duration) {
        let most = nanos(now + DEBT_MAX);
        let later = |until: u64| {
            let added = until.max(nanos(now)).saturating_add(nanos(after));
            Some(added.min(most).max(until))
        };
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }
}

/// A moment, and the threads that serve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The time since the sandbox started.
    pub(crate) time: Duration,
    /// The number of serving threads.
    pub(crate) threads: u32,
}

/// The use of the serving threads by all calls of one owner.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    all: Debt,
    long: Debt,
}

impl Pace {
    /// Whether a call of this export that has used `spent` so far is to run on the threads for long
    /// calls, whatever others do.
    pub(crate) fn is_long(&self, export: &Export, spent: Duration, now: Moment) -> bool {
        if spent > LONG_AFTER || export.mean.get() > LONG_AFTER {
            return true;
        }
        let surprised = self.long.left(now.time) / SHARE_OF_LONG;
        surprised > AT_ONCE_BY_ALL || surprised > AT_ONCE && export.surprised(now.time)
    }

    /// Whether the owner has used its share of the serving threads.
    pub(crate) fn is_over_share(&self, now: Moment) -> bool {
        self.all.left(now.time) > now.comes_back(AT_ONCE)
    }

    /// A call that has used `spent` in all used the last `turn` of it on a serving thread.
    pub(crate) fn took(&self, turn: Duration, spent: Duration, export: &Export, now: Moment) {
        self.all.add(now.comes_back(turn), now.time);
        if spent > LONG_AFTER {
            self.long.add(spent * SHARE_OF_LONG, now.time);
            export.surprised_at.store(nanos(now.time), Ordering::Relaxed);
        }
    }
}

impl Moment {
    /// The time in which so much CPU time comes back to an owner.
    fn comes_back(self, used: Duration) -> Duration {
        used * SHARE_OF_ALL / self.threads.max(1)
    }
}

/// A mean that follows new values, in nanoseconds. 0 before the first one.
#[derive(Debug, Default)]
pub(crate) struct Mean(AtomicU64);

impl Mean {
    pub(crate) fn note(&self, value: Duration) {
        let next = |mean: u64| match mean {
            0 => nanos(value),
            // Rounded up, so that a mean does not become 0 again.
            mean => (mean * (WEIGHT_OF_NEW - 1) + nanos(value)).div_ceil(WEIGHT_OF_NEW),
        };
        // Two values at the same time may count as one.
        self.0.store(next(self.0.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// The calls of one export so far.
#[derive(Debug, Default)]
pub(crate) struct Export {
    /// The CPU time that one takes on a serving thread.
    mean: Mean,
    /// When one of them last turned out to be long, in nanoseconds since the sandbox started.
    surprised_at: AtomicU64,
    /// Its turns in the queue of its owner.
    round: Round,
}

impl Export {
    pub(crate) fn round(&self) -> &Round {
        &self.round
    }

    /// A call has taken, or would have taken, this CPU time on a serving thread.
    pub(crate) fn note(&self, spent: Duration) {
        self.mean.note(spent);
    }

    /// A call was given up after this CPU time.
    pub(crate) fn note_at_least(&self, spent: Duration) {
        if spent > self.mean.get() {
            self.mean.note(spent);
        }
    }

    /// Whether a call that has used `spent` so far is so short that it stays where it began.
    pub(crate) fn is_tiny(&self, spent: Duration) -> bool {
        spent <= TINY && self.mean.get() <= TINY
    }

    fn surprised(&self, now: Duration) -> bool {
        let at = self.surprised_at.load(Ordering::Relaxed);
        at > 0 && nanos(now) < at.saturating_add(nanos(DEBT_MAX))
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: Duration) -> Moment {
        Moment { time, threads: 2 }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A call of `export` takes `spent` on a serving thread.
    fn call(pace: &Pace, export: &Export, spent: Duration, now: Duration) {
        pace.took(spent, spent, export, at(now));
        export.note(spent);
    }

    /// Beside other owners.
    fn is_long(pace: &Pace, export: &Export, now: Duration) -> bool {
        let is_over = || !export.is_tiny(Duration::ZERO) && pace.is_over_share(at(now));
        pace.is_long(export, Duration::ZERO, at(now)) || is_over()
    }

    #[test]
    fn an_owner_has_a_share_of_the_sum_however_short_its_calls_are() {
        for spent in [Duration::from_micros(200), ms(1), ms(3)] {
            let (pace, exports) = (Pace::default(), [Export::default(), Export::default()]);
            let (mut used, mut now) = (Duration::ZERO, ms(1));
            for call_number in 0..10_000 {
                let export = &exports[call_number % 2];
                if !is_long(&pace, export, now) {
                    call(&pace, export, spent, now);
                    used += spent;
                }
                now += ms(1);
            }
            // A tenth of two threads for 10 s.
            assert!(used > ms(1990) && used < ms(2030), "calls of {spent:?} used {used:?}");
        }
    }

    #[test]
    fn tiny_calls_stay_and_count() {
        let (pace, [tiny, other]) = (Pace::default(), <[Export; 2]>::default());
        other.note(ms(1));
        (0..10_000).for_each(|_| call(&pace, &tiny, Duration::from_micros(20), ms(1)));
        assert!(!is_long(&pace, &tiny, ms(1)));
        assert!(!tiny.is_tiny(ms(1)), "this one is not tiny");
        assert!(is_long(&pace, &other, ms(1)));
    }

    #[test]
    fn an_export_that_surprises_is_kept_off_and_the_others_stay() {
        let pace = Pace::default();
        let [rare, tiny] = <[Export; 2]>::default();
        let usual = Duration::from_micros(20);
        for second in 0..100 {
            let now = ms(1000 * second + 1);
            call(&pace, &rare, ms(9), now);
            (0..100).for_each(|_| rare.note(usual));
            assert!(!is_long(&pace, &rare, now), "one long call a second");
        }
        let now = ms(200_001);
        (0..3).for_each(|_| call(&pace, &rare, ms(9), now));
        (0..100).for_each(|_| rare.note(usual));
        assert!(is_long(&pace, &rare, now + ms(600)) && !is_long(&pace, &rare, now + ms(700)));
        assert!(!is_long(&pace, &tiny, now));
    }

    #[test]
    fn an_owner_with_many_exports_that_surprise_has_one_share() {
        let (pace, now) = (Pace::default(), ms(1));
        let surprises = std::iter::repeat_with(|| {
            let export = Export::default();
            let begins = !is_long(&pace, &export, now);
            call(&pace, &export, ms(9), now);
            begins
        });
        assert_eq!(surprises.take(1000).filter(|begins| *begins).count(), 7);
        assert!(is_long(&pace, &Export::default(), now + ms(3_999)));
        assert!(!is_long(&pace, &Export::default(), now + ms(4_001)));
    }

    #[test]
    fn an_exports_mean_follows_its_calls() {
        let (pace, export) = (Pace::default(), Export::default());
        export.note(ms(20));
        assert!(is_long(&pace, &export, ms(1)), "the first call says most");
        (0..100).for_each(|_| export.note(Duration::from_micros(20)));
        assert!(export.is_tiny(Duration::ZERO));
        export.note(ms(9));
        assert!(!is_long(&pace, &export, ms(1)), "one slow call says little");
        (0..100).for_each(|_| export.note(ms(9)));
        assert!(is_long(&pace, &export, ms(1)));
    }
}
