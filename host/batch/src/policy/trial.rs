//! When to try again what did not pay. Pure.
//!
//! `gather` and `closed_loop` each wait for requests that may come. Each measures by itself whether
//! that pays, and asks here whether to try although it does not.

/// Counts how often something that does not pay was left out since it was last tried.
#[derive(Debug)]
pub(super) struct Trial {
    every: u32,
    skipped: u32,
}

impl Trial {
    /// While it does not pay, try once after `every` times that it was left out.
    pub(super) fn new(every: u32) -> Self {
        Self { every, skipped: 0 }
    }

    /// Whether to try now: while it `pays`, and else now and then. Counts the times it is left out.
    pub(super) fn should_try(&mut self, pays: bool) -> bool {
        let tries = pays || self.skipped >= self.every;
        self.skipped += u32::from(!tries);
        tries
    }

    /// It is tried now: count anew.
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
