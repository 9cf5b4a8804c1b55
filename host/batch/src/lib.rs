//! The shared dynamic batcher: one [`Lane`] per loaded model version.
//!
//! Requests of all tenants meet here and travel in one batch through one model instance. An idle
//! instance takes what is queued at once; batches form while instances are busy. Refuses to know
//! which backend runs the model and which protocol a request came by.
//!
//! `policy` decides, and knows no clock, thread or tensor; `service_time` learns how long batches take;
//! `worker` runs what was decided, a `batch` at a time; `gather` lets short ones grow; `parts` cuts what is larger than
//! a batch; `ticket` brings the answer back; `running` lists what runs just now and `watch` gives up what runs
//! for too long; `statistics` counts.
//!
//! Invariants:
//! - every submitted request gets exactly one answer, or its submitter is gone;
//! - a batch never holds more rows than the lane's maximum;
//! - one request's failure is not another's: a failed batch is bisected;
//! - a run ends soon after the last deadline of its requests, or its instance is given up.

#![forbid(unsafe_code)]

mod batch;
mod config;
mod gather;
mod lane;
mod parts;
mod policy;
mod running;
mod service_time;
mod statistics;
mod ticket;
mod watch;
mod worker;

pub use batch::Times;
pub use config::{LOST_AFTER, LaneConfig, QueueLimits, QueuePolicy, TimeoutAction};
pub use lane::{Answered, Lane, LaneParts, Submission, SubmitError};
pub use policy::Full;
pub use statistics::{BatchStatistics, Counters, LaneStatistics, MixedBatch};
pub use watch::{LOST_RUNS_MAX, Replace, Upkeep, refusal};
