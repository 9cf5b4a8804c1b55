//! Fuzz targets. Each takes bytes of a stranger, gives them to one of the server's readers, and
//! panics if something does not hold that must hold for any bytes.
//!
//! | target | the bytes are | what must hold |
//! |---|---|---|
//! | `tensors` | calls of a guest | every host function answers, and all memory is given back |
//! | `images` | a picture | decoding takes what it said, and shows no earlier owner's bytes |
//! | `multipart` | a form | its parts lie in it in order, and another parser finds the same ones |
//! | `admission` | an uploaded plugin | it is refused for its own fault, or can be loaded |
//! | `artifacts` | damage to compiled code | changed code is never loaded |
//! | `messages` | an inference request | an answer made of what was read is well-formed |
//!
//! `targets/` has a program for each, `corpus/` the inputs that are kept: seeds, and every input
//! that ever found a fault. The tests `plugins::fuzz_inputs` of the crate `app` give the kept
//! inputs to the same functions, so these files name nothing of this crate but each other.

pub mod admission;
pub mod artifacts;
pub mod images;
pub mod messages;
pub mod multipart;
pub mod tensors;

mod guest;
mod sandboxed;
mod stack;

pub use stack::let_handlers_run;

/// The tests of the crate `imaging` have this file.
#[path = "../../imaging/tests/it/allocations.rs"]
mod allocations;

/// The crate `serve` has this file; it is private there.
#[path = "../../serve/src/edge/form.rs"]
mod form;
