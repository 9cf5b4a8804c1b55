//! The protocol over gRPC: its messages, which are checked before they are decoded, and the
//! requests and tensors in them.
//!
//! `codec` checks a message before prost decodes it, `contents` reads typed tensors, `messages`
//! converts requests and answers, `names` has the words of enumerations in JSON.

mod codec;
mod contents;
mod messages;
mod names;

pub use messages::{number, output_of, requested_output, tensors, typed_bytes};
pub use names::configured;

/// The protocol's messages and service. Those that describe models serialise to the JSON of HTTP.
#[expect(clippy::all, unused_qualifications, reason = "generated")]
#[allow(
    dead_code,
    missing_docs,
    reason = "typed contents are read by hand, and made by tests only"
)]
pub mod proto {
    tonic::include_proto!("inference");
}
