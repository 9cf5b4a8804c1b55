//! When to try again something that did not pay. Pure.
//!
//! `gather` and `closed_loop` each wait for requests that may come. Each measures whether that
//! pays. If it does not, this decides when to try again.

/// Counts how often something was left out since the last trial, because it does not pay.
#[derive(Debug)]
pub(super) struct Trial {
    every: u32,
    skipped: u32,
}

impl Trial {
    /// While it does not pay, try once after it was left out `every` times.
    pub(super) fn new(every: u32) -> Self {
        Self { every, skipped: 0 }
    }

    /// Whether to try now: always while it `pays`, else once in a number of times. Counts the times
    /// that it is left out.
    pub(super) fn should_try(&mut self, pays: bool) -> bool {
        let tries = pays || self.skipped >= self.every;
        self.skipped += u32::from(!tries);
        tries
    }

    /// Start to count again, because it is tried now.
    pub(super) fn begin(&mut self) {
        self.skipped = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Trial;

    #[test]
    fn it_is_tried_always_while_it_pays_and_else_now_and_then() {
        let mut trial = Trial::new(3);
        assert!((0..10).all(|_| trial.should_try(true)));
        for _ in 0..4 {
            assert_eq!((0..3).filter(|_| trial.should_try(false)).count(), 0);
            assert!(trial.should_try(false) && trial.should_try(false), "until it is begun");
            trial.begin();
        }
    }
}
