//! TLS on every plane: both versions of HTTP, gRPC, and clients that make no handshake.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use gristmill_client::http::Request;
use serde_json::json;

use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::h2;
use crate::support::raw::Raw;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::tls::Authority;

/// The answer to a request of HTTP/1.1, up to `end`.
fn exchange(stream: &mut (impl Read + Write), request: &[u8], end: &str) -> String {
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(end.as_bytes()) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.extend(byte);
    }
    String::from_utf8(answer).unwrap()
}

/// The counts of a plane's TLS.
fn counts(server: &Server, plane: &str) -> serde_json::Value {
    server.status()["tls"][plane].clone()
}

#[test]
fn every_plane_is_https_and_says_so() {
    let authority = Authority::new();
    let server = Setup::new().with_tls(&authority).start();
    for line in ["data plane  https://", "grpc        https://", "admin plane https://"] {
        let lines = server.first_lines();
        assert!(lines.iter().any(|text| text.starts_with(line)), "{line:?} is not in {lines:?}");
    }
    server.digits("acme");
    server.assert_reads_digits("acme");
    assert_eq!(server.data.get("/readyz").status, 200);
    let data = counts(&server, "data");
    assert!(data["handshakes"].as_u64().unwrap() > 10, "{data}");
    assert_eq!((&data["loaded"], &data["fault"]), (&json!(1), &json!(null)));
    // The default of the library that made it.
    assert!(data["not_after"].as_str().unwrap().starts_with("4096-"), "{data}");
}

#[test]
fn a_client_chooses_the_version_of_http() {
    let authority = Authority::new();
    let server = Setup::new().with_tls(&authority).start();
    server.digits("acme");
    for plane in [&server.data, &server.admin] {
        for (offered, chosen) in [
            (&["h2", "http/1.1"][..], Some(&b"h2"[..])),
            (&["http/1.1"], Some(b"http/1.1")),
            (&[], None),
        ] {
            let stream = authority.connect(plane.authority(), offered);
            assert_eq!(stream.conn.alpn_protocol(), chosen, "{offered:?}");
        }
    }
    let seven = files::digit(7);
    let mut http2 = h2::open(authority.connect(server.data.authority(), &["h2"]));
    for number in [1, 3] {
        h2::send(&mut http2, number, "/v1/acme/infer/digits", &seven);
        let answer = String::from_utf8(h2::read_answer(&mut http2)).unwrap();
        assert!(answer.contains(r#""label":7"#), "{answer}");
    }
    h2::send(&mut http2, 5, "/v1/acme/infer/digits", &[0; 60_000]);
    let answer = String::from_utf8(h2::read_answer(&mut http2)).unwrap();
    assert!(answer.contains("unsupported_media_type"), "{answer}");
    for offered in [&["http/1.1"][..], &[]] {
        let mut http1 = authority.connect(server.data.authority(), offered);
        let live = b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";
        for _ in 0..2 {
            assert!(exchange(&mut http1, live, "live").starts_with("HTTP/1.1 200 "));
        }
    }
}

#[test]
fn large_bodies_and_answers_are_whole() {
    let authority = Authority::new();
    let server = Setup::new().with_tls(&authority).flag("--open-tenant", "acme").start();
    server.put("models/identity", include_bytes!("../../fixtures/identity-fp32.onnx"));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["identity"] }));
    for values in [1_000, 300_000, 2_000_000] {
        let data: Vec<u8> = (0..values).flat_map(|at| (at as f32).to_le_bytes()).collect();
        let tensor = gristmill_client::BinaryTensor {
            name: "input",
            datatype: "FP32",
            shape: &[1, values],
            data: &data,
        };
        let options = json!({ "parameters": { "binary_data_output": true } });
        let body = gristmill_client::infer_body(&[tensor], options);
        let answer = server.data.infer("/v2/models/identity/infer", &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.body.ends_with(&data), "{values} values");
    }
}

#[test]
fn grpc_is_spoken_over_tls_with_its_protocol_or_without() {
    let authority = Authority::new();
    let server = Setup::new().with_tls(&authority).start();
    for offered in [&["h2"][..], &[]] {
        let mut stream = h2::open(authority.connect(&server.grpc, offered));
        assert!(h2::call(&mut stream, "ServerLive", b""));
    }
}

#[test]
fn a_client_without_tls_is_closed_at_once_and_told_of_in_a_few_lines() {
    let authority = Authority::new();
    let server = Setup::new().with_tls(&authority).start();
    for _ in 0..30 {
        let mut plain = Raw::sent(&server.data, "GET /livez HTTP/1.1\r\nhost: a\r\n\r\n");
        assert_eq!(plain.read_to_end(), "");
    }
    let mut grpc = TcpStream::connect(&server.grpc).unwrap();
    grpc.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    // A reset, because its bytes stay unread, or an end.
    assert!(matches!(grpc.read(&mut [0]), Ok(0) | Err(_)));
    eventually("all are counted", || counts(&server, "data")["without_tls"] == 31);
    assert_eq!(counts(&server, "admin")["without_tls"], 0);
    let log = server.log_with("a client speaks without TLS to a plane that has TLS");
    assert_eq!(log.matches("a client speaks without TLS").count(), 10, "{log}");
    assert_eq!(server.data.get("/livez").status, 200);
}

#[test]
fn broken_handshakes_are_counted_and_end() {
    let authority = Authority::new();
    let server = Setup::new().with_tls(&authority).flag("--header-timeout-s", "1").start();
    // A record that says that it is a handshake, and is not one.
    let mut broken = Raw::open(&server.data);
    broken.send(&[22, 3, 1, 0, 5, 99, 0, 0, 1, 7]);
    broken.read_bytes_to_end();
    // A client on a busy machine may take longer than a second itself, and asks again.
    let failed = || {
        let request = Request::get("/admin/v1/status").body(Default::default()).unwrap();
        let answer = server.admin.try_send(request).ok()?;
        let status: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
        status["tls"]["data"]["handshakes_failed"].as_u64()
    };
    eventually("it is counted", || failed() == Some(1));
    // Two that never go on: after the first byte, and without a byte.
    let mut begun = Raw::open(&server.data);
    begun.send(&[22]);
    begun.read_bytes_to_end();
    Raw::open(&server.data).read_bytes_to_end();
    eventually("both are counted", || failed() == Some(3));
}

#[test]
fn a_thousand_stalled_handshakes_hold_up_neither_a_neighbour_nor_the_operator() {
    let authority = Authority::new();
    let setup = Setup::new().with_tls(&authority).open_files(4096);
    let setup = setup.flag("--connections-max", "256").flag("--header-timeout-s", "600");
    let server = setup.flag("--connections-per-client-max", "200").start();
    server.digits("acme");
    // Half of a greeting, by which nothing is known of the client yet. Those beyond the client's
    // share are refused, and the oldest make room for others.
    let stall = |_| {
        let mut raw = Raw::open(&server.data);
        raw.try_send(&[22, 3, 1, 2, 0, 1]);
        raw
    };
    let stalled: Vec<_> = (0..1000).map(stall).collect();
    // The neighbour has another address.
    let mut neighbours = Vec::new();
    for _ in 0..100 {
        let neighbour = Raw::open_from(Ipv4Addr::new(127, 0, 0, 2), &server.data);
        let mut neighbour = authority.over(neighbour.into_inner(), &["http/1.1"]);
        let live = b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";
        assert!(exchange(&mut neighbour, live, "live").starts_with("HTTP/1.1 200 "));
        neighbours.push(neighbour);
    }
    server.status();
    server.put_json("tenants/late", &json!({ "open": true }));
    drop(stalled);
    eventually("the places are free again", || {
        let answer = server.data.try_send(Request::get("/livez").body(Default::default()).unwrap());
        answer.is_ok_and(|answer| answer.status == 200)
    });
}

#[test]
fn an_idle_connection_makes_room_and_can_be_used_after_a_long_wait() {
    let authority = Authority::new();
    let setup = Setup::new().with_tls(&authority).flag("--connections-max", "16");
    let server = setup.flag("--connections-per-client-max", "100").start();
    let live = b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut idle: Vec<_> = (0..16)
        .map(|_| {
            let mut stream = authority.connect(server.data.authority(), &["http/1.1"]);
            exchange(&mut stream, live, "live");
            stream
        })
        .collect();
    // The oldest makes room, as it does without TLS. By then all others wait outside of hyper.
    assert_eq!(server.data.get("/livez").status, 200);
    let mut used = idle.pop().unwrap();
    assert!(exchange(&mut used, live, "live").starts_with("HTTP/1.1 200 "));
}

#[test]
fn requests_under_way_are_answered_at_the_shutdown() {
    let authority = Authority::new();
    let server = Setup::new().with_tls(&authority).flag("--open-tenant", "acme").start();
    server.put("models/identity", include_bytes!("../../fixtures/identity-fp32.onnx"));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["identity"] }));
    let mut stream = authority.connect(server.data.authority(), &["http/1.1"]);
    let head = b"POST /v2/models/identity/infer HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nno";
    stream.write_all(head).unwrap();
    eventually("a part of its body has arrived", || {
        server.status()["tenants"]["acme"]["bytes_under_way"] != 0
    });
    server.signal_terminate();
    server.log_with("finishing requests under way");
    let answer = exchange(&mut stream, b" object", "\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}
