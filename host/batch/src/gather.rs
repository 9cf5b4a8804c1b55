//! Letting others join before a submitting task runs a short batch itself.
//!
//! Requests come in bursts: one look at the sockets brings several, whose tasks then run one after the other
//! on the same thread. If each ran its own rows at once there would be no batches. So a task that may
//! lead lets the runtime's other tasks go first, once: those that submit join its batch. Where nobody
//! does, that is tried only now and then.

/// After so many times that nobody joined it does not pay.
const ALONE_MAX: u32 = 4;

/// Where it does not pay it is tried once in so many requests.
const TRY_EVERY: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct Gather {
    alone: u32,
    skipped: u32,
}

impl Gather {
    /// Whether a task that may lead lets others go first.
    pub(crate) fn hopes(&mut self) -> bool {
        if self.alone >= ALONE_MAX && self.skipped < TRY_EVERY {
            self.skipped += 1;
            return false;
        }
        self.skipped = 0;
        true
    }

    /// A task that let others go first leads a batch of so many requests.
    pub(crate) fn led(&mut self, requests: usize) {
        self.alone = if requests > 1 { 0 } else { self.alone.saturating_add(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::{ALONE_MAX, Gather, TRY_EVERY};

    #[test]
    fn it_is_given_up_where_nobody_joins_and_taken_up_again() {
        let mut gather = Gather::default();
        for _ in 0..ALONE_MAX {
            assert!(gather.hopes());
            gather.led(1);
        }
        let tried = (0..10 * TRY_EVERY).filter(|_| gather.hopes()).count();
        assert!((9..=10).contains(&tried), "{tried}");
        gather.led(2);
        assert!((0..3).all(|_| gather.hopes()));
    }
}
