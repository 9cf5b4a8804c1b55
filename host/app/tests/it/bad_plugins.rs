//! Everything that the plugin `hostile` does, and what its caller is told.

use crate::client::Answer;
use crate::server::Server;

/// What one deed came to.
struct Deed {
    server: Server,
    answer: Answer,
}

/// The deed done in the pipeline, on a server of its own.
fn done_in(pipeline: &str, deed: &str, body: &[u8]) -> Deed {
    let server = Server::start();
    server.hostile("acme");
    let answer = server.data.post(&format!("/v1/acme/infer/{pipeline}?do={deed}"), body);
    Deed { server, answer }
}

/// The deed done with the limits that pipelines have by themselves.
fn done(deed: &str) -> Deed {
    done_in("hostile", deed, b"")
}

/// The deed done with so much time that it runs into another limit first.
fn done_slowly(deed: &str) -> Deed {
    done_in("patient", deed, b"")
}

impl Deed {
    /// Fails unless the request was refused so, and the server still serves the next one. Returns
    /// the detail.
    #[track_caller]
    fn refused(&mut self, status: u16, code: &str, named: &[&str]) -> String {
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

#[test]
fn trap() {
    done("trap").refused(500, "plugin_trapped", &["pre: plugin trapped", "unreachable"]);
}

#[test]
fn post_trap() {
    done("post-trap").refused(500, "plugin_trapped", &["post: plugin trapped", "unreachable"]);
}

#[test]
fn panic() {
    done("panic").refused(500, "plugin_trapped", &["pre: plugin trapped"]);
}

#[test]
fn endless_loop() {
    done("loop").refused(504, "plugin_timeout", &["pre", "250 ms of CPU time"]);
}

#[test]
fn endless_loop_in_postprocess() {
    done("post-loop").refused(504, "plugin_timeout", &["post", "250 ms of CPU time"]);
}

#[test]
fn recurse() {
    done("recurse").refused(500, "plugin_trapped", &["pre: plugin trapped"]);
}

#[test]
fn eat_memory() {
    let named = ["pre", "67108864 bytes of memory"];
    done_slowly("eat-memory").refused(500, "plugin_out_of_memory", &named);
}

#[test]
fn eat_handles() {
    done_slowly("eat-handles").refused(500, "plugin_out_of_memory", &["pre", "10000 handles"]);
}

#[test]
fn eat_host_memory() {
    let named = ["pre", "268435456 bytes of tensors and pictures"];
    done_slowly("eat-host-memory").refused(500, "plugin_out_of_memory", &named);
}

#[test]
fn huge_tensor() {
    let mut deed = done("huge-tensor");
    deed.refused(500, "plugin_failed", &["pre: the plugin failed"]);
    deed.server.log_with("4294967295, 4294967295, 4294967295");
}

#[test]
fn flood_log() {
    let mut deed = done_slowly("flood-log");
    assert_eq!((deed.answer.status, deed.answer.text().as_str()), (200, "harmless"));
    deed.assert_still_serves();
    let log = deed.server.log_with("plugin went over its log budget");
    assert_eq!(log.matches("plugin went over its log budget").count(), 1);
    assert!(log.contains(&"x".repeat(1000)), "what is within the budget is logged");
    assert!(log.len() < 1 << 20, "{} bytes", log.len());
}

#[test]
fn long_error() {
    let detail = done_slowly("long-error").refused(400, "invalid_request", &["eeee", "[cut]"]);
    assert!(detail.len() <= 4200, "{} bytes", detail.len());
}

#[test]
fn internal_error_stays_in_the_log() {
    let mut deed = done("internal-error");
    deed.refused(500, "plugin_failed", &["pre: the plugin failed"]);
    assert!(!deed.answer.text().contains("a secret of the plugin"), "{}", deed.answer.text());
    deed.server.log_with("a secret of the plugin");
}

#[test]
fn wrong_name() {
    done("wrong-name").refused(500, "plugin_invalid_output", &["\"inptu\"", "[\"input\"]"]);
}

#[test]
fn wrong_dtype() {
    let named = ["input \"input\" has datatype INT64, the model wants FP32"];
    done("wrong-dtype").refused(500, "plugin_invalid_output", &named);
}

#[test]
fn wrong_shape() {
    let named = ["input \"input\" has shape [1, 784], the model wants [-1, 1, 28, 28]"];
    done("wrong-shape").refused(500, "plugin_invalid_output", &named);
}

#[test]
fn wrong_length() {
    let mut deed = done("wrong-length");
    deed.refused(500, "plugin_failed", &["pre: the plugin failed"]);
    deed.server.log_with("3136 bytes long, dtype and shape ask for 3248");
}

#[test]
fn no_rows() {
    let named = ["input \"input\" has 0 rows", "at least one is needed"];
    done("no-rows").refused(500, "plugin_invalid_output", &named);
}

#[test]
fn no_inputs() {
    done("no-inputs").refused(500, "plugin_invalid_output", &["input \"input\" is missing"]);
}

#[test]
fn huge_response() {
    let named = ["post", "20971520 bytes is over the limit of 4194304"];
    done_slowly("huge-response").refused(500, "plugin_invalid_output", &named);
}

#[test]
fn bad_status() {
    let named = ["post", "status 99 is not one of 200 to 599"];
    done("bad-status").refused(500, "plugin_invalid_output", &named);
}

#[test]
fn bad_header() {
    let mut deed = done("bad-header");
    deed.refused(500, "plugin_invalid_output", &["header \"x-plugin-a\""]);
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
fn bomb() {
    let mut deed = done_in("hostile", "bomb", &bomb_picture());
    deed.refused(422, "unprocessable", &["65535x65535 is over the limit of 50000000 pixels"]);
}

/// The header of a BMP of 65,535 x 65,535 pixels, and nothing more.
pub(crate) fn bomb_picture() -> Vec<u8> {
    let mut picture = b"BM".to_vec();
    let fields = [54, 0, 54, 40, 65_535, 65_535];
    picture.extend(fields.map(u32::to_le_bytes).as_flattened());
    // One plane of 24 bits a pixel, uncompressed.
    picture.extend([1, 0, 24, 0]);
    picture.extend([0; 24]);
    picture
}
