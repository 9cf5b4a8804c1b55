//! The limits that the operating system puts on work: a thread's share of the processor
//! ([`Share`]), the memory that native libraries allocate on it ([`NativeMemory`]), and work in
//! child processes ([`child`]); its page faults ([`thread_faults`]); and the loop of threads that
//! do long work ([`do_jobs`]).
//!
//! Refuses to know what the work is. Share, memory and page faults have no safe interface in Rust's
//! libraries, so the unsafe code for them is here.

#![deny(missing_docs)]

pub mod child;
mod faults;
mod jobs;
mod memory;
mod share;

pub use faults::thread_faults;
pub use jobs::{Job, do_jobs};
pub use memory::{NativeMemory, is_counted};
pub use share::Share;
