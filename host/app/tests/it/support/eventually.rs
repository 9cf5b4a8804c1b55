//! Waiting for a condition that becomes true by itself.

use std::thread;
use std::time::{Duration, Instant};

/// The longest wait: more than any such condition takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The pause between two polls, which leaves the processor to the server.
const PAUSE: Duration = Duration::from_millis(2);

/// Look until `is_so` is true. Fails with the text `what` after [`PATIENCE`].
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    eventually_some(what, || is_so().then_some(()));
}

/// Poll until `poll` finds something. Fails with the text `what` after [`PATIENCE`].
#[track_caller]
pub(crate) fn eventually_some<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(PAUSE);
    }
}
