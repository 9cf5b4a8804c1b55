//! Letting others join before a submitting task runs a short batch itself.
//!
//! Requests come in bursts: one look at the sockets brings several, whose tasks then run one after the other
//! on the same thread. If each ran its own rows at once there would be no batches. So a task that may
//! lead lets the runtime's other tasks go first, once: those that submit join its batch. Where nobody
//! does, that is tried only now and then.

use std::time::{Duration, Instant};

/// After so many times that nobody joined it does not pay.
const ALONE_MAX: u32 = 4;

/// Where it does not pay it is tried once in so many requests.
const TRY_EVERY: u32 = 64;

/// Others' tasks may hold up whoever gathers; who comes later than this leads for it, at once.
const GATHERED_FOR_MAX: Duration = Duration::from_micros(100);

#[derive(Debug, Default)]
pub(crate) struct Gather {
    alone: u32,
    skipped: u32,
    /// Since when somebody lets others go first.
    since: Option<Instant>,
}

impl Gather {
    /// Whether a task that may lead now lets others go first.
    pub(crate) fn hopes(&mut self, now: Instant) -> bool {
        if let Some(since) = self.since {
            return now.saturating_duration_since(since) < GATHERED_FOR_MAX;
        }
        if self.alone >= ALONE_MAX && self.skipped < TRY_EVERY {
            self.skipped += 1;
            return false;
        }
        self.skipped = 0;
        self.since = Some(now);
        true
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
            assert!(gather.hopes(now));
            gather.taken(1);
        }
        let mut tries = || {
            let hopes = gather.hopes(now);
            gather.taken(if hopes { 1 } else { 2 });
            hopes
        };
        let tried = (0..10 * TRY_EVERY).filter(|_| tries()).count();
        assert!((9..=10).contains(&tried), "{tried}");
        while !gather.hopes(now) {}
        gather.taken(2);
        assert!(gather.hopes(now));
    }

    #[test]
    fn whoever_comes_late_does_not_wait_for_who_is_held_up() {
        let (mut gather, now) = (Gather::default(), Instant::now());
        assert!(gather.hopes(now) && gather.hopes(now + GATHERED_FOR_MAX / 2));
        assert!(!gather.hopes(now + GATHERED_FOR_MAX));
        gather.taken(3);
        assert!(gather.hopes(now + GATHERED_FOR_MAX));
    }
}
