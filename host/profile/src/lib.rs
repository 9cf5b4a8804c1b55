//! Where the process spends its CPU time, on demand: samples of all threads' stacks, as a
//! flame graph and in pprof's format.
//!
//! In reading order: `ring` holds the samples that were taken and not yet read, `signal` takes
//! them, `objects` reads the files of code that are loaded, `stacks` unwinds samples, `names`
//! gives names to addresses, `record` does it all for a time, and `flame` and `pprof` write the
//! result.
//!
//! Refuses to know what the code does. Code that is not in a file, such as compiled plugins, is
//! named by the caller ([`Code`](gristmill_core::Code)).
//!
//! Invariant: the signal handler only copies registers and the top of the stack into memory that
//! is there already. It allocates nothing, takes no lock, unwinds nothing, and reads the stack with
//! a call of the system that fails where memory cannot be read. All else runs on the thread that
//! asked.

#![deny(missing_docs)]

mod flame;
mod names;
mod objects;
mod pprof;
mod record;
mod ring;
mod signal;
mod stacks;

pub use self::record::{Profile, ProfileError, Stack, record};
