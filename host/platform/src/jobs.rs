//! Long work for requests, one job after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Share;

/// A piece of work for another thread.
pub type Job = Box<dyn FnOnce() + Send>;

/// Give the calling thread the share of long work, and do jobs until `next` has none. A job that
/// panics does not end the thread. `what` is the subject of the jobs in the plural, for the log.
pub fn do_jobs(what: &str, mut next: impl FnMut() -> Option<Job>) {
    Share::Long.take(what);
    while let Some(job) = next() {
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("work on {what} panicked");
        }
    }
}
