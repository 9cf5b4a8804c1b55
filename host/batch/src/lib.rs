//! The shared dynamic batcher: one [`Lane`] per loaded model version.
//!
//! Requests of all tenants meet here and travel in one batch through one model instance. An idle
//! instance takes what is queued at once; batches form while instances are busy. Refuses to know
//! which backend runs the model and which protocol a request came by.
//!
//! `policy` decides, and knows no clock, thread or tensor; `worker` runs what it decided;
//! `statistics` counts.
//!
//! Invariants:
//! - every submitted request gets exactly one answer, or its submitter is gone;
//! - a batch never holds more rows than the lane's maximum;
//! - one request's failure is not another's: a failed batch is run again request by request.

#![forbid(unsafe_code)]

mod lane;
mod policy;
mod statistics;
mod worker;

pub use lane::{Lane, LaneConfig, Submission, SubmitError};
pub use statistics::{LaneStatistics, MixedBatch};
