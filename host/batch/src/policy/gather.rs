//! Letting other requests join before a submitting task runs a short batch itself. Pure.
//!
//! Requests come in bursts: reading the sockets once brings several requests, whose tasks then run
//! one after the other on the same thread. If each task ran its own rows at once, there would be no
//! batches. So a task that may lead first yields once to the runtime's other tasks. Requests that
//! they submit join its batch. If no requests join, this is tried only from time to time.

use std::time::{Duration, Instant};

use super::trial::Trial;

/// After this many times in a row without a joining request, gathering does not pay.
const ALONE_MAX: u32 = 4;

/// If gathering does not pay, it is tried once in this many requests.
const TRY_EVERY: u32 = 64;

/// If the gathering task is delayed longer than this, the next submitter leads.
const GATHERED_FOR_MAX: Duration = Duration::from_micros(100);

/// Whether gathering pays, and whether a task gathers now.
#[derive(Debug)]
pub(crate) struct Gather {
    /// The number of consecutive times without a joining request.
    alone: u32,
    trial: Trial,
    /// The time since which a task has let others go first.
    since: Option<Instant>,
}

impl Default for Gather {
    fn default() -> Self {
        Self { alone: 0, trial: Trial::new(TRY_EVERY), since: None }
    }
}

impl Gather {
    /// Whether a task that may lead lets others go first at `now`.
    pub(crate) fn should_wait(&mut self, now: Instant) -> bool {
        if let Some(since) = self.since {
            return now.saturating_duration_since(since) < GATHERED_FOR_MAX;
        }
        let waits = self.trial.should_try(self.alone < ALONE_MAX);
        if waits {
            self.trial.begin();
            self.since = Some(now);
        }
        waits
    }

    /// A batch of so many requests is taken.
    pub(crate) fn taken(&mut self, requests: usize) {
        if self.since.take().is_some() {
            self.alone = if requests > 1 { 0 } else { self.alone.saturating_add(1) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{ALONE_MAX, GATHERED_FOR_MAX, Gather, TRY_EVERY};

    #[test]
    fn it_is_given_up_where_nobody_joins_and_taken_up_again() {
        let (mut gather, now) = (Gather::default(), Instant::now());
        for _ in 0..ALONE_MAX {
            assert!(gather.should_wait(now));
            gather.taken(1);
        }
        let mut tries = || {
            let waits = gather.should_wait(now);
            gather.taken(if waits { 1 } else { 2 });
            waits
        };
        let tried = (0..10 * TRY_EVERY).filter(|_| tries()).count();
        assert!((9..=10).contains(&tried), "{tried}");
        while !gather.should_wait(now) {}
        gather.taken(2);
        assert!(gather.should_wait(now));
    }

    #[test]
    fn who_comes_late_does_not_wait_for_a_task_that_is_delayed() {
        let (mut gather, now) = (Gather::default(), Instant::now());
        assert!(gather.should_wait(now) && gather.should_wait(now + GATHERED_FOR_MAX / 2));
        assert!(!gather.should_wait(now + GATHERED_FOR_MAX));
        gather.taken(3);
        assert!(gather.should_wait(now + GATHERED_FOR_MAX));
    }
}
