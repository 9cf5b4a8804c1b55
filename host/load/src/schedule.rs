//! The requests of an open loop: when each is due, and those that wait for a connection.

use std::collections::VecDeque;
use std::time::Instant;

use crate::arrivals::{Pace, Times};
use crate::load::Load;

/// The requests of one thread.
pub(crate) struct Schedule {
    times: Times,
    begin: Instant,
    next: Instant,
    /// No request is due from here on.
    end: Instant,
    /// Requests that wait for a connection, by the time at which they should have been sent.
    pub(crate) waiting: VecDeque<Instant>,
}

impl Schedule {
    /// The part of thread `number`; none of a closed loop.
    pub(crate) fn new(load: &Load, number: usize, begin: Instant) -> Option<Self> {
        let Pace::Open { rate, arrivals, .. } = load.pace else { return None };
        let rate = rate / load.threads.max(1) as f64;
        let mut times = Times::new(rate, arrivals, number as u64 + 1);
        let (next, end) = (begin + times.next(), begin + load.warm_up + load.duration);
        Some(Self { times, begin, next, end, waiting: VecDeque::new() })
    }

    /// Let the requests wait whose time has come. Returns how many there are, and when the next one
    /// is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> (usize, Instant) {
        let before = self.waiting.len();
        while self.next <= now && self.next < self.end {
            self.waiting.push_back(self.next);
            self.next = self.begin + self.times.next();
        }
        (self.waiting.len() - before, self.next)
    }
}
