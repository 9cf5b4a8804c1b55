//! The standard library's locks, threads and clock. A lock that was poisoned is used on: what it
//! guards is changed in steps that cannot panic half-way.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

pub(crate) type Guard<'a, T> = std::sync::MutexGuard<'a, T>;

pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub(crate) struct Condvar(std::sync::Condvar);

impl Condvar {
    /// Wait until notified. Wakes up for no reason now and then.
    pub(crate) fn wait<'a, T>(&self, guard: Guard<'a, T>) -> Guard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait until notified, for `time` at most.
    pub(crate) fn wait_timeout<'a, T>(&self, guard: Guard<'a, T>, time: Duration) -> Guard<'a, T> {
        self.0.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Start a detached thread.
///
/// # Errors
/// The operating system cannot start a thread.
pub(crate) fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name).spawn(work).map(drop)
}

pub(crate) fn now() -> Instant {
    Instant::now()
}
