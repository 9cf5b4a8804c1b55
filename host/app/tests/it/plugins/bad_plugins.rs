//! Everything that the plugin `hostile` does, and the answers to its callers.
//!
//! Deeds with one certain end are done one after the other on one server, and so are deeds that
//! only cost the host something. Each of the latter may end in several ways, because the machine
//! decides which limit it reaches first.

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::deeds::{
    End, INVALID, OUT_OF_MEMORY, TIMEOUT, TRAPPED, bomb_picture, ends_of, small_picture,
};
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;

/// The outcome of one deed.
struct Deed {
    server: Server,
    answer: TestAnswer,
}

/// Do the deed in this pipeline, on a new server.
fn done_in(pipeline: &str, deed: &str, body: &[u8]) -> Deed {
    let server = Server::start();
    server.hostile("acme");
    let answer = server.data.post(&format!("/v1/acme/infer/{pipeline}?do={deed}"), body);
    Deed { server, answer }
}

/// Do the deed with a pipeline's default limits.
fn done(deed: &str) -> Deed {
    done_in("hostile", deed, b"")
}

/// Do the deed with so much time that it reaches another limit first.
fn done_slowly(deed: &str) -> Deed {
    done_in("patient", deed, b"")
}

impl Deed {
    /// Fails unless the request was refused with this status and code, and the server still serves.
    /// Returns the detail.
    #[track_caller]
    fn call_refused(&mut self, status: u16, code: &str, named: &[&str]) -> String {
        let detail = self.answer.refused(status, code, named);
        self.assert_still_serves();
        detail
    }

    #[track_caller]
    fn assert_still_serves(&mut self) {
        let next = self.server.data.post("/v1/acme/infer/hostile", b"");
        assert_eq!((next.status, next.text().as_str()), (200, "harmless"));
        self.server.assert_alive();
    }
}

/// Deeds with one certain end: the pipeline, the deed, its end and what the detail names.
const REFUSALS: [(&str, &str, End, &[&str]); 15] = [
    ("hostile", "trap", TRAPPED, &["pre: plugin trapped", "unreachable", "last line"]),
    ("hostile", "post-trap", TRAPPED, &["post: plugin trapped", "unreachable"]),
    ("hostile", "loop", TIMEOUT, &["pre", "250 ms of CPU time"]),
    ("hostile", "post-loop", TIMEOUT, &["post", "250 ms of CPU time"]),
    ("patient", "eat-memory", OUT_OF_MEMORY, &["pre", "67108864 bytes of memory"]),
    ("patient", "eat-handles", OUT_OF_MEMORY, &["pre", "10000 handles"]),
    (
        "patient",
        "eat-host-memory",
        OUT_OF_MEMORY,
        &["pre", "268435456 bytes of tensors, pictures and blobs"],
    ),
    ("hostile", "wrong-name", INVALID, &["\"inptu\"", "[\"input\"]"]),
    (
        "hostile",
        "wrong-dtype",
        INVALID,
        &["input \"input\" has datatype INT64, but the model needs FP32"],
    ),
    (
        "hostile",
        "wrong-shape",
        INVALID,
        &["input \"input\" has shape [1, 784], but the model needs [-1, 1, 28, 28]"],
    ),
    ("hostile", "no-rows", INVALID, &["input \"input\" has 0 rows", "at least one is needed"]),
    ("hostile", "no-inputs", INVALID, &["input \"input\" is missing"]),
    ("patient", "huge-response", INVALID, &["post", "20971520 bytes is over the limit of 4194304"]),
    ("hostile", "bad-status", INVALID, &["post", "status 99 is not one of 200 to 599"]),
    ("hostile", "nothing", (400, "invalid_request"), &["there is no deed \"nothing\""]),
];

#[test]
fn deeds_with_a_certain_end_are_refused_with_their_reason() {
    let server = Server::start();
    server.hostile("acme");
    let mut deed = Deed { answer: server.data.post("/v1/acme/infer/hostile", b""), server };
    for (pipeline, name, (status, code), named) in REFUSALS {
        let path = format!("/v1/acme/infer/{pipeline}?do={name}");
        deed.answer = deed.server.data.post(&path, b"");
        // The output of a test that fails.
        println!("{path}");
        deed.call_refused(status, code, named);
    }
}

#[test]
fn panic() {
    let mut deed = done("panic");
    let detail = deed.call_refused(500, "plugin_trapped", &["pre: plugin trapped"]);
    assert!(!detail.contains("as told"), "{detail}");
    let log = deed.server.log_with("panicked at ");
    let line = log.lines().find(|line| line.contains("panicked at ")).unwrap();
    assert!(line.contains("ERROR") && line.contains("src/ends.rs:"), "{line}");
    assert!(line.contains(": as told"), "{line}");
}

#[test]
fn recurse() {
    let named = ["pre: plugin trapped", "the stack overflowed", "1 MiB"];
    let mut deed = done("recurse");
    let detail = deed.call_refused(500, "plugin_trapped", &named);
    assert!(!detail.contains("ends::recurse"), "names are for the author: {detail}");
    deed.server.log_with("in hostile::ends::recurse, called by");
}

#[test]
fn huge_tensor() {
    let mut deed = done("huge-tensor");
    deed.call_refused(500, "plugin_failed", &["pre: the plugin failed"]);
    deed.server.log_with("4294967295, 4294967295, 4294967295");
}

#[test]
fn flood_log() {
    let mut deed = done_slowly("flood-log");
    assert_eq!((deed.answer.status, deed.answer.text().as_str()), (200, "harmless"));
    deed.assert_still_serves();
    let log = deed.server.log_with("plugin went over its log budget");
    assert_eq!(log.matches("plugin went over its log budget").count(), 1);
    assert!(log.contains(&"x".repeat(1000)), "lines within the budget are logged");
    assert!(log.len() < 1 << 20, "{} bytes", log.len());
}

#[test]
fn long_error() {
    let detail = done_slowly("long-error").call_refused(400, "invalid_request", &["eeee", "[cut]"]);
    assert!(detail.len() <= 4200, "{} bytes", detail.len());
}

#[test]
fn internal_error_stays_in_the_log() {
    let mut deed = done("internal-error");
    deed.call_refused(500, "plugin_failed", &["pre: the plugin failed"]);
    assert!(!deed.answer.text().contains("a secret of the plugin"), "{}", deed.answer.text());
    deed.server.log_with("a secret of the plugin");
}

#[test]
fn wrong_length() {
    let mut deed = done("wrong-length");
    deed.call_refused(500, "plugin_failed", &["pre: the plugin failed"]);
    deed.server.log_with("3136 bytes long, but dtype and shape need 3248");
}

#[test]
fn more_text_than_one_call_passes() {
    let named = [
        "pre",
        "one call between plugin and host passes at most 34603008 bytes",
        "or with a higher limits.passed_bytes of the pipeline",
    ];
    let mut deed = done_slowly("blob-huge");
    deed.call_refused(500, "plugin_trapped", &named);
    // The cure.
    let limits = json!({ "cpu_ms": 60_000, "timeout_ms": 100_000, "passed_bytes": 64 << 20 });
    deed.server.pipeline("acme", "patient", &processor("hostile", limits));
    let answer = deed.server.data.post("/v1/acme/infer/patient?do=blob-huge", b"");
    assert_eq!((answer.status, answer.text().as_str()), (200, "harmless"));
}

#[test]
fn bad_header() {
    let mut deed = done("bad-header");
    deed.call_refused(500, "plugin_invalid_output", &["header \"x-plugin-a\""]);
    assert_eq!(deed.answer.header("x-c"), "");
}

#[test]
fn remember() {
    let deed = done("remember");
    assert_eq!(deed.answer.text(), "1");
    for _ in 0..20 {
        assert_eq!(deed.server.data.post("/v1/acme/infer/hostile?do=remember", b"").text(), "1");
    }
}

#[test]
fn the_crate_getrandom_has_random_numbers() {
    let first = done("random").call_refused(422, "unprocessable", &[]);
    let second = done("random").call_refused(422, "unprocessable", &[]);
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{text}"));
    assert_ne!(number(&first), number(&second));
    // A plugin that does not need it does not import it.
    let imports_random =
        |plugin: &str| files::plugin(plugin).windows(11).any(|text| text == b"wasi:random");
    assert!(imports_random("hostile") && !imports_random("ranker-pre"));
}

#[test]
fn bomb() {
    let mut deed = done_in("hostile", "bomb", &bomb_picture());
    deed.call_refused(422, "unprocessable", &["65535x65535 is over the limit of 50000000 pixels"]);
}

/// More than the server and one call's memory, tensors and images take together.
const RESIDENT_BYTES_MAX: usize = 1 << 30;

/// A server for deeds done one after the other.
struct Deeds {
    server: Server,
    /// The body of the deeds' requests.
    body: Vec<u8>,
}

impl Deeds {
    fn new() -> Self {
        let server = Server::start();
        server.hostile("acme");
        Self { server, body: small_picture() }
    }

    /// Fails unless the call has an end that its deed may have, the server still serves, and its
    /// memory is within [`RESIDENT_BYTES_MAX`].
    #[track_caller]
    fn ends(&mut self, deed: &str) -> TestAnswer {
        let path = format!("/v1/acme/infer/hostile?do={deed}");
        let answer = self.server.data.post(&path, &self.body);
        let code = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
        let end = (answer.status, code["code"].as_str().unwrap_or_default());
        assert!(ends_of(deed).contains(&end), "{deed}: {end:?}: {:.300}", answer.text());
        let next = self.server.data.post("/v1/acme/infer/hostile", b"");
        assert_eq!((next.status, next.text().as_str()), (200, "harmless"), "after {deed}");
        let peak = self.server.peak_resident_bytes();
        assert!(peak < RESIDENT_BYTES_MAX, "{deed}: the server grew to {peak} bytes");
        answer
    }
}

#[test]
fn what_the_host_computes_for_a_guest_is_charged() {
    let mut deeds = Deeds::new();
    for deed in ["top-k", "argmax", "softmax", "tensor-data", "pixels-data", "read-body"] {
        deeds.ends(deed);
    }
    for deed in ["empty-strings", "huge-shape-text", "resize-loop"] {
        deeds.ends(deed);
    }
    for deed in ["crop-loop", "draw-loop", "encode-loop", "draw-huge", "encode-huge"] {
        deeds.ends(deed);
    }
    for deed in ["arrays-products", "arrays-sort", "arrays-boxes", "arrays-steps"] {
        deeds.ends(deed);
    }
    for deed in ["blob-bytes", "blob-base64", "blob-slices", "blob-huge"] {
        deeds.ends(deed);
    }
    for deed in ["store-for-ever", "store-keys", "asset-for-ever", "asset-names"] {
        deeds.ends(deed);
    }
    for deed in ["table-for-ever", "table-keys"] {
        deeds.ends(deed);
    }
    deeds.body = format!("{{\"x\":[{}0]}}", "0.123456789,".repeat(300_000)).into_bytes();
    for deed in ["json-read", "json-write", "json-lists"] {
        deeds.ends(deed);
    }
}

#[test]
fn memory_that_a_guest_takes_is_bounded() {
    let mut deeds = Deeds::new();
    for deed in ["touch-memory", "fill-memory", "hold-tensors", "large-tensors"] {
        deeds.ends(deed);
    }
    for deed in ["arrays-huge", "arrays-hold", "crop-huge", "tensors-huge"] {
        deeds.ends(deed);
    }
    for deed in ["many-dims", "many-dims-held"] {
        deeds.ends(deed);
    }
    for deed in ["long-name", "many-inputs"] {
        deeds.ends(deed);
    }
}

#[test]
fn pictures_between_two_sizes_are_bounded() {
    let mut deeds = Deeds::new();
    for deed in ["resize-chain", "resize-long"] {
        deeds.ends(deed);
    }
    // Within the largest side: the size must be computed, not guessed from the side.
    deeds.ends("resize-sides");
}

#[test]
fn joined_and_cast_tensors_are_right_and_bounded() {
    let mut deeds = Deeds::new();
    for deed in ["operations", "join-often", "join-much", "pad-much"] {
        deeds.ends(deed);
    }
    for deed in ["join-for-ever", "cast-for-ever"] {
        deeds.ends(deed);
    }
}

#[test]
fn an_honest_thumbnail_is_made() {
    Deeds::new().ends("thumbnail");
}

#[test]
fn the_log_is_bounded() {
    let mut deeds = Deeds::new();
    let flood = ["log-empty", "log-short", "log-control", "log-fields", "log-empty-fields"];
    for deed in flood.into_iter().chain(["long-name"]) {
        let before = deeds.server.log().len();
        deeds.ends(deed);
        let logged = deeds.server.log().len() - before;
        assert!(logged < 1 << 20, "{deed}: {logged} bytes were logged");
    }
}

#[test]
fn headers_and_states_are_bounded() {
    let mut deeds = Deeds::new();
    for deed in ["20000-headers", "30000-headers", "40000-headers", "huge-headers"] {
        deeds.ends(deed);
    }
    for deed in ["bad-content-type", "huge-content-type", "huge-state"] {
        deeds.ends(deed);
    }
    deeds.ends("large-state");
}

#[test]
fn headers_that_a_proxy_obeys_do_not_pass() {
    let answer = Deeds::new().ends("redirect-headers");
    for header in ["x-accel-redirect", "x-accel-buffering", "x-sendfile", "x-frame-options"] {
        assert_eq!(answer.header(header), "", "{header}");
    }
}

#[test]
fn short_calls_are_done_and_long_ones_end() {
    let mut deeds = Deeds::new();
    deeds.ends("spin&rounds=1000");
    deeds.ends("spin&rounds=1000000000000");
}
