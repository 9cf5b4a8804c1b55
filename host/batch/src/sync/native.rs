//! The locks, threads and clocks of a lane that serves. No other file of this crate reads a clock:
//! clippy refuses it (`.clippy.toml`).
//!
//! A panic does not poison a lock: other threads go on using it. That is sound, because guarded
//! data change in steps that cannot panic half-way.

#![allow(clippy::disallowed_methods)]

use std::time::{Duration, Instant, SystemTime};

use gristmill_platform::Share;

pub(crate) type Guard<'a, T> = parking_lot::MutexGuard<'a, T>;

pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock()
    }
}

#[derive(Default)]
pub(crate) struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// Wait until notified.
    pub(crate) fn wait<'a, T>(&self, mut guard: Guard<'a, T>) -> Guard<'a, T> {
        self.0.wait(&mut guard);
        guard
    }

    /// Wait until notified, for `time` at most.
    pub(crate) fn wait_timeout<'a, T>(
        &self,
        mut guard: Guard<'a, T>,
        time: Duration,
    ) -> Guard<'a, T> {
        self.0.wait_for(&mut guard, time);
        guard
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Start a detached thread that serves: it does `work` with what it holds. Then it may free a
/// model, which takes long: requests for others do not wait for that.
///
/// # Errors
/// The operating system cannot start a thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    held: T,
    work: impl FnOnce(&T) + Send + 'static,
) -> std::io::Result<()> {
    let run = move || {
        Share::Serving.take("runs of models");
        work(&held);
        Share::Long.take("models that are freed");
        drop(held);
    };
    std::thread::Builder::new().name(name).spawn(run).map(drop)
}

pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The clock of tokio's timers, which its tests can pause.
pub(crate) fn timer_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// The time of day, for people to read: no decision is made by it.
pub(crate) fn time_of_day() -> SystemTime {
    SystemTime::now()
}
