//! Requests that no client of the Open Inference Protocol should send, and many clients at once.
//! They get an error or a closed connection, and other clients are not affected.

use std::io::Write;
use std::net::TcpStream;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::{Value, json};

use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::h2;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;

const PATH: &str = "/v2/models/ranker/infer";

/// A server with the model `ranker`, which a tenant without a key may run.
fn ranker(setup: Setup) -> Server {
    let server = setup.flag("--open-tenant", "acme").start();
    server.admin.put("/admin/v1/models/ranker", &files::model("ranker")).ok();
    let acme = json!({ "open": true, "models": ["ranker"] });
    server.admin.put_json("/admin/v1/tenants/acme", &acme).ok();
    server
}

/// One row for `ranker`: its answer shows that the server still serves.
fn row() -> Value {
    let data = vec![0.5; 32];
    json!({ "inputs": [{ "name": "input", "datatype": "FP32", "shape": [1, 32], "data": data }] })
}

#[track_caller]
fn serves(server: &mut Server) {
    server.assert_alive();
    let answer = server.data.post(PATH, row().to_string().as_bytes()).ok();
    assert_eq!(answer["outputs"][0]["shape"], json!([1, 1]), "{answer}");
}

#[test]
fn bodies_and_lengths_that_do_not_agree() {
    let mut server = ranker(Setup::new());
    let binary = |size: usize, shape: Value| {
        let parameters = json!({ "binary_data_size": size });
        let input = json!({ "name": "input", "datatype": "FP32", "shape": shape, "parameters": parameters });
        json!({ "inputs": [input] }).to_string()
    };
    let post = |header_len: &str, json: &str, tail: usize| {
        let body = [json.as_bytes(), &vec![0; tail]].concat();
        let headers = [("inference-header-content-length", header_len)];
        server.data.send("POST", PATH, &headers, Some(&body))
    };
    let row = binary(128, json!([1, 32]));
    let len = row.len().to_string();
    assert_eq!(post(&len, &row, 128).status, 200);
    post(&len, &row, 127)
        .refused_by_protocol(400, &["\"input\"", "128", "only 127 bytes are left"]);
    post(&len, &row, 130).refused_by_protocol(400, &["2 bytes follow the last binary tensor"]);
    post("9999", &row, 128).refused_by_protocol(400, &["Inference-Header-Content-Length is 9999"]);
    post("5", &row, 128).refused_by_protocol(400, &["JSON cannot be read"]);
    post("-1", &row, 128).refused_by_protocol(400, &["Inference-Header-Content-Length is \"-1\""]);
    post("0", &row, 128).refused_by_protocol(400, &["raw body", "FP32 of shape [-1, 32]"]);
    let short = binary(64, json!([1, 32]));
    let answer = post(&short.len().to_string(), &short, 64);
    answer.refused_by_protocol(400, &["data is 64 bytes long", "128"]);
    for shape in [json!([u32::MAX, u32::MAX, u32::MAX]), json!([1_u64 << 62, 4])] {
        let huge = binary(0, shape);
        post(&huge.len().to_string(), &huge, 0).refused_by_protocol(400, &["overflows"]);
    }
    let huge = binary(0, json!([1_u64 << 61]));
    post(&huge.len().to_string(), &huge, 0)
        .refused_by_protocol(400, &["\"input\"", "9223372036854775808"]);
    serves(&mut server);
}

#[test]
fn encodings_that_are_none_and_bodies_that_grow() {
    let mut server = ranker(Setup::new().flag("--message-bytes-max", "65536"));
    let send = |encoding: &str, body: &[u8]| {
        server.data.send("POST", PATH, &[("content-encoding", encoding)], Some(body))
    };
    send("gzip", b"no gzip").refused_by_protocol(400, &["the body is not valid gzip"]);
    send("deflate", b"no deflate").refused_by_protocol(400, &["the body is not valid deflate"]);
    send("br", b"").refused_by_protocol(415, &["content-encoding is \"br\"", "gzip and deflate"]);
    let gzip = |body: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    };
    // 1 MiB of spaces, in a kilobyte.
    send("gzip", &gzip(&vec![b' '; 1 << 20])).refused_by_protocol(413, &["decompressed", "65536"]);
    let input =
        json!({ "name": "input", "datatype": "FP32", "shape": [1, 32], "data": vec![0; 32] });
    let text = json!({ "inputs": [input] }).to_string();
    // In two members, as gzip allows.
    let (first, second) = text.as_bytes().split_at(text.len() / 2);
    let mut whole = [gzip(first), gzip(second)].concat();
    assert_eq!(send("GZip", &whole).status, 200);
    whole.extend(b"and more");
    send("gzip", &whole).refused_by_protocol(400, &["the body is not valid gzip"]);
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    zlib.write_all(text.as_bytes()).unwrap();
    let mut whole = zlib.finish().unwrap();
    assert_eq!(send("deflate", &whole).status, 200);
    whole.extend(b"and more");
    send("deflate", &whole).refused_by_protocol(400, &["8 bytes follow it"]);
    server.data.post(PATH, &vec![b' '; 65537]).refused_by_protocol(413, &["limit of 65536 bytes"]);
    serves(&mut server);
}

#[test]
fn clients_that_leave_or_never_finish() {
    let mut server = ranker(Setup::new().flag("--infer-timeout-s", "1"));
    for _ in 0..50 {
        let head =
            raw::post(PATH, &["content-length: 1000000", "inference-header-content-length: 200"]);
        // The connection is dropped before most of the body is sent.
        Raw::sent(&server.data, &head).send(&[b' '; 5000]);
    }
    serves(&mut server);
    for length in ["content-length: 900", "content-length: 900000"] {
        let answer = Raw::sent(&server.data, &format!("{}{{", raw::post(PATH, &[length]))).answer();
        answer.refused_by_protocol(408, &["did not arrive within the timeout"]);
    }
    // Announces a large body and sends nothing.
    let head = raw::post(PATH, &["connection: close", "content-length: 99999999999"]);
    Raw::sent(&server.data, &head).answer().refused_by_protocol(413, &["limit of 67108864 bytes"]);
    serves(&mut server);
}

#[test]
fn refused_requests_and_the_connections_they_came_by() {
    let mut server = ranker(Setup::new());
    let text = row().to_string();
    let good = raw::post(PATH, &[&format!("content-length: {}", text.len())]);
    let answers = |raw: &mut Raw| [raw.read_until("\r\n\r\n"), raw.read_until("}")];
    // The server waits for the rest of a small body.
    let nothing = |headers: &[&str]| raw::post("/v2/models/nothing/infer", headers);
    let much = " ".repeat(50_000);
    let in_chunks = |head: &str, body: &str| {
        format!("{head}{:x}\r\n{body}\r\n3\r\n   \r\n0\r\n\r\n", body.len())
    };
    for sent in [
        format!("{}{much}", nothing(&["content-length: 50000"])),
        in_chunks(&nothing(&["transfer-encoding: chunked"]), &much),
    ] {
        let mut client = Raw::sent(&server.data, &format!("{sent}{good}{text}"));
        let [head, error] = answers(&mut client);
        assert!(head.starts_with("HTTP/1.1 404 ") && error.contains("nothing"), "{head}{error}");
        assert!(!head.contains("connection: close"), "{head}");
        assert!(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
    }
    let chunked = in_chunks(&raw::post(PATH, &["transfer-encoding: chunked"]), &text);
    let mut client = Raw::sent(&server.data, &format!("{chunked}{chunked}"));
    for _ in 0..2 {
        let head = client.read_until("\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 ") && !head.contains("close"), "{head}");
        client.read_until("]}]}");
    }
    // The server does not wait for a body that does not come, is large, or needs `100 Continue`.
    // The answer says that the connection closes.
    for lost in [
        nothing(&["content-length: 9"]),
        nothing(&["content-length: 900000"]),
        nothing(&["content-length: 9", "expect: 100-continue"]),
    ] {
        let answer = Raw::sent(&server.data, &lost).answer();
        assert_eq!(answer.header("connection"), "close", "{lost}");
        answer.refused_by_protocol(404, &["nothing"]);
    }
    // The body of a client without a key is not read.
    let load = raw::post("/v2/repository/models/ranker/load", &["content-length: 9"]);
    let answer = Raw::sent(&server.data, &format!("{load}no object")).read_until("}");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    serves(&mut server);
}

#[test]
fn bodies_that_are_only_promised() {
    let mut server = ranker(Setup::new());
    serves(&mut server);
    let before = server.mapped_bytes();
    let head = raw::post(PATH, &["content-length: 60000000", "inference-header-content-length: 9"]);
    let waiting: Vec<_> = (0..200)
        .map(|_| {
            let mut raw = Raw::sent(&server.data, &head);
            raw.send(&[b' '; 10_000]);
            raw
        })
        .collect();
    for _ in 0..100 {
        serves(&mut server);
    }
    let grown = server.mapped_bytes().saturating_sub(before);
    assert!(grown < 4 << 30, "{grown} bytes for promises of 12 GB");
    drop(waiting);
    serves(&mut server);
}

#[test]
fn ten_thousand_idle_connections() {
    const CONNECTIONS: usize = 10_000;
    let most = (2 * CONNECTIONS).to_string();
    let mut server = ranker(Setup::new().flag("--connections-per-client-max", &most));
    rlimit::increase_nofile_limit(2 * CONNECTIONS as u64).unwrap();
    serves(&mut server);
    let before = server.resident_bytes();
    let address = server.data.address().strip_prefix("http://").unwrap().to_owned();
    let grpc = server.grpc.clone();
    let open = |address: &str| TcpStream::connect(address).unwrap();
    let idle: Vec<_> = (0..CONNECTIONS).map(|at| open([&address, &grpc][at % 2])).collect();
    serves(&mut server);
    let grown = server.resident_bytes().saturating_sub(before) / CONNECTIONS;
    assert!(grown < 16 << 10, "{grown} bytes for each connection that was never used");
    drop(idle);
    serves(&mut server);
}

#[test]
fn connections_that_were_used_and_wait() {
    const CONNECTIONS: usize = 2_000;
    let mut server = ranker(Setup::new().flag("--header-timeout-s", "600"));
    rlimit::increase_nofile_limit(4 * CONNECTIONS as u64).unwrap();
    serves(&mut server);
    let before = server.resident_bytes();
    let live = "GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut idle: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut used = Raw::sent(&server.data, live);
            used.read_until("live");
            used
        })
        .collect();
    let calls: Vec<_> = (0..CONNECTIONS / 10).map(|_| h2::connect(&server.grpc)).collect();
    // Their memory is given back once they have waited for a while.
    let grown = || server.resident_bytes().saturating_sub(before) / (CONNECTIONS + calls.len());
    eventually("at most 32 KiB for each connection that waits", || grown() <= 32 << 10);
    let row = row().to_string();
    let large = format!("{row}{}", " ".repeat(100_000));
    for used in idle.iter_mut().take(100) {
        // Two messages at once, the second one in part; then a large one.
        let (first, rest) = live.split_at(10);
        used.send(format!("{live}{first}").as_bytes());
        used.read_until("live");
        used.send(rest.as_bytes());
        used.read_until("live");
        let head = raw::post(PATH, &[&format!("content-length: {}", large.len())]);
        used.send(format!("{head}{large}").as_bytes());
        assert!(used.read_until("\r\n").starts_with("HTTP/1.1 200 "));
        used.read_until("]}]}");
    }
    drop((idle, calls));
    serves(&mut server);
}

#[test]
fn streams_that_are_reset_at_once() {
    const RST_STREAM: u8 = 3;
    let mut server = ranker(Setup::new());
    let mut attacker = h2::connect(&server.grpc);
    let headers = h2::headers("/inference.GRPCInferenceService/ServerLive");
    let mut answered = attacker.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        for stream in (1..200_000).step_by(2) {
            let pair = [
                h2::frame(h2::HEADERS, h2::END_HEADERS, stream, &headers),
                h2::frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()),
            ];
            if attacker.write_all(&pair.concat()).is_err() {
                return;
            }
        }
    });
    // Send frames until the server closes the connection.
    let mut last = 0;
    while last != h2::GOAWAY
        && let Some((kind, ..)) = h2::next(&mut answered)
    {
        last = kind;
    }
    assert_eq!(last, h2::GOAWAY);
    drop(answered);
    serves(&mut server);
    sending.join().unwrap();
    assert!(server.resident_bytes() < 1 << 30);
}
