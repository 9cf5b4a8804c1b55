//! The requests of an open loop: when each is due, and a timer for the next one.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::arrivals::{Pace, Times};
use crate::load::{Load, LoadError};

/// The requests of one thread.
pub(crate) struct OpenLoop {
    times: Times,
    timer: OwnedFd,
    begin: Instant,
    next: Instant,
    /// No request is due from here on.
    end: Instant,
    /// Requests that wait for a connection, by the time at which they should have been sent.
    pub(crate) waiting: VecDeque<Instant>,
}

impl OpenLoop {
    /// The part of thread `number`; none of a closed loop.
    pub(crate) fn new(
        load: &Load,
        number: usize,
        begin: Instant,
    ) -> Result<Option<Self>, LoadError> {
        let Pace::Open { rate, arrivals, .. } = load.pace else { return Ok(None) };
        let own = rate / load.threads.max(1) as f64;
        let mut times = Times::new(own, arrivals, number as u64 + 1);
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
        let (next, end) = (begin + times.next(), begin + load.warm_up + load.duration);
        Ok(Some(Self { times, timer, begin, next, end, waiting: VecDeque::new() }))
    }

    /// Let the requests wait whose time has come. Returns how many there are.
    pub(crate) fn take_due(&mut self, now: Instant) -> usize {
        let before = self.waiting.len();
        while self.next <= now && self.next < self.end {
            self.waiting.push_back(self.next);
            self.next = self.begin + self.times.next();
        }
        self.waiting.len() - before
    }

    /// Let the timer end at the time of the next request, if there is one.
    pub(crate) fn arm(&self) -> Result<(), LoadError> {
        // At least a nanosecond, because 0 turns the timer off.
        let wait = match self.next < self.end {
            true => {
                let wait = self.next.saturating_duration_since(Instant::now());
                wait.max(Duration::from_nanos(1))
            }
            false => Duration::ZERO,
        };
        let it_value =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let when = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &when)?;
        Ok(())
    }
}

impl AsFd for OpenLoop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
