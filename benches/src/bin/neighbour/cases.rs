//! The attacks on the server: one line for each.

use anyhow::Result;
use bytes::Bytes;
use gristmill_benches::corpus::pictures::PngColor;
use gristmill_benches::corpus::{assets, messages, models, pictures, plugins};

use crate::peers::{Peer, Peers};

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
    /// A hostile plugin does what this text says, at this path below the tenant's pipelines.
    Told(&'static str, &'static str),
    /// The hostile plugin `services` asks this service until it may no more.
    Asks(Peer),
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
    /// Uploads of the asset of this name, and a request like `Told` that reads it. Each upload
    /// differs.
    Asset(&'static str, fn(u64) -> Vec<u8>, (&'static str, &'static str)),
    /// All attackers upload the same new plugin at once.
    SamePlugin,
    /// One upload of the plugin in JavaScript. The case ends when it is compiled.
    JavaScript,
    /// Uploads of models, and a request that runs each accepted one. Each upload differs.
    Model(fn() -> Vec<u8>, ModelInput),
    /// Uploads of a model, with a false claim that its rows may be padded.
    PaddedModel,
    /// The page on which visitors try the pipelines of an open tenant.
    TryPage,
    /// Streams of events, as consoles have them.
    Events,
    /// The deeds of all hostile plugins in turn: each request does the next one.
    Corpus,
}

impl Kind {
    /// Path and body of a request that lets a hostile plugin do a deed, if this kind is one deed.
    pub(crate) fn deed(&self, peers: &Peers) -> Result<Option<(String, Bytes)>> {
        let path = |path: &str| format!("/v1/evil/infer/{path}");
        let deed = |pipeline: &str, deed: &str| {
            Some((path(&format!("{pipeline}?do={deed}")), pictures::bmp_1x1().into()))
        };
        Ok(match *self {
            Self::Guest(name) => deed("hostile", name),
            Self::GuestIn(pipeline, name) => deed(pipeline, name),
            Self::Told(to, text) => Some((path(to), text.into())),
            Self::Asks(service) => {
                Some((path("services"), peers.asking(service)?.to_string().into()))
            }
            _ => None,
        })
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

/// The names of assets, which all pipelines of the plugin `hostile` have.
pub(crate) const TOKENIZER: &str = "words";
pub(crate) const TABLE: &str = "rows";

/// Requests that read these.
const A_TOKEN: (&str, &str) = ("hostile?do=tokens-rounds&rounds=1", "a");
const A_ROW: (&str, &str) = ("hostile?do=table&asset=products.csv&keys=1&width=1", "");
const A_WIDE_ROW: (&str, &str) = ("hostile?do=table&asset=products.csv&keys=1&width=256", "");

const JSON: &str = r#"{"x":[0.125,0.25,0.5,1,2,4,8,16,32,64,128,256,512,1024,2048,4096]}"#;

/// Steps of the plugin `keyvalue`.
const HOLDS: &str = r#"{"bucket":"features","steps":[["set","k","v"],["hold","k"]]}"#;
const READS_OFTEN: &str = r#"{"bucket":"features","steps":[["set-long","k","1000000"],["get-often","k","1000"],["get-often","k","1000"],["list"]]}"#;
const WRITES_OFTEN: &str = r#"{"bucket":"sessions","steps":[["set-numbered","1000"],["list"],["increment","n","1"],["delete-numbered","1000"],["set-numbered","1000"],["delete-numbered","1000"]]}"#;
const NOT_GRANTED: &str = r#"{"bucket":"secrets","steps":[["get","k"]]}"#;

const fn case(name: &'static str, attackers: &'static [usize], kind: Kind) -> Case {
    Case { name, attackers, kind }
}

use Kind::{
    Asks, Asset, Corpus, Events, Grpc, Guest, GuestIn, JavaScript, Json, LeavingClients, Model,
    PaddedModel, Picture, Plugin, RareGuest, SamePlugin, ShortCalls, SlowReaders, Told, TryPage,
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
    case("guest/crop-loop", &[4], Guest("crop-loop")),
    case("guest/crop-huge", &[4], Guest("crop-huge")),
    case("guest/draw-loop", &[4], Guest("draw-loop")),
    case("guest/draw-huge", &[4], Guest("draw-huge")),
    case("guest/encode-loop", &[4], Guest("encode-loop")),
    case("guest/encode-huge", &[1, 4], Guest("encode-huge")),
    // Arrays.
    case("arrays/products", &[4], Guest("arrays-products")),
    case("arrays/sort", &[4], Guest("arrays-sort")),
    case("arrays/boxes", &[4], Guest("arrays-boxes")),
    case("arrays/steps", &[8], Guest("arrays-steps")),
    case("arrays/huge", &[8], Guest("arrays-huge")),
    case("arrays/hold", &[8], GuestIn(PATIENT, "arrays-hold")),
    // Assets: tokenizers and tables.
    case("asset/for-ever", &[8], Guest("asset-for-ever")),
    case("asset/hold", &[8], Guest("asset-hold&name=products.csv")),
    case("asset/names", &[], Guest("asset-names")),
    case("asset/tokens", &[8], Told("hostile?do=tokens-for-ever", "aaaaaaaaaaaaaaaaaaaaaaaa")),
    case("asset/tokens-many", &[4], Told("hostile?do=tokens-many", "a b c")),
    case("asset/table-for-ever", &[8], Guest("table-for-ever")),
    case("asset/table-keys", &[4], Guest("table-keys")),
    // Runs of models by a handler.
    case("handler/infer-forever", &[8], Told("handler", "infer-forever")),
    case("handler/infer-many", &[8], Told("handler", "infer-many")),
    case("handler/infer-waves", &[8], Told("handler", "infer-waves")),
    case("handler/keep-tensors", &[8], Told("handler", "keep-tensors")),
    case("handler/keep-graphs", &[8], Told("handler", "keep-graphs")),
    case("handler/spin", &[8], Told("handler", "spin")),
    case("handler/not-granted", &[8], Told("handler", "not-granted")),
    case("handler/long-names", &[4], Told("handler", "long-names")),
    case("handler/wrong-input", &[], Told("handler", "wrong-input")),
    case("handler/wrong-shape", &[], Told("handler", "wrong-shape")),
    case("handler/long-name", &[], Told("handler", "long-name")),
    case("handler/trap", &[], Told("handler", "trap")),
    // Stores: one that works, and such as hang, are gone or answer garbage.
    case("store/for-ever", &[8], Guest("store-for-ever")),
    case("store/keys", &[], Guest("store-keys")),
    case("store/hold", &[8], Told("keyvalue", HOLDS)),
    case("store/read", &[8], Guest("store-read-loop&bucket=features")),
    case("store/write", &[8], Guest("store-write-loop&bucket=features")),
    case("store/stopped", &[20], Guest("store-read-loop&bucket=stopped")),
    case("store/gone", &[20], Guest("store-read-loop&bucket=gone")),
    case("store/garbage", &[20], Guest("store-read-loop&bucket=garbage")),
    case("store/in-a-file, read", &[8], Guest("store-read-loop&bucket=sessions")),
    case("store/in-a-file, write", &[8], Guest("store-write-loop&bucket=sessions")),
    case("keyvalue/read", &[8], Told("keyvalue", READS_OFTEN)),
    case("keyvalue/write", &[8], Told("keyvalue", WRITES_OFTEN)),
    case("keyvalue/not-granted", &[8], Told("keyvalue", NOT_GRANTED)),
    // Services.
    case("service/prompt", &[8], Asks(Peer::Prompt)),
    case("service/silent", &[20], Asks(Peer::Silent)),
    case("service/slow", &[20], Asks(Peer::Slow)),
    case("service/endless", &[8], Asks(Peer::Endless)),
    case("service/redirecting", &[8], Asks(Peer::Redirecting)),
    case("service/forbidden", &[8], Asks(Peer::Forbidden)),
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
    case("guest/blob-huge", &[], Guest("blob-huge")),
    case("guest/json-read", &[4], Told("hostile?do=json-read", JSON)),
    case("guest/json-write", &[], Guest("json-write")),
    case("guest/keep-many", &[], Guest("keep-many")),
    case("guest/keep-much", &[4], Guest("keep-much")),
    case("guest/keep-a-long-name", &[], Guest("keep-a-long-name")),
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
    case("upload/tokenizer", &[2], Asset(TOKENIZER, assets::tokenizer, A_TOKEN)),
    case("upload/csv", &[2], Asset(TABLE, assets::csv, A_ROW)),
    case("upload/parquet", &[2], Asset(TABLE, assets::parquet, A_WIDE_ROW)),
    case("upload/same-plugin", &[16], SamePlugin),
    case("upload/javascript", &[1], JavaScript),
    // Models.
    case("model/loop", &[1], Model(models::endless_loop, ONE_FLOAT)),
    case("model/expand", &[1], Model(models::expand, ONE_FLOAT)),
    case("model/constant-of-shape", &[1], Model(models::constant_of_shape, MANY_FLOATS)),
    case("model/many-nodes", &[1], Model(models::many_nodes, ONE_FLOAT)),
    case("model/padded", &[2], PaddedModel),
    // Pages and consoles.
    case("page/try", &[20], TryPage),
    case("page/events", &[40], Events),
];

fn png_3_000_000() -> Result<Vec<u8>> {
    pictures::png(3_000_000, 1, PngColor::Gray8)
}

fn png_20_000_000() -> Result<Vec<u8>> {
    pictures::png(20_000_000, 1, PngColor::Gray8)
}
