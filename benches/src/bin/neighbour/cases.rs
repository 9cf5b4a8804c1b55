//! The attacks on the server: one line for each.

use anyhow::Result;
use gristmill_benches::corpus::pictures::PngColor;
use gristmill_benches::corpus::{messages, models, pictures, plugins};

/// An attack, and the numbers of attackers with which it is measured.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// If there are none, only the corpus has its deed.
    pub(crate) attackers: &'static [usize],
    pub(crate) kind: Kind,
}

/// Makes the bytes of a case when it begins. Some take seconds to make, and all at once would fill
/// the memory.
pub(crate) type Make = fn() -> Result<Vec<u8>>;

pub(crate) enum Kind {
    /// The hostile plugin does the deed of this name. The body is a picture of 1x1.
    Guest(&'static str),
    /// Like `Guest`, by the plugin of the pipeline with the first name.
    GuestIn(&'static str, &'static str),
    /// The hostile plugin computes for nearly the whole CPU budget of a call.
    ShortCalls,
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
    /// The deeds of all cases with `Guest` and `GuestIn` in turn: each request does the next one.
    Corpus,
}

impl Kind {
    /// The pipeline and the deed, if a hostile plugin does one.
    pub(crate) fn deed(&self) -> Option<(&'static str, &'static str)> {
        match *self {
            Self::Guest(deed) => Some(("hostile", deed)),
            Self::GuestIn(pipeline, deed) => Some((pipeline, deed)),
            _ => None,
        }
    }
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

/// A pipeline with so much CPU time that the deadline ends the call.
pub(crate) const PATIENT: &str = "patient";

const fn case(name: &'static str, attackers: &'static [usize], kind: Kind) -> Case {
    Case { name, attackers, kind }
}

use Kind::{
    Corpus, Grpc, Guest, GuestIn, JavaScript, Json, LeavingClients, Model, Picture, Plugin,
    RareGuest, SamePlugin, ShortCalls, SlowReaders,
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
    case("guest/many-dims-held", &[1, 4], GuestIn(PATIENT, "many-dims-held")),
    case("guest/long-name", &[4], Guest("long-name")),
    case("guest/many-inputs", &[4], Guest("many-inputs")),
    case("guest/large-tensors", &[8], Guest("large-tensors")),
    case("guest/hold-tensors", &[20], GuestIn(PATIENT, "hold-tensors")),
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
    // Ends, and work that the cases above do in another way.
    case("guest/trap", &[], Guest("trap")),
    case("guest/post-trap", &[], Guest("post-trap")),
    case("guest/long-error", &[], Guest("long-error")),
    case("guest/internal-error", &[], Guest("internal-error")),
    case("guest/wrong-name", &[], Guest("wrong-name")),
    case("guest/wrong-dtype", &[], Guest("wrong-dtype")),
    case("guest/wrong-shape", &[], Guest("wrong-shape")),
    case("guest/wrong-length", &[], Guest("wrong-length")),
    case("guest/no-rows", &[], Guest("no-rows")),
    case("guest/no-inputs", &[], Guest("no-inputs")),
    case("guest/bad-status", &[], Guest("bad-status")),
    case("guest/bad-header", &[], Guest("bad-header")),
    case("guest/bad-content-type", &[], Guest("bad-content-type")),
    case("guest/large-headers", &[], Guest("large-headers")),
    case("guest/redirect-headers", &[], Guest("redirect-headers")),
    case("guest/remember", &[], Guest("remember")),
    case("guest/huge-tensor", &[], Guest("huge-tensor")),
    case("guest/operations", &[], Guest("operations")),
    case("guest/join-often", &[], Guest("join-often")),
    case("guest/join-much", &[], Guest("join-much")),
    case("guest/join-for-ever", &[], Guest("join-for-ever")),
    case("guest/cast-for-ever", &[], Guest("cast-for-ever")),
    case("guest/pad-much", &[], Guest("pad-much")),
    case("guest/blob-bytes", &[], Guest("blob-bytes")),
    case("guest/blob-base64", &[], Guest("blob-base64")),
    case("guest/blob-slices", &[], Guest("blob-slices")),
    case("guest/store-for-ever", &[], Guest("store-for-ever")),
    case("guest/asset-for-ever", &[], Guest("asset-for-ever")),
    case("guest/table-for-ever", &[], Guest("table-for-ever")),
    case("guest/blob-huge", &[], Guest("blob-huge")),
    case("guest/json-write", &[], Guest("json-write")),
    case("guest/thumbnail", &[], Guest("thumbnail")),
    case("guest/log-line", &[], Guest("log-line")),
    case("guest/log-and-panic", &[], Guest("log-and-panic&bytes=1000")),
    case("guest/count", &[], GuestIn("hostile-kept", "count")),
    case("guest/count-and-refuse", &[], GuestIn("hostile-kept", "count-and-refuse")),
    case("guest/count-and-trap", &[], GuestIn("hostile-kept", "count-and-trap")),
    case("guest/count-and-grow", &[], GuestIn("hostile-kept", "count-and-grow")),
    case("guest/count-and-keep", &[], GuestIn("hostile-kept", "count-and-keep")),
    case("guest/count-and-keep-outputs", &[], GuestIn("hostile-kept", "count-and-keep-outputs")),
    // Through WASI.
    case("wasi/sleep", &[8], GuestIn("wasi", "sleep")),
    case("wasi/polls", &[8], GuestIn("wasi", "polls")),
    case("wasi/too-many-polls", &[8], GuestIn("wasi", "too-many-polls")),
    case("wasi/poll-nothing", &[8], GuestIn("wasi", "poll-nothing")),
    case("wasi/endless-polls", &[8], GuestIn("wasi", "endless-polls")),
    case("wasi/pollables", &[8], GuestIn("wasi", "pollables")),
    case("wasi/headers", &[8], GuestIn("wasi", "headers")),
    case("wasi/paths", &[8], GuestIn("wasi", "paths")),
    case("wasi/bodies", &[8], GuestIn("wasi", "bodies")),
    case("wasi/much-random", &[8], GuestIn("wasi", "much-random")),
    case("wasi/endless-random", &[8], GuestIn("wasi", "endless-random")),
    case("wasi/endless-clock", &[8], GuestIn("wasi", "endless-clock")),
    case("wasi/flood", &[8], GuestIn("wasi", "flood")),
    case("wasi/flood-of-lines", &[8], GuestIn("wasi", "flood-of-lines")),
    case("wasi/unasked-write", &[8], GuestIn("wasi", "unasked-write")),
    case("wasi/zeroes", &[8], GuestIn("wasi", "zeroes")),
    case("wasi/exit", &[8], GuestIn("wasi", "exit")),
    case("wasi/nap", &[], GuestIn("wasi", "nap")),
    case("wasi/random", &[], GuestIn("wasi", "random")),
    case("wasi/lines", &[], GuestIn("wasi", "lines")),
    case("wasi/looks", &[], GuestIn("wasi", "looks")),
    // Through the runtimes of languages. An instance of a pipeline `-kept` serves further calls
    // until a deed makes it unfit.
    case("python/loop", &[8], GuestIn("python", "loop")),
    case("python/memory", &[8], GuestIn("python", "memory")),
    case("python/stubborn", &[8], GuestIn("python", "stubborn")),
    case("python/recurse", &[8], GuestIn("python", "recurse")),
    case("python/nest", &[8], GuestIn("python", "nest")),
    case("python/regex", &[8], GuestIn("python", "regex")),
    case("python/print", &[8], GuestIn("python", "print")),
    case("python/log", &[8], GuestIn("python", "log")),
    case("python/sleep", &[8], GuestIn("python", "sleep")),
    case("python/random", &[8], GuestIn("python", "random")),
    case("python/fail", &[8], GuestIn("python", "fail")),
    case("python/abort", &[8], GuestIn("python", "abort")),
    case("python/huge-answer", &[8], GuestIn("python", "huge-answer")),
    case("python/answer-loop", &[], GuestIn("python", "answer-loop")),
    case("python/fail-oddly", &[], GuestIn("python", "fail-oddly")),
    case("python/exit", &[], GuestIn("python", "exit")),
    case("python/exit-at-once", &[], GuestIn("python", "exit-at-once")),
    case("python/wrong-dtype", &[], GuestIn("python", "wrong-dtype")),
    case("python/wrong-shape", &[], GuestIn("python", "wrong-shape")),
    case("python/wrong-type", &[], GuestIn("python", "wrong-type")),
    case("python/loop, kept", &[8], GuestIn("python-kept", "loop")),
    case("python/memory, kept", &[8], GuestIn("python-kept", "memory")),
    case("python/print, kept", &[8], GuestIn("python-kept", "print")),
    case("python/fail, kept", &[8], GuestIn("python-kept", "fail")),
    case("python/log, kept", &[], GuestIn("python-kept", "log")),
    case("python/exit, kept", &[], GuestIn("python-kept", "exit")),
    case("python/wrong-dtype, kept", &[], GuestIn("python-kept", "wrong-dtype")),
    case("python/wrong-shape, kept", &[], GuestIn("python-kept", "wrong-shape")),
    case("python/wrong-type, kept", &[], GuestIn("python-kept", "wrong-type")),
    case("python/abort, kept", &[], GuestIn("python-kept", "abort")),
    case("python/huge-answer, kept", &[], GuestIn("python-kept", "huge-answer")),
    case("js/loop", &[8], GuestIn("js", "loop")),
    case("js/memory", &[8], GuestIn("js", "memory")),
    case("js/stubborn", &[8], GuestIn("js", "stubborn")),
    case("js/recurse", &[8], GuestIn("js", "recurse")),
    case("js/regex", &[8], GuestIn("js", "regex")),
    case("js/print", &[8], GuestIn("js", "print")),
    case("js/log", &[8], GuestIn("js", "log")),
    case("js/sleep", &[8], GuestIn("js", "sleep")),
    case("js/pending", &[8], GuestIn("js", "pending")),
    case("js/microtasks", &[8], GuestIn("js", "microtasks")),
    case("js/interval", &[8], GuestIn("js", "interval")),
    case("js/random", &[8], GuestIn("js", "random")),
    case("js/fail", &[8], GuestIn("js", "fail")),
    case("js/huge-answer", &[8], GuestIn("js", "huge-answer")),
    case("js/answer-loop", &[], GuestIn("js", "answer-loop")),
    case("js/fail-oddly", &[], GuestIn("js", "fail-oddly")),
    case("js/reject", &[], GuestIn("js", "reject")),
    case("js/wrong-dtype", &[], GuestIn("js", "wrong-dtype")),
    case("js/wrong-shape", &[], GuestIn("js", "wrong-shape")),
    case("js/wrong-type", &[], GuestIn("js", "wrong-type")),
    case("js/loop, kept", &[8], GuestIn("js-kept", "loop")),
    case("js/memory, kept", &[8], GuestIn("js-kept", "memory")),
    case("js/print, kept", &[8], GuestIn("js-kept", "print")),
    case("js/fail, kept", &[8], GuestIn("js-kept", "fail")),
    case("js/recurse, kept", &[], GuestIn("js-kept", "recurse")),
    case("js/interval, kept", &[], GuestIn("js-kept", "interval")),
    case("js/reject, kept", &[], GuestIn("js-kept", "reject")),
    case("js/wrong-dtype, kept", &[], GuestIn("js-kept", "wrong-dtype")),
    case("js/wrong-shape, kept", &[], GuestIn("js-kept", "wrong-shape")),
    case("js/wrong-type, kept", &[], GuestIn("js-kept", "wrong-type")),
    case("js/pending, kept", &[], GuestIn("js-kept", "pending")),
    case("js/huge-answer, kept", &[], GuestIn("js-kept", "huge-answer")),
    case("c/loop", &[8], GuestIn("c", "loop")),
    case("c/memory", &[8], GuestIn("c", "memory")),
    case("c/arena", &[8], GuestIn("c", "arena")),
    case("c/recurse", &[8], GuestIn("c", "recurse")),
    case("c/print", &[8], GuestIn("c", "print")),
    case("c/log", &[8], GuestIn("c", "log")),
    case("c/sleep", &[8], GuestIn("c", "sleep")),
    case("c/random", &[8], GuestIn("c", "random")),
    case("c/fail", &[8], GuestIn("c", "fail")),
    case("c/panic", &[8], GuestIn("c", "panic")),
    case("c/overwrite", &[8], GuestIn("c", "overwrite")),
    case("c/huge-answer", &[8], GuestIn("c", "huge-answer")),
    case("c/answer-loop", &[], GuestIn("c", "answer-loop")),
    case("c/abort", &[], GuestIn("c", "abort")),
    case("c/exit", &[], GuestIn("c", "exit")),
    case("c/wild-write", &[], GuestIn("c", "wild-write")),
    case("c/null-call", &[], GuestIn("c", "null-call")),
    case("c/divide", &[], GuestIn("c", "divide")),
    case("c/wrong-dtype", &[], GuestIn("c", "wrong-dtype")),
    case("c/wrong-shape", &[], GuestIn("c", "wrong-shape")),
    case("c/loop, kept", &[8], GuestIn("c-kept", "loop")),
    case("c/memory, kept", &[8], GuestIn("c-kept", "memory")),
    case("c/print, kept", &[8], GuestIn("c-kept", "print")),
    case("c/fail, kept", &[8], GuestIn("c-kept", "fail")),
    case("c/wrong-dtype, kept", &[], GuestIn("c-kept", "wrong-dtype")),
    case("c/wrong-shape, kept", &[], GuestIn("c-kept", "wrong-shape")),
    case("c/panic, kept", &[], GuestIn("c-kept", "panic")),
    case("c/huge-answer, kept", &[], GuestIn("c-kept", "huge-answer")),
    // All of the deeds above.
    case("corpus", &[4, 8], Corpus),
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
