//! Connections: how many there may be, what waits for whom, and heads that are none.

use std::io::Write;
use std::net::TcpStream;

use serde_json::json;

use crate::h2;
use crate::raw::{self, Raw};
use crate::server::{Server, Setup};

const LIVE: &str = "GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";

/// Open a connection, and use it once.
fn used(server: &Server) -> Raw {
    let mut raw = Raw::sent(&server.data, LIVE);
    raw.read_until("live");
    raw
}

#[test]
fn idle_connections_make_room_for_others_and_for_the_operator() {
    let mut server = Setup::new().open_files(300).flag("--open-tenant", "acme").start();
    server.put("models/identity", include_bytes!("../fixtures/identity-fp32.onnx"));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["identity"] }));
    let head = raw::post("/v2/models/identity/infer", &["content-length: 9"]);
    // In use all the time: its body is on its way.
    let mut in_use = Raw::sent(&server.data, &head);
    let never_used: Vec<_> = (0..400).map(|_| Raw::open(&server.data)).collect();
    let admin: Vec<_> = (0..100).map(|_| Raw::open(&server.admin)).collect();
    server.status();
    assert_eq!(server.data.get("/livez").status, 200);
    // Those that were used make room as well, once they have waited for a moment.
    let idle: Vec<_> = (0..300).map(|_| used(&server)).collect();
    server.status();
    server.put_json("tenants/late", &json!({ "open": true }));
    assert_eq!(server.data.get("/livez").status, 200);
    in_use.send(b"no object");
    assert!(in_use.read_until("\r\n").starts_with("HTTP/1.1 400 "));
    server.assert_alive();
    drop((never_used, admin, idle));
}

#[test]
fn idle_grpc_connections_make_room() {
    let server = Setup::new().flag("--connections-max", "16").start();
    let mut idle: Vec<_> = (0..16).map(|_| h2::connect(&server.grpc)).collect();
    // One more, and one of the data plane, whose places are the same.
    let mut newcomer = h2::connect(&server.grpc);
    assert!(h2::call(&mut newcomer, "ServerLive", b""));
    assert_eq!(server.data.get("/livez").status, 200);
    // The first one is told, and closed.
    let mut kinds = Vec::new();
    while let Some((kind, ..)) = h2::next(&mut idle[0]) {
        kinds.push(kind);
    }
    assert!(kinds.contains(&h2::GOAWAY), "{kinds:?}");
}

#[test]
fn a_client_has_as_many_connections_as_it_may() {
    let server = Setup::new().flag("--connections-per-client-max", "3").start();
    let mut open: Vec<_> = (0..3).map(|_| used(&server)).collect();
    assert_eq!(Raw::open(&server.data).read_to_end(), "");
    for raw in &mut open {
        raw.send(LIVE.as_bytes());
        raw.read_until("live");
    }
    server.status();
}

#[test]
fn heads_over_the_limit_are_refused_at_the_limit() {
    const LIMIT: usize = 32 << 10;
    let server = Server::start();
    let of = |len: usize| {
        let begin = "GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-long: ";
        let end = "\r\n\r\n";
        format!("{begin}{}{end}", "a".repeat(len - begin.len() - end.len()))
    };
    for (len, status) in [(LIMIT, 200), (LIMIT + 1, 431), (40 << 10, 431), (60 << 10, 431)] {
        let answer = Raw::sent(&server.data, &of(len)).answer();
        assert_eq!(answer.status, status, "a head of {len} bytes");
    }
}

#[test]
fn a_request_names_its_host_once() {
    let server = Server::start();
    for plane in [&server.data, &server.admin] {
        for hosts in ["", "host: a\r\nhost: a\r\n", "host: a\r\nHost: b\r\n"] {
            let head = format!("GET /livez HTTP/1.1\r\n{hosts}\r\n");
            let answer = Raw::sent(plane, &head).answer();
            answer.refused(400, "invalid_request", &["Host headers are given: must be one"]);
        }
    }
    // As HTTP/1.0 has it.
    let answer = Raw::sent(&server.data, "GET /livez HTTP/1.0\r\n\r\n").answer();
    assert_eq!(answer.status, 200);
}

#[test]
fn an_http2_head_that_stays_open_is_timed_out() {
    let server = Setup::new().flag("--header-timeout-s", "1").start();
    let headers = h2::headers("/inference.GRPCInferenceService/ServerLive");
    let whole = h2::frame(h2::HEADERS, 0, 1, &headers);
    for part in [&whole[..], &whole[..whole.len() - 1], &whole[..5]] {
        let mut open = h2::connect(&server.grpc);
        open.write_all(part).unwrap();
        while h2::next(&mut open).is_some() {}
    }
    // One without any head may wait.
    let mut idle = h2::connect(&server.grpc);
    let mut stalls: TcpStream = h2::connect(&server.grpc);
    stalls.write_all(&whole).unwrap();
    while h2::next(&mut stalls).is_some() {}
    assert!(h2::call(&mut idle, "ServerLive", b""));
}

#[test]
fn a_streams_message_that_does_not_arrive_ends_the_stream() {
    let server = Setup::new().flag("--infer-timeout-s", "1").flag("--open-tenant", "acme").start();
    server.put_json("tenants/acme", &json!({ "open": true }));
    let mut stream = h2::connect(&server.grpc);
    let headers = h2::headers("/inference.GRPCInferenceService/ModelStreamInfer");
    stream.write_all(&h2::frame(h2::HEADERS, h2::END_HEADERS, 1, &headers)).unwrap();
    stream.write_all(&h2::frame(h2::DATA, 0, 1, &[0, 0, 0, 1, 0, 7])).unwrap();
    // Its last headers say why.
    loop {
        let (kind, flags, _) = h2::next(&mut stream).expect("an answer");
        if kind == h2::HEADERS && flags & h2::END_STREAM != 0 {
            break;
        }
    }
}
