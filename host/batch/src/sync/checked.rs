//! The same interface for tests. Within [`explore`] a scheduler decides at each lock, wait and
//! notification which thread continues. If no thread can, it fails the test.
//!
//! Time is simulated there. Reading the clock takes a microsecond, and a wait with a timeout ends
//! at once by its timeout. So a missing notification is not found if it only shortens such a wait.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use shuttle::scheduler::Scheduler;
use shuttle::{Config, MaxSteps, Runner};

use super::native;

/// The stack of each thread.
const STACK_BYTES: usize = 256 << 10;

/// The time of reading the clock.
const TICK: Duration = Duration::from_micros(1);

thread_local! {
    /// The time within [`explore`], which runs everything on one thread of the system.
    static CLOCK: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Run `scenario`, and the threads it starts, in as many orders as `scheduler` makes.
///
/// # Panics
/// If a scenario panics, or if all of its threads wait for one another.
pub(crate) fn explore(
    scheduler: impl Scheduler + 'static,
    scenario: impl Fn() + Send + Sync + 'static,
) {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            CLOCK.set(None);
        }
    }
    let (_reset, began) = (Reset, Instant::now());
    CLOCK.set(Some(began));
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(200_000);
    config.stack_size = STACK_BYTES;
    let runs = Runner::new(scheduler, config).run(move || {
        CLOCK.set(Some(began));
        scenario();
    });
    assert!(runs > 0);
}

/// Let `time` pass; only within [`explore`].
pub(crate) fn pass(time: Duration) {
    CLOCK.set(CLOCK.get().map(|now| now + time));
}

fn is_exploring() -> bool {
    CLOCK.get().is_some()
}

pub(crate) fn now() -> Instant {
    pass(TICK);
    CLOCK.get().unwrap_or_else(native::now)
}

pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    held: T,
    work: impl FnOnce(&T) + Send + 'static,
) -> std::io::Result<()> {
    if is_exploring() {
        shuttle::thread::spawn(move || work(&held));
        return Ok(());
    }
    native::spawn(name, held, work)
}

pub(crate) enum Mutex<T> {
    Native(native::Mutex<T>),
    Checked(shuttle::sync::Mutex<T>),
}

pub(crate) enum Guard<'a, T> {
    Native(native::Guard<'a, T>),
    Checked { guard: shuttle::sync::MutexGuard<'a, T>, mutex: &'a shuttle::sync::Mutex<T> },
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        if is_exploring() {
            Self::Checked(shuttle::sync::Mutex::new(value))
        } else {
            Self::Native(native::Mutex::new(value))
        }
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        match self {
            Self::Native(mutex) => Guard::Native(mutex.lock()),
            Self::Checked(mutex) => Guard::Checked { guard: mutex.lock().unwrap(), mutex },
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Native(guard) => guard,
            Self::Checked { guard, .. } => guard,
        }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Self::Native(guard) => guard,
            Self::Checked { guard, .. } => guard,
        }
    }
}

pub(crate) enum Condvar {
    Native(native::Condvar),
    Checked(shuttle::sync::Condvar),
}

impl Default for Condvar {
    fn default() -> Self {
        if is_exploring() {
            Self::Checked(shuttle::sync::Condvar::new())
        } else {
            Self::Native(native::Condvar::default())
        }
    }
}

impl Condvar {
    pub(crate) fn wait<'a, T>(&self, guard: Guard<'a, T>) -> Guard<'a, T> {
        match (self, guard) {
            (Self::Native(condvar), Guard::Native(guard)) => Guard::Native(condvar.wait(guard)),
            (Self::Checked(condvar), Guard::Checked { guard, mutex }) => {
                Guard::Checked { guard: condvar.wait(guard).unwrap(), mutex }
            }
            _ => unreachable!("a lane was made within and is used outside, or the reverse"),
        }
    }

    pub(crate) fn wait_timeout<'a, T>(&self, guard: Guard<'a, T>, time: Duration) -> Guard<'a, T> {
        match (self, guard) {
            (Self::Native(condvar), Guard::Native(guard)) => {
                Guard::Native(condvar.wait_timeout(guard, time))
            }
            (Self::Checked(_), Guard::Checked { guard, mutex }) => {
                drop(guard);
                pass(time);
                shuttle::thread::yield_now();
                Guard::Checked { guard: mutex.lock().unwrap(), mutex }
            }
            _ => unreachable!("a lane was made within and is used outside, or the reverse"),
        }
    }

    pub(crate) fn notify_one(&self) {
        match self {
            Self::Native(condvar) => condvar.notify_one(),
            Self::Checked(condvar) => condvar.notify_one(),
        }
    }

    pub(crate) fn notify_all(&self) {
        match self {
            Self::Native(condvar) => condvar.notify_all(),
            Self::Checked(condvar) => condvar.notify_all(),
        }
    }
}
