//! Traces: the context that a request brings, whether it is traced, and its spans, which go to a
//! collector by OTLP.
//!
//! In reading order: `context` reads and writes the W3C headers, `tracer` decides what is traced,
//! `spans` makes spans of a record, `export` sets the sender up.
//!
//! Spans are made when a request has ended, from the times in its record. So a request that is not
//! traced costs two random numbers, and one that was slow or failed can be kept although it was not
//! sampled. Stages begin one after the other; the microseconds between them are not seen.
//!
//! Refuses to know connections, pipelines and models.
//!
//! Invariant: no request waits for a collector. Spans that it does not take in time are dropped.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod context;
mod export;
mod spans;
mod tracer;

pub use self::context::TraceContext;
pub use self::export::{TraceConfig, TraceSetupError};
pub use self::spans::{EndedRequest, LogEvent};
pub use self::tracer::Tracer;
