//! Locks, condition variables, threads and the clock that the wake-up protocol of a lane uses.
//!
//! Code that takes part in the protocol takes them from here and from nowhere else.

mod native;

pub(crate) use native::{Condvar, Guard, Mutex, now, spawn};
