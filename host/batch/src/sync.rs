//! Locks, condition variables, threads and the clock that the wake-up protocol of a lane uses.
//!
//! They are those of parking_lot and the standard library (`native`). Within
//! [`explore`](checked::explore), tests replace them by those of a scheduler that runs the threads
//! of a lane in many orders (`checked`).
//!
//! Code that takes part in the protocol must take them from here.

#[cfg(test)]
pub(crate) mod checked;
mod native;

#[cfg(test)]
pub(crate) use checked::{Condvar, Guard, Mutex, now, spawn};
#[cfg(not(test))]
pub(crate) use native::{Condvar, Guard, Mutex, now, spawn};
pub(crate) use native::{time_of_day, timer_now};
