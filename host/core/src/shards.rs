//! Figures in several copies, so that threads on different cores do not wait for one another's
//! cache lines.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum copies.
const SHARDS_MAX: usize = 8;

/// One copy for each of several groups of threads.
#[derive(Debug)]
pub struct Shards<T>(Box<[Aligned<T>]>);

/// A copy on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Aligned<T>(T);

impl<T: Default> Default for Shards<T> {
    fn default() -> Self {
        Self((0..count()).map(|_| Aligned::default()).collect())
    }
}

impl<T> Shards<T> {
    /// The copy of the calling thread.
    pub fn local(&self) -> &T {
        // The number of copies is a power of two.
        &self.0[thread() & (self.0.len() - 1)].0
    }

    /// All copies.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|shard| &shard.0)
    }
}

/// As many as cores, to the next power of two.
fn count() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.next_power_of_two().min(SHARDS_MAX)
}

/// A number of the calling thread. Threads are numbered as they first ask.
fn thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    OWN.with(|number| {
        if number.get() == usize::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}
