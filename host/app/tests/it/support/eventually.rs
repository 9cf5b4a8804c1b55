//! Waiting for a condition that becomes true by itself.

use std::thread;
use std::time::{Duration, Instant};

/// Longer than any such condition takes, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The pause between two looks: without it the server would have less time for its work.
const PAUSE: Duration = Duration::from_millis(2);

/// Looks until `is_so` is true; fails with `what` after [`PATIENCE`].
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    eventually_some(what, || is_so().then_some(()));
}

/// Looks until there is something; fails with `what` after [`PATIENCE`].
#[track_caller]
pub(crate) fn eventually_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(PAUSE);
    }
}
