//! The limits of a thread: its share of the processor ([`Share`]), and the memory that native
//! libraries allocate on it ([`NativeMemory`]); and the loop of threads that do long work
//! ([`do_jobs`]).
//!
//! Refuses to know what the jobs are. Share and memory have no safe interface in Rust's libraries,
//! so the unsafe code for them is here.

#![deny(missing_docs)]

mod jobs;
mod memory;
mod share;

pub use jobs::{Job, do_jobs};
pub use memory::{NativeMemory, is_counted};
pub use share::Share;
