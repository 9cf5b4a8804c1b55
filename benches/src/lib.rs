//! What the benchmarks share: ways to load and to submit, models of their own, the comparisons of a
//! lane, and of the server end to end, with the bare session; a server's process; and the corpus of
//! hostile bytes.

#![forbid(unsafe_code)]

pub mod compare;
pub mod corpus;
pub mod end_to_end;
pub mod harness;
pub mod models;
pub mod server;
