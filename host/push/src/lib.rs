//! Metrics that are pushed: all of them go to an OpenTelemetry collector, now and then, over gRPC
//! or HTTP.
//!
//! In reading order: `message` makes the message of the values, `sender` sends it, and `push` does
//! both again and again.
//!
//! Refuses to know what the metrics are, and who else reads them.
//!
//! Invariant: a collector that is away costs one log line when it goes and one when it is back.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod message;
mod push;
mod sender;

pub use self::message::Source;
pub use self::push::push;
pub use self::sender::{PushError, Sender, SenderConfig};
