//! The processor time that the host itself takes for requests, besides their plugin calls and their
//! model: reading, finding tenants, checking, writing.
//!
//! The tasks of a connection run in turns ([`HostTime::turn`]). Work for it on other threads is a
//! turn, too. A request that ends takes the time of its connection's turns since the request before
//! it ended ([`take`]). So it pays for writing the answer before it, and what comes after the last
//! request is not charged. Plugin calls and runs of models inside a turn are charged by themselves,
//! and say so ([`charged_elsewhere`]).
//!
//! Invariant: the time of a turn is taken once or charged elsewhere, as exactly as [`Turn`]
//! measures it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::turn::Turn;

/// The host's time for the requests of one connection; clones share it.
#[derive(Clone, Debug, Default)]
pub struct HostTime {
    /// Nanoseconds of turns that are over, and that no request has taken.
    waiting: Arc<AtomicU64>,
}

/// A turn under way.
struct UnderWay {
    own: HostTime,
    begun: Turn,
    /// [`ELSEWHERE`] at its begin.
    elsewhere: u64,
}

thread_local! {
    /// The turn under way on this thread.
    static TURN: RefCell<Option<UnderWay>> = const { RefCell::new(None) };
    /// Nanoseconds on this thread that were charged elsewhere.
    static ELSEWHERE: Cell<u64> = const { Cell::new(0) };
}

impl HostTime {
    /// Of the connection that has its turn on this thread, if one has.
    pub fn current() -> Option<Self> {
        TURN.with_borrow(|turn| turn.as_ref().map(|turn| turn.own.clone()))
    }

    /// Do this work in a turn.
    pub fn turn<T>(&self, work: impl FnOnce() -> T) -> T {
        let turn = UnderWay { own: self.clone(), begun: Turn::begin(), elsewhere: ELSEWHERE.get() };
        // Ends also if the work panics. There is none within another.
        let _ends = Ends;
        TURN.replace(Some(turn));
        work()
    }
}

/// Ends the turn under way when it is dropped.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(turn) = TURN.take() {
            turn.own.waiting.fetch_add(turn.took(), Relaxed);
        }
    }
}

impl UnderWay {
    /// The host's own time in this turn, in nanoseconds.
    fn took(&self) -> u64 {
        let elsewhere = ELSEWHERE.get().wrapping_sub(self.elsewhere);
        self.begun.took().saturating_sub(elsewhere)
    }
}

/// Take the time of the turns of the connection that has its turn now; 0 outside a turn.
pub(crate) fn take() -> Duration {
    TURN.with_borrow_mut(|turn| {
        let Some(turn) = turn else { return Duration::ZERO };
        let took = turn.took() + turn.own.waiting.swap(0, Relaxed);
        (turn.begun, turn.elsewhere) = (Turn::begin(), ELSEWHERE.get());
        Duration::from_nanos(took)
    })
}

/// Note that so much time of the turn under way on this thread, if there is one, is charged
/// elsewhere.
pub fn charged_elsewhere(time: Duration) {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    ELSEWHERE.set(ELSEWHERE.get().wrapping_add(nanos));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work for so long, by the clock that turns are measured with.
    fn work(time: Duration) {
        let turn = Turn::begin();
        while u128::from(turn.took()) < time.as_nanos() {
            std::hint::spin_loop();
        }
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_request_takes_what_its_connection_used_since_the_one_before() {
        let (one, other) = (HostTime::default(), HostTime::default());
        one.turn(|| work(3 * MS));
        other.turn(|| assert!(take() < 2 * MS));
        let first = one.turn(|| {
            work(2 * MS);
            take()
        });
        assert!(first >= 5 * MS, "{first:?}");
        let second = one.turn(take);
        assert!(second < 2 * MS, "{second:?}");
        assert_eq!(take(), Duration::ZERO, "no turn is under way");
    }

    #[test]
    fn what_is_charged_elsewhere_is_not_taken() {
        let host = HostTime::default();
        let taken = host.turn(|| {
            work(4 * MS);
            charged_elsewhere(4 * MS);
            take()
        });
        assert!(taken < 3 * MS, "{taken:?}");
    }

    #[test]
    fn work_on_another_thread_is_a_turn_of_the_same_connection() {
        let host = HostTime::default();
        let taken = host.turn(|| {
            let current = HostTime::current().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || current.turn(|| work(5 * MS)));
            });
            take()
        });
        assert!(taken >= 5 * MS, "{taken:?}");
        assert!(HostTime::current().is_none());
    }

    #[test]
    fn a_turn_that_panics_ends() {
        let host = HostTime::default();
        let worked = std::panic::catch_unwind(|| host.turn(|| panic!("as asked")));
        assert!(worked.is_err());
        assert_eq!(take(), Duration::ZERO);
    }
}
