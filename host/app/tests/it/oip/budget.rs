//! The memory that one tenant's requests and answers may hold, and for how long.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use gristmill_client::{BinaryTensor, HEADER_LENGTH, InferBody, infer_body};
use serde_json::{Value, json};

use crate::support::client::{Client, TestAnswer};
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::grpc;
use crate::support::h2;
use crate::support::protobuf::Message;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;

const PATH: &str = "/v2/models/identity/infer";
const MIB: usize = 1 << 20;

/// A server with the tenants `acme`, which needs no key, and `globex`. Each may hold as many bytes
/// as the largest request has.
fn identity(bytes_max: usize) -> Server {
    let bytes_max = bytes_max.to_string();
    let setup = Setup::new()
        .flag("--open-tenant", "acme")
        .flag("--access-log", "true")
        .flag("--log-format", "json")
        .flag("--message-bytes-max", &bytes_max)
        .flag("--tenant-bytes-max", &bytes_max)
        // Long enough for a look in between on a busy machine.
        .flag("--write-timeout-s", "5");
    let server = setup.start();
    server.put("models/identity", include_bytes!("../../fixtures/identity-fp32.onnx"));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["identity"] }));
    let globex = json!({ "api_keys": ["the-key-of-globex"], "models": ["identity"] });
    server.put_json("tenants/globex", &globex);
    server
}

/// A request of `bytes` bytes of tensor.
fn request(bytes: usize) -> InferBody {
    let data = vec![0; bytes];
    let shape = [1, bytes / 4];
    let input = BinaryTensor { name: "input", datatype: "FP32", shape: &shape, data: &data };
    infer_body(&[input], binary_output())
}

fn binary_output() -> Value {
    json!({ "parameters": { "binary_data_output": true } })
}

fn post(client: &Client, bytes: usize) -> TestAnswer {
    client.infer(PATH, &request(bytes))
}

#[test]
fn what_a_backend_makes_of_texts_counts() {
    let server = identity(16 * MIB);
    server.put("models/texts", &files::fixture("identity-bytes.onnx"));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["texts"] }));
    let post = |texts: usize, text: &[u8]| {
        let one = [&(text.len() as u32).to_le_bytes()[..], text].concat();
        let bytes = one.repeat(texts);
        let shape = [1, texts];
        let input = BinaryTensor { name: "input", datatype: "BYTES", shape: &shape, data: &bytes };
        let body = infer_body(&[input], binary_output());
        server.data.infer("/v2/models/texts/infer", &body)
    };
    assert_eq!(post(10_000, b"a text").status, 200);
    assert_eq!(post(1, &vec![b'x'; 2 * MIB]).status, 200);
    // Two megabytes of texts without a letter.
    let refused = post(600_000, b"");
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.text().contains("bytes in flight"), "{}", refused.text());
    eventually("the tenant holds nothing", || held(&server) == 0);
}

#[test]
fn many_short_texts_count_as_what_they_take() {
    let server = identity(64 * MIB);
    server.put("models/texts", &files::fixture("identity-bytes.onnx"));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["texts"] }));
    // A million texts of one letter, typed: three bytes of the message each.
    let count = 1_000_000;
    let texts = Message::new().bytes(8, b"x").into_bytes().repeat(count);
    let tensor = Message::new().text(1, "input").text(2, "BYTES").int(3, 1).int(3, count as i64);
    let message = Message::new().text(1, "texts").message(5, tensor.bytes(5, &texts));
    let answer = grpc::call(&server.grpc, "ModelInfer", None, &message.into_bytes());
    assert_eq!(answer.status(), 0, "{:?}", answer.headers);
    assert!(answer.message.ends_with(b"\x01\0\0\0x"));
    eventually("the tenant holds nothing", || held(&server) == 0);
}

/// The bytes that `acme` holds.
fn held(server: &Server) -> u64 {
    let status = server.admin.get("/admin/v1/status").ok();
    status["tenants"]["acme"]["bytes_under_way"].as_u64().unwrap()
}

/// Wait until `enough` accepts the number of bytes that `acme` holds.
#[track_caller]
fn wait_until_held(server: &Server, enough: impl Fn(u64) -> bool) {
    eventually("so many bytes are held", || enough(held(server)));
}

#[track_caller]
fn assert_busy(answer: &TestAnswer) {
    let text = answer.text();
    assert!(
        text.contains("bytes in flight to") && text.ends_with("the limit is 1048576\"}"),
        "{text}"
    );
    assert_eq!(answer.header("retry-after"), "1");
}

/// A body so small that the server reads all of it at once, even if it is refused.
const LITTLE: usize = 12 << 10;

#[test]
fn bodies_on_their_way_count_and_only_for_their_tenant() {
    let server = identity(MIB);
    let ask = || post(&server.data, LITTLE);
    let head = raw::post(PATH, &["content-length: 1048576", "inference-header-content-length: 9"]);
    let mut slow = Raw::sent(&server.data, &head);
    slow.send(&vec![b' '; MIB - LITTLE]);
    wait_until_held(&server, |bytes| bytes >= (MIB - LITTLE) as u64);
    assert_busy(&ask());
    assert_eq!(post(&server.data.with_token("the-key-of-globex"), LITTLE).status, 200);
    drop(slow);
    wait_until_held(&server, |bytes| bytes == 0);
    assert_eq!(ask().status, 200);
}

#[test]
fn messages_on_their_way_count_over_grpc() {
    let server = identity(MIB);
    let ask = || post(&server.data, LITTLE);
    for method in ["ModelInfer", "ModelStreamInfer"] {
        let mut slow = h2::connect(&server.grpc);
        let headers = h2::headers(&format!("/inference.GRPCInferenceService/{method}"));
        slow.write_all(&h2::frame(h2::HEADERS, h2::END_HEADERS, 1, &headers)).unwrap();
        // Most of a message of a MiB.
        let sent = vec![0; MIB - LITTLE];
        let message = [&[0], &(MIB as u32).to_be_bytes()[..], &sent].concat();
        for part in message.chunks(16 << 10) {
            slow.write_all(&h2::frame(h2::DATA, 0, 1, part)).unwrap();
        }
        wait_until_held(&server, |bytes| bytes >= (MIB - LITTLE) as u64);
        assert_busy(&ask());
        drop(slow);
        wait_until_held(&server, |bytes| bytes == 0);
        assert_eq!(ask().status, 200);
        // The answer counts for a moment after the client has read it.
        wait_until_held(&server, |bytes| bytes == 0);
    }
}

#[test]
fn a_compressed_body_counts_as_it_is_inflated() {
    let server = identity(MIB);
    let head = raw::post(PATH, &["content-length: 1048576", "inference-header-content-length: 9"]);
    let mut slow = Raw::sent(&server.data, &head);
    slow.send(&vec![b' '; MIB / 8 * 7]);
    wait_until_held(&server, |bytes| bytes >= (MIB / 8 * 7) as u64);
    let request = request(MIB / 4);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&request.bytes).unwrap();
    let gzip = gzip.finish().unwrap();
    let headers = [(HEADER_LENGTH, &*request.header_length), ("content-encoding", "gzip")];
    let ask = || server.data.send("POST", PATH, &headers, Some(&gzip));
    assert_busy(&ask());
    drop(slow);
    wait_until_held(&server, |bytes| bytes == 0);
    assert_eq!(ask().status, 200);
}

#[test]
fn calls_that_need_no_key_have_little_to_say() {
    let server = Setup::new().flag("--infer-timeout-s", "3600").start();
    for method in ["inference.GRPCInferenceService/ServerLive", "grpc.health.v1.Health/Check"] {
        let mut call = h2::connect(&server.grpc);
        let headers = h2::headers(&format!("/{method}"));
        call.write_all(&h2::frame(h2::HEADERS, h2::END_HEADERS, 1, &headers)).unwrap();
        // The beginning of a message of one MiB, longer than the part that the server reads.
        let begun = [&[0], &(MIB as u32).to_be_bytes()[..], &[0; MIB / 8]].concat();
        for part in begun.chunks(16 << 10) {
            call.write_all(&h2::frame(h2::DATA, 0, 1, part)).unwrap();
        }
        while h2::next(&mut call).expect("an answer").0 != h2::HEADERS {}
    }
}

/// More than the buffers of a connection hold if the client's buffer is small. The server's buffer
/// grows with the bytes under way.
const MUCH: usize = 24 * MIB;

#[test]
fn an_answer_that_nobody_reads_counts_until_its_connection_is_closed() {
    let server = identity(MUCH + LITTLE);
    let ask = || post(&server.data, LITTLE);
    let InferBody { header_length, bytes } = request(MUCH);
    let lengths =
        [format!("content-length: {}", bytes.len()), format!("{HEADER_LENGTH}: {header_length}")];
    let mut slow = Raw::open_narrow(&server.data);
    let headers = ["x-request-id: slow", &lengths[0], &lengths[1]];
    slow.send(raw::post(PATH, &headers).as_bytes());
    slow.send(&bytes);
    slow.read_until("HTTP/1.1 200 OK");
    assert!(held(&server) >= MUCH as u64);
    assert_eq!(ask().status, 429);
    wait_until_held(&server, |bytes| bytes == 0);
    assert_eq!(ask().status, 200);
    // The client did not have its answer.
    let log = server.log_with("\"request_id\":\"slow\"");
    let line = log.lines().find(|line| line.contains("\"slow\"")).unwrap();
    assert!(line.contains("\"code\":\"abandoned\"") && !line.contains("\"status\""), "{line}");
    let metrics = server.admin.get("/metrics").text();
    let left = "gristmill_responses_total{protocol=\"v2\",code=\"abandoned\"} 1\n";
    assert!(metrics.contains(left), "{metrics}");
    drop(slow);
}

#[test]
fn whoever_watches_the_health_holds_up_no_shutdown() {
    let server = Setup::new().flag("--drain-timeout-s", "3600").start();
    let mut watching = h2::connect(&server.grpc);
    let headers = h2::headers("/grpc.health.v1.Health/Watch");
    watching.write_all(&h2::frame(h2::HEADERS, h2::END_HEADERS, 1, &headers)).unwrap();
    watching.write_all(&h2::frame(h2::DATA, h2::END_STREAM, 1, &[0; 5])).unwrap();
    let mut statuses = Vec::new();
    while let Some((kind, _, payload)) = h2::next(&mut watching) {
        // A message after its length. Its one field is the status.
        if kind == h2::DATA && !payload.is_empty() {
            statuses.push(payload[6]);
            server.signal_terminate();
        }
    }
    let (serving, not_serving) = (1, 2);
    assert_eq!(statuses, [serving, not_serving]);
    let (_, status, _) = server.wait();
    assert!(status.success());
}
