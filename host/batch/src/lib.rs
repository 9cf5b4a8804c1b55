//! The shared dynamic batcher: one [`Lane`] per loaded model version.
//!
//! Requests of all tenants meet here and travel in one batch through one model instance. An idle
//! instance takes what is queued at once; batches form while instances are busy. Refuses to know
//! which backend runs the model and which protocol a request came by.
//!
//! Files import each other downwards only:
//! - `lane` is the public interface, `submission` a request and its answer; `worker`, `leader` and
//!   `watch` are the threads and tasks that act;
//! - `state` is what they share, with each change of it and the wake-up that follows;
//! - `policy` decides which requests share a batch, and knows no clock, thread or tensor;
//!   `service_time` learns how long batches take; `running` lists the batches that run now;
//! - `assignment` is a batch on an instance; `batch` runs, bisects and answers it; `stager` copies
//!   its inputs together, fills short rows up and cuts their outputs back; `split` cuts requests
//!   that are larger than a batch, `ragged` those whose rows have different lengths; `job` is a
//!   request in a batch, and `ticket` carries the answer back;
//! - `tally` counts, `statistics` are its figures, `pending` counts each request when it ends;
//! - `rehearsal` is a lane by the same rules in which nothing runs, for predictions;
//! - `sync` has the locks, the threads and the clock, so that tests can run the threads in many
//!   orders.
//!
//! Invariants:
//! - every submitted request gets exactly one answer, or its submitter is gone;
//! - a batch never holds more rows than the lane's maximum;
//! - one request's failure is not another's: a failed batch is bisected;
//! - a run ends soon after the last deadline of its requests, or its instance is given up.

#![forbid(unsafe_code)]
#![deny(missing_docs)]
// Tests measure real time. Clippy checks the crate without its tests as well.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod assignment;
mod batch;
mod config;
mod error;
mod job;
mod lane;
mod leader;
mod pending;
mod policy;
mod queue_timeout;
mod ragged;
mod rehearsal;
mod running;
mod service_time;
mod sharing;
mod split;
mod stager;
mod state;
mod statistics;
mod submission;
mod sync;
mod tally;
mod ticket;
mod times;
mod upkeep;
mod watch;
mod worker;

pub use config::{LOST_AFTER, LaneConfig, QueueLimits, QueuePolicy, TimeoutAction};
pub use error::{RunError, SubmitError};
pub use lane::{Lane, LaneParts};
pub use leader::LED_BATCHES_MAX;
pub use policy::Full;
pub use rehearsal::{Lead, Rehearsal};
pub use statistics::{BatchStatistics, Counters, Elements, LaneStatistics, MixedBatch};
pub use submission::{Answered, LAST_PRIORITY, Submission};
pub use times::Times;
pub use upkeep::{LOST_RUNS_MAX, Refusal, Replace, ReplaceError, Upkeep};
