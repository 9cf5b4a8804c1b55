//! Running work in a child process, within limits on its time and memory.
//!
//! The server hands such work (compiling a plugin, running a model for the first time) to a child
//! process of the same binary: `runner` starts it, feeds it, waits for it and ends it; `task` is
//! the child's side; `attend` serves one child on a thread of its own. Refuses to know what the
//! work is: a job has a name, a small document and a file.
//!
//! The parent writes to the child's standard input: the length of a head, the head, the document,
//! the file. Then it keeps the pipe open: a child whose standard input ends has lost its parent,
//! and ends. The child's standard output is its answer; its standard error becomes the reason if it
//! fails.
//!
//! Invariants:
//! - a child sets its limits before it reads anything of the job;
//! - a child does not outlive the call that runs it, nor its parent;
//! - a child has no descriptors of the parent except its standard streams, none of the parent's
//!   environment variables, and `/` as its working directory;
//! - a child has a low priority from its first instruction on, because the thread that starts it
//!   has it.

#![forbid(unsafe_code)]

mod attend;
mod error;
mod limits;
mod runner;
mod task;

pub use error::ChildError;
pub use limits::ChildLimits;
pub use runner::{ChildRunner, Job, JobStatus, Output, RunnerConfig};
pub use task::{Task, enter};
