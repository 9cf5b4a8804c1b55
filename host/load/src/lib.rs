//! A load generator: sends requests over HTTP/1.1 or gRPC, and measures how long answers take.
//!
//! In reading order: `target` is a request to send, `arrivals` and `schedule` say when requests are
//! sent, `load` says what load is made, `connection` sends one request after the other, `worker`
//! drives many connections on one thread, and `generator` runs the threads. `score` counts how
//! requests end, `measured` is what comes out, `compare` compares two of those, and `plot` draws
//! one. `statistics` has medians and percentiles, also for benchmarks.
//!
//! hyper sends all requests. On a shared machine the client is half of what is measured, so the way
//! of a request is short: its head and body are made once and shared, each connection is a task
//! without a pool, and the clock is read once for each answer.
//!
//! Refuses to know the command line, and what the requests mean.
//!
//! Invariant: in an open loop a request's time counts from the moment at which it should have been
//! sent, also if no connection was free then (no coordinated omission).

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arrivals;
mod compare;
mod connection;
mod generator;
mod load;
mod measured;
mod plot;
mod schedule;
mod score;
mod statistics;
mod target;
mod timer;
mod worker;

pub use self::arrivals::{Arrivals, Pace, Random};
pub use self::compare::{Change, compare};
pub use self::connection::call;
pub use self::generator::{Progress, run};
pub use self::load::{Load, LoadError};
pub use self::measured::{Latencies, Measured, Second};
pub use self::plot::plot;
pub use self::statistics::{median, percentile};
pub use self::target::{LoadTarget, Scheme, TargetError, Url};
