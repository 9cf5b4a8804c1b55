//! Traces and metrics for an OpenTelemetry collector, sent by OTLP over gRPC or HTTP.
//!
//! `collector` says where both go. In reading order, of traces: `context` reads and writes the W3C
//! headers, `tracer` decides what is traced, `spans` makes spans of a record, `export` sets their
//! sender up. Of metrics: `message` makes the message of the values, `sender` sends it, and `push`
//! does both again and again.
//!
//! Spans are made when a request has ended, from the times in its record. So a request that is not
//! traced costs two random numbers, and one that was slow or failed can be kept although it was not
//! sampled. Stages begin one after the other; the microseconds between them are not seen.
//!
//! Refuses to know connections, pipelines and models; what the metrics are, and who else reads
//! them.
//!
//! Invariants:
//! - no request waits for a collector. Spans that it does not take in time are dropped;
//! - metrics that a collector does not take cost one log line when it goes and one when it is back.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod collector;
mod context;
mod export;
mod message;
mod push;
mod sender;
mod spans;
mod tracer;

pub use self::collector::{Collector, OtlpProtocol};
pub use self::context::TraceContext;
pub use self::export::{TraceConfig, TraceSetupError};
pub use self::message::MetricSource;
pub use self::push::push;
pub use self::sender::{PushError, Sender};
pub use self::spans::{LogEvent, TracedRequest};
pub use self::tracer::{RequestSpan, Tracer};
