//! The CPU time that the host itself takes for requests, besides their plugin calls and their
//! model: reading, finding tenants, checking, writing.
//!
//! The tasks of a connection run in turns ([`HostTime::turn`]). Work for it on other threads is a
//! turn, too. A request that ends takes the time of its connection's turns since the request before
//! it ended ([`take`]). So it pays for writing the answer before it, and what comes after the last
//! request is not charged. Plugin calls and runs of models inside a turn are charged by themselves,
//! and say so ([`charged_elsewhere`]).
//!
//! A turn's time is measured as exactly as [`Turn`] can. What a thread did between its turns, such
//! as looking at sockets, and the errors of short turns come to light each time that the thread's
//! CPU clock is read: the next turn is charged the difference.
//!
//! Invariant: on a thread whose work is turns, all CPU time up to its last turn is charged, here or
//! elsewhere, and none twice.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::turn::{Sample, Turn};

/// The greatest age of the CPU clock's reading at the begin of a turn, in nanoseconds. Under load,
/// one system call serves the turns of many short requests.
const SAMPLE_AGE: u64 = 1_000_000;

/// The host's time for the requests of one connection; clones share it.
#[derive(Clone, Debug, Default)]
pub struct HostTime {
    /// Nanoseconds of turns that are over, and that no request has taken.
    waiting: Arc<AtomicU64>,
}

/// A turn under way.
struct UnderWay {
    connection: HostTime,
    begun: Turn,
    /// [`Ledger::elsewhere`] at its begin.
    elsewhere: u64,
    /// Nanoseconds that are added to its own time.
    correction: i64,
}

/// What was charged of a thread's time, in nanoseconds.
#[derive(Clone, Copy)]
struct Ledger {
    /// In turns.
    turns: u64,
    elsewhere: u64,
    /// The reading at which it was last compared with the CPU clock.
    compared: Sample,
    /// The CPU time that is not to be charged: that before the first turn.
    before: Option<u64>,
}

thread_local! {
    /// The turn under way on this thread.
    static TURN: RefCell<Option<UnderWay>> = const { RefCell::new(None) };
    static LEDGER: Cell<Ledger> = const {
        let compared = Sample { passed: 0, cpu: 0 };
        Cell::new(Ledger { turns: 0, elsewhere: 0, compared, before: None })
    };
}

impl HostTime {
    /// Of the connection that has its turn on this thread, if one has.
    pub fn current() -> Option<Self> {
        TURN.with_borrow(|turn| turn.as_ref().map(|turn| turn.connection.clone()))
    }

    /// Do this work in a turn.
    pub fn turn<T>(&self, work: impl FnOnce() -> T) -> T {
        let begun = Turn::begin_with(SAMPLE_AGE);
        let mut ledger = LEDGER.get();
        let correction = ledger.compare(Sample::last());
        LEDGER.set(ledger);
        let (connection, elsewhere) = (self.clone(), ledger.elsewhere);
        let turn = UnderWay { connection, begun, elsewhere, correction };
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
            turn.connection.waiting.fetch_add(turn.charge(), Relaxed);
        }
    }
}

impl Ledger {
    /// How much more CPU time the thread has used than it was charged, if this reading is new.
    fn compare(&mut self, sample: Sample) -> i64 {
        if std::mem::replace(&mut self.compared, sample) == sample {
            return 0;
        }
        let charged = self.turns.wrapping_add(self.elsewhere);
        let before = *self.before.get_or_insert(sample.cpu.wrapping_sub(charged));
        sample.cpu.wrapping_sub(before).wrapping_sub(charged) as i64
    }
}

impl UnderWay {
    /// Charge the host's own time in this turn so far. Returns it, in nanoseconds.
    fn charge(&self) -> u64 {
        let mut ledger = LEDGER.get();
        let elsewhere = ledger.elsewhere.wrapping_sub(self.elsewhere);
        let charged = self.begun.took() as i64 - elsewhere as i64 + self.correction;
        // A rest below 0 comes to light at the next comparison.
        let charged = charged.max(0) as u64;
        ledger.turns = ledger.turns.wrapping_add(charged);
        LEDGER.set(ledger);
        charged
    }
}

/// Take the time of the turns of the connection that has its turn now; 0 outside a turn.
pub(crate) fn take() -> Duration {
    TURN.with_borrow_mut(|turn| {
        let Some(turn) = turn else { return Duration::ZERO };
        let took = turn.charge() + turn.connection.waiting.swap(0, Relaxed);
        (turn.begun, turn.elsewhere) = (Turn::begin_with(SAMPLE_AGE), LEDGER.get().elsewhere);
        turn.correction = 0;
        Duration::from_nanos(took)
    })
}

/// Note that so much time of the turn under way on this thread, if there is one, is charged
/// elsewhere.
pub fn charged_elsewhere(time: Duration) {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let ledger = LEDGER.get();
    LEDGER.set(Ledger { elsewhere: ledger.elsewhere.wrapping_add(nanos), ..ledger });
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
        // Less what the turn before was charged too much.
        assert!(first >= 4 * MS, "{first:?}");
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
        assert!(taken >= 4 * MS, "{taken:?}");
        assert!(HostTime::current().is_none());
    }

    #[test]
    fn what_a_thread_does_between_its_turns_is_charged() {
        let host = HostTime::default();
        host.turn(take);
        work(20 * MS);
        let taken = host.turn(take);
        assert!(taken >= 19 * MS, "{taken:?}");
        // Charged elsewhere without a turn: not charged again.
        work(20 * MS);
        charged_elsewhere(20 * MS);
        let taken = host.turn(take);
        assert!(taken < 10 * MS, "{taken:?}");
    }

    #[test]
    fn a_turn_that_panics_ends() {
        let host = HostTime::default();
        let worked = std::panic::catch_unwind(|| host.turn(|| panic!("as asked")));
        assert!(worked.is_err());
        assert_eq!(take(), Duration::ZERO);
    }
}
