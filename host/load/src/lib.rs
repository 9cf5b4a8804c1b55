//! A load generator: sends requests over HTTP/1.1 or gRPC, and measures how long answers take.
//!
//! In reading order: `target` is a request to send, `arrivals` and `open_loop` say when requests
//! are sent, `load` says what load is made, `generator` runs threads that make it, `score` counts
//! how requests end, `measured` is what comes out, `compare` compares two of those, and `plot`
//! draws one.
//!
//! Plain HTTP has a worker of its own: `decode` reads answers, `connection` is one connection, and
//! `worker` drives many on one thread. It is written for little processor time of its own, because
//! on a shared machine the client is half of what is measured: sockets without a runtime between,
//! requests that are made once, and one call of the system for each direction of a request. gRPC
//! and TLS are sent by hyper (`hyper_worker`, `hyper_connection`); gRPC takes about three times as
//! much.
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
mod decode;
mod generator;
mod hyper_connection;
mod hyper_worker;
mod load;
mod measured;
mod open_loop;
mod plot;
mod score;
mod target;
mod worker;

pub use self::arrivals::{Arrivals, Pace, Random};
pub use self::compare::{Change, compare};
pub use self::generator::{Progress, run};
pub use self::hyper_connection::call;
pub use self::load::{Load, LoadError};
pub use self::measured::{Latencies, Measured, Second};
pub use self::plot::plot;
pub use self::target::{Scheme, Target, TargetError, Url};
