//! The attacks on the server: one line for each.

use anyhow::Result;
use gristmill_benches::corpus::pictures::PngColor;
use gristmill_benches::corpus::{messages, models, pictures, plugins};

/// An attack, and the numbers of attackers with which it is measured.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) attackers: &'static [usize],
    pub(crate) kind: Kind,
}

/// Makes the bytes of a case when it begins. Some take seconds to make, and all at once would fill
/// the memory.
pub(crate) type Make = fn() -> Result<Vec<u8>>;

pub(crate) enum Kind {
    /// The hostile plugin does the deed of this name. The body is a picture of 1x1.
    Guest(&'static str),
    /// The hostile plugin computes for nearly the whole CPU budget of a call.
    ShortCalls,
    /// Like `Guest`, in a pipeline with so much CPU time that the deadline ends the call.
    PatientGuest(&'static str),
    /// Like `Guest`, in one request of 500. The others are harmless.
    RareGuest(&'static str),
    /// Like `Guest`, by clients that read almost nothing of their answers.
    SlowReaders(&'static str),
    /// A picture for the honest pipeline of this path.
    Picture(&'static str, Make),
    /// Like `Picture`, by clients that leave as soon as they have sent it.
    LeavingClients(&'static str, Make),
    /// A body for the Open Inference Protocol over HTTP.
    Json(Make),
    /// A message for the Open Inference Protocol over gRPC.
    Grpc(Make),
    /// Uploads of plugins that are made from an honest one. Each upload differs.
    Plugin(fn(&[u8]) -> Vec<u8>),
    /// All attackers upload the same new plugin at once.
    SamePlugin,
    /// One upload of the plugin in JavaScript. The case ends when it is compiled.
    JavaScript,
    /// Uploads of models, and a request that runs each accepted one. Each upload differs.
    Model(fn() -> Vec<u8>, ModelInput),
}

/// The input of a request to a hostile model.
#[derive(Clone, Copy)]
pub(crate) struct ModelInput {
    pub(crate) datatype: &'static str,
    pub(crate) value: i64,
}

const ONE_FLOAT: ModelInput = ModelInput { datatype: "FP32", value: 1 };
/// The value is a shape of this many floats, which are 6.4 GB.
const MANY_FLOATS: ModelInput = ModelInput { datatype: "INT64", value: 1_600_000_000 };

/// Pipelines of honest plugins.
const DIGITS: &str = "digits";
const THUMBNAIL: &str = "hostile?do=thumbnail";

const fn case(name: &'static str, attackers: &'static [usize], kind: Kind) -> Case {
    Case { name, attackers, kind }
}

use Kind::{
    Grpc, Guest, JavaScript, Json, LeavingClients, Model, PatientGuest, Picture, Plugin, RareGuest,
    SamePlugin, ShortCalls, SlowReaders,
};

pub(crate) const CASES: &[Case] = &[
    // For comparison: here the host only has to interrupt guests.
    case("guest/loop", &[8], Guest("loop")),
    case("guest/post-loop", &[8], Guest("post-loop")),
    case("guest/short-calls", &[8], ShortCalls),
    case("guest/recurse", &[8], Guest("recurse")),
    case("guest/panic", &[8], Guest("panic")),
    // Memory of guests.
    case("guest/eat-memory", &[8], Guest("eat-memory")),
    case("guest/touch-memory", &[8], Guest("touch-memory")),
    case("guest/fill-memory", &[8], Guest("fill-memory")),
    case("guest/fill-memory, one in 500", &[8], RareGuest("fill-memory")),
    // Work and memory of the host for guests.
    case("guest/top-k", &[4], Guest("top-k")),
    case("guest/argmax", &[4], Guest("argmax")),
    case("guest/softmax", &[4], Guest("softmax")),
    case("guest/tensor-data", &[4], Guest("tensor-data")),
    case("guest/pixels-data", &[4], Guest("pixels-data")),
    case("guest/read-body", &[4], Guest("read-body")),
    case("guest/empty-strings", &[4], Guest("empty-strings")),
    case("guest/huge-shape-text", &[4], Guest("huge-shape-text")),
    case("guest/many-dims", &[4], Guest("many-dims")),
    case("guest/many-dims-held", &[1, 4], PatientGuest("many-dims-held")),
    case("guest/long-name", &[4], Guest("long-name")),
    case("guest/many-inputs", &[4], Guest("many-inputs")),
    case("guest/large-tensors", &[8], Guest("large-tensors")),
    case("guest/hold-tensors", &[20], PatientGuest("hold-tensors")),
    case("guest/eat-handles", &[8], Guest("eat-handles")),
    case("guest/eat-host-memory", &[8], Guest("eat-host-memory")),
    case("guest/resize-chain", &[1, 4], Guest("resize-chain")),
    case("guest/resize-sides", &[4], Guest("resize-sides")),
    case("guest/resize-long", &[1, 4], Guest("resize-long")),
    case("guest/resize-loop", &[8], Guest("resize-loop")),
    // The log.
    case("guest/flood-log", &[8], Guest("flood-log")),
    case("guest/log-empty", &[8], Guest("log-empty")),
    case("guest/log-short", &[8], Guest("log-short")),
    case("guest/log-control", &[8], Guest("log-control")),
    case("guest/log-fields", &[4], Guest("log-fields")),
    case("guest/log-empty-fields", &[4], Guest("log-empty-fields")),
    // Answers.
    case("guest/large-state", &[8], Guest("large-state")),
    case("guest/huge-state", &[8], Guest("huge-state")),
    case("guest/huge-response", &[8], Guest("huge-response")),
    case("guest/20000-headers", &[8], Guest("20000-headers")),
    case("guest/30000-headers", &[8], Guest("30000-headers")),
    case("guest/40000-headers", &[8], Guest("40000-headers")),
    case("guest/huge-content-type", &[8], Guest("huge-content-type")),
    case("guest/huge-headers", &[4], Guest("huge-headers")),
    case("guest/huge-headers, unread", &[80], SlowReaders("huge-headers")),
    // Pictures that clients send to honest plugins.
    case("picture/png-3000000x1", &[4], Picture(THUMBNAIL, png_3_000_000)),
    case("picture/png-20000000x1", &[4], Picture(DIGITS, png_20_000_000)),
    case("picture/png-deep", &[4], Picture(DIGITS, pictures::png_deep)),
    case("picture/png-deep, leaving", &[60], LeavingClients(DIGITS, pictures::png_deep)),
    case("picture/png-large", &[4], Picture(DIGITS, pictures::png_large)),
    case("picture/png-rows", &[4], Picture(DIGITS, pictures::png_rows)),
    case("picture/png-profile", &[4], Picture(DIGITS, pictures::png_profile)),
    case("picture/webp", &[4], Picture(DIGITS, || Ok(pictures::webp()))),
    case("picture/webp-codes", &[4], Picture(DIGITS, || Ok(pictures::webp_codes()))),
    case("picture/gif", &[4], Picture(DIGITS, || Ok(pictures::gif()))),
    case("picture/bmp", &[4], Picture(DIGITS, || Ok(pictures::bmp()))),
    case("picture/jpeg-scans", &[4], Picture(DIGITS, || Ok(pictures::jpeg_scans()))),
    case("picture/jpeg-early-end", &[4], Picture(DIGITS, || Ok(pictures::jpeg_early_end()))),
    case("picture/jpeg-stuffed", &[4], Picture(DIGITS, || Ok(pictures::jpeg_stuffed()))),
    // Messages.
    case("message/json-shape", &[1, 4], Json(|| Ok(messages::json_shape()))),
    case("message/json-outputs", &[1, 4], Json(|| Ok(messages::json_outputs()))),
    case("message/json-inputs", &[1, 4], Json(|| Ok(messages::json_inputs()))),
    case("message/grpc-shape", &[1, 4], Grpc(|| Ok(messages::grpc_shape()))),
    case("message/grpc-integers", &[1, 4], Grpc(|| Ok(messages::grpc_integers()))),
    case("message/grpc-outputs", &[1, 4], Grpc(|| Ok(messages::grpc_outputs()))),
    case("message/grpc-parts", &[1, 4], Grpc(|| Ok(messages::grpc_parts()))),
    // Uploads.
    case("upload/nested-loops", &[2], Plugin(plugins::nested_loops)),
    case("upload/many-locals", &[2], Plugin(plugins::many_locals)),
    case("upload/same-plugin", &[16], SamePlugin),
    case("upload/javascript", &[1], JavaScript),
    // Models.
    case("model/loop", &[1], Model(models::endless_loop, ONE_FLOAT)),
    case("model/expand", &[1], Model(models::expand, ONE_FLOAT)),
    case("model/constant-of-shape", &[1], Model(models::constant_of_shape, MANY_FLOATS)),
    case("model/many-nodes", &[1], Model(models::many_nodes, ONE_FLOAT)),
];

fn png_3_000_000() -> Result<Vec<u8>> {
    pictures::png(3_000_000, 1, PngColor::Gray8)
}

fn png_20_000_000() -> Result<Vec<u8>> {
    pictures::png(20_000_000, 1, PngColor::Gray8)
}
