//! The parts that the benchmarks share: loading and submitting, models, the comparisons of a lane
//! and of the whole server with the bare session, a server's process, requests at a steady pace,
//! the corpus of hostile bytes, and the rows that a program prints.

#![forbid(unsafe_code)]

pub mod compare;
pub mod corpus;
pub mod end_to_end;
pub mod files;
pub mod harness;
pub mod load;
pub mod models;
pub mod report;
pub mod server;
