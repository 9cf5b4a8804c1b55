//! Large messages that a careless server would need many times their size for. Each is refused or
//! served within three times its size, and other clients do not notice.

use serde_json::{Value, json};

use crate::support::files;
use crate::support::h2;
use crate::support::load::under_load;
use crate::support::protobuf::Message;
use crate::support::server::Server;
use crate::support::setup::Setup;

const PATH: &str = "/v2/models/ranker/infer";
const MIB: usize = 1 << 20;

/// The approximate size of each message, and the memory that the server may take besides three
/// times that size.
const MESSAGE_BYTES: usize = 24 * MIB;
const SLACK: usize = 16 * MIB;

fn ranker() -> Server {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.put("models/ranker", &files::model("ranker"));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["ranker"] }));
    server
        .put_json("tenants/globex", &json!({ "api_keys": [NEIGHBOURS_KEY], "models": ["ranker"] }));
    server
}

const NEIGHBOURS_KEY: &str = "the-key-of-globex";

/// Run `attack` beside a neighbour, whose requests all have to be answered.
fn beside_a_neighbour(server: &Server, attack: impl FnOnce()) {
    let input =
        json!({ "name": "input", "datatype": "FP32", "shape": [1, 32], "data": vec![0.5; 32] });
    let row = json!({ "inputs": [input] }).to_string();
    let neighbour = server.data.with_token(NEIGHBOURS_KEY);
    let ask = |_| neighbour.post(PATH, row.as_bytes()).ok();
    under_load(1, ask, |answers| {
        answers.iter().take(10).for_each(drop);
        attack();
        answers.iter().take(10).for_each(drop);
    });
}

/// Fails if the server takes too much memory for a message of `bytes` bytes.
#[track_caller]
fn within_bounds(server: &Server, name: &str, bytes: usize, send: impl FnOnce()) {
    let before = server.resident_bytes();
    server.forget_peak();
    send();
    let grown = server.peak_resident_bytes().saturating_sub(before);
    let may = 3 * bytes + SLACK;
    assert!(grown <= may, "{name}: {} MiB for a message of {}", grown / MIB, bytes / MIB);
}

/// `part` repeated to about [`MESSAGE_BYTES`].
fn much(part: &str) -> String {
    part.repeat(MESSAGE_BYTES / part.len())
}

#[test]
fn json_that_becomes_more_than_it_is() {
    let mut server = ranker();
    let ones = much("1,");
    let count = ones.len() / 2 + 1;
    let input = |datatype: &str, shape: &str, data: &str| {
        format!(
            r#"{{"inputs":[{{"name":"input","datatype":"{datatype}","shape":{shape},"data":{data}}}]}}"#
        )
    };
    let documents = [
        ("dimensions", input("FP32", &format!("[{ones}1]"), "[1]"), "more than 32 dimensions"),
        (
            "inputs",
            {
                let one = r#"{"name":"a","datatype":"FP32","shape":[1],"data":[1]},"#;
                format!(r#"{{"inputs":[{}"#, much(one))
            },
            "more than 1024 inputs",
        ),
        ("outputs", format!(r#"{{"outputs":[{}"#, much(r#"{"name":"a"},"#)), "1024 outputs"),
        (
            "parameters",
            {
                let many = much(r#""a":1,"#);
                format!(r#"{{"inputs":[],"parameters":{{{many}"b":1}}}}"#)
            },
            "is missing",
        ),
        ("nested", format!(r#"{{"id":{}"#, much("[")), "JSON cannot be read"),
        ("nested data", input("FP32", "[1]", &format!("{0}{1}", much("[[[["), "]")), "JSON cannot"),
        ("a name", format!(r#"{{"id":"{}"}}"#, much("aaaa")), "the limit is 1024"),
        (
            "a name with escapes",
            format!(r#"{{"id":"{}"}}"#, much(r"\n\u00e4")),
            "the limit is 1024",
        ),
        ("no list", format!(r#"{{"inputs":"{}"}}"#, much("aaaa")), "a list of inputs"),
        (
            "elements",
            input("INT64", &format!("[{count}]"), &format!("[{ones}1]")),
            "bytes of memory",
        ),
        ("more elements", input("INT64", "[1, 32]", &format!("[{ones}1]")), "more elements than"),
        ("elements that claim", input("INT64", "[9000000000]", "[1]"), "need 72000000000"),
    ];
    beside_a_neighbour(&server, || {
        for (name, text, expected) in &documents {
            within_bounds(&server, name, text.len(), || {
                let answer = server.data.post(PATH, text.as_bytes());
                let error = answer.text();
                assert!((400..500).contains(&answer.status), "{name}: {error}");
                assert!(error.contains(expected) && error.len() < 10_000, "{name}: {error}");
            });
        }
    });
    server.assert_alive();
}

#[test]
fn grpc_messages_that_become_more_than_they_are() {
    let mut server = ranker();
    let field = |number: u64, content: &[u8]| Message::new().bytes(number, content).into_bytes();
    let ones = vec![1; MESSAGE_BYTES];
    let model = field(1, b"ranker");
    let typed = |datatype: &str, contents: &[u8]| {
        // The varint of 24 Mi.
        let shape = field(3, &[0x80, 0x80, 0x80, 0x0c]);
        let input = [field(1, b"input"), field(2, datatype.as_bytes()), shape, field(5, contents)];
        [&model[..], &field(5, &input.concat())].concat()
    };
    let many = |part: &[u8]| part.repeat(MESSAGE_BYTES / part.len());
    let messages = [
        ("packed dimensions", field(5, &field(3, &ones))),
        ("dimensions", field(5, &many(&[3 << 3, 1]))),
        ("inputs", many(&field(5, &[]))),
        ("outputs", many(&field(6, &[]))),
        ("raw contents", many(&field(7, &[]))),
        ("parameters", many(&field(4, &[]))),
        ("parameters of an input", field(5, &many(&field(4, &[])))),
        ("unknown fields", many(&[12 << 3, 1])),
        ("groups", many(&[12 << 3 | 3, 12 << 3 | 4])),
        ("a name", field(1, &ones)),
        ("packed integers", typed("INT32", &field(2, &ones))),
        ("integers one by one", typed("INT8", &many(&[2 << 3, 1]))),
        ("texts", typed("BYTES", &many(&field(8, &[])))),
    ];
    beside_a_neighbour(&server, || {
        for (name, message) in &messages {
            within_bounds(&server, name, message.len(), || {
                let mut client = h2::connect(&server.grpc);
                assert!(h2::call(&mut client, "ModelInfer", message), "{name}: no answer");
            });
        }
    });
    server.assert_alive();
}

#[test]
fn large_messages_that_are_meant_are_served() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.put("models/identity", include_bytes!("../../fixtures/identity-fp32.onnx"));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["identity"] }));
    // Read, run, written and compressed away from the threads that serve.
    let count = 200_000;
    let data: Vec<f32> = (0..count).map(|at| at as f32 / 4.0).collect();
    let input = json!({ "name": "input", "datatype": "FP32", "shape": [1, count], "data": data });
    let body = json!({ "inputs": [input] }).to_string();
    let answers = [
        server.data.post("/v2/models/identity/infer", body.as_bytes()),
        server.data.send(
            "POST",
            "/v2/models/identity/infer",
            &[("accept-encoding", "identity")],
            Some(body.as_bytes()),
        ),
    ];
    for answer in answers {
        let answer: Value = answer.ok();
        assert_eq!(answer["outputs"][0]["data"], json!(data));
    }
    let status = server.admin.get("/admin/v1/status").ok();
    assert_eq!(status["tenants"]["acme"]["bytes_under_way"], 0);
}
