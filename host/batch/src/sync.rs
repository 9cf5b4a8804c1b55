//! Locks, condition variables, threads and the clock that the wake-up protocol of a lane uses.
//!
//! They are parking_lot's and the standard library's (`native`). In tests they are, within
//! [`explore`](checked::explore), those of a scheduler that runs the threads of a lane in many
//! orders (`checked`), and else the same.
//!
//! Code that takes part in the protocol takes them from here and from nowhere else.

#[cfg(test)]
pub(crate) mod checked;
mod native;

#[cfg(test)]
pub(crate) use checked::{Condvar, Guard, Mutex, now, spawn};
#[cfg(not(test))]
pub(crate) use native::{Condvar, Guard, Mutex, now, spawn};
pub(crate) use native::{time_of_day, timer_now};
