//! The CPU time of a short turn of work on a thread, without the time for which the thread
//! waited on a busy machine.
//!
//! Reading the thread's CPU clock is a system call, which takes as long as a short turn. So the
//! time of a turn up to [`SHORT_TURN`] is the real time that passed. For a longer one, the reading
//! at its begin may be up to [`SAMPLE_AGE`] old, so its time may be that much too long.

use std::cell::Cell;

use rustix::time::{ClockId, clock_gettime};

/// The longest turn whose time is the real time, in nanoseconds.
const SHORT_TURN: u64 = 200_000;

/// The greatest age of the CPU clock's reading at the begin of a turn, in nanoseconds.
const SAMPLE_AGE: u64 = 100_000;

/// A reading of both clocks on one thread, in nanoseconds.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) passed: u64,
    pub(crate) cpu: u64,
}

impl Sample {
    /// The last one of the calling thread.
    pub(crate) fn last() -> Self {
        LAST.get()
    }
}

thread_local! {
    /// The last reading on this thread.
    static LAST: Cell<Sample> = const { Cell::new(Sample { passed: 0, cpu: 0 }) };
}

/// The begin of a turn of work on the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The time at its begin, in nanoseconds.
    pub passed: u64,
    /// The thread's CPU time then, or a little before it, in nanoseconds.
    pub cpu: u64,
}

impl Turn {
    /// A turn that begins now.
    pub fn begin() -> Self {
        Self::begin_with(SAMPLE_AGE)
    }

    /// A turn that begins now. The reading of the CPU clock may be so many nanoseconds old.
    pub(crate) fn begin_with(age: u64) -> Self {
        let passed = read(ClockId::Monotonic);
        let mut sample = LAST.get();
        if passed.saturating_sub(sample.passed) > age {
            sample = sampled(passed);
        }
        Self { passed, cpu: sample.cpu }
    }

    /// Its CPU time so far, in nanoseconds. Ask on the thread on which it began.
    pub fn took(self) -> u64 {
        let passed = read(ClockId::Monotonic);
        let turn = passed.saturating_sub(self.passed);
        if turn <= SHORT_TURN {
            return turn;
        }
        turn.min(sampled(passed).cpu.saturating_sub(self.cpu))
    }
}

/// Read the thread's CPU clock, at the time `passed`.
fn sampled(passed: u64) -> Sample {
    let sample = Sample { passed, cpu: read(ClockId::ThreadCPUTime) };
    LAST.set(sample);
    sample
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
