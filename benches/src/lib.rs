//! What the benchmarks of lanes share: ways to load and to submit, models of their own, and the comparison of
//! a lane with the bare session.

#![forbid(unsafe_code)]

pub mod compare;
pub mod harness;
pub mod models;
