//! What the benchmarks of lanes share: ways to load and to submit, models of their own, and the comparisons of
//! a lane, and of the server end to end, with the bare session.

#![forbid(unsafe_code)]

pub mod compare;
pub mod end_to_end;
pub mod harness;
pub mod models;
