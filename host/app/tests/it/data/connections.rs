//! Connections: their limits, which of them close to make room, and malformed heads.

use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};

use serde_json::json;

use crate::support::h2;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;

const LIVE: &str = "GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";

/// Open a connection, and use it once.
fn used(server: &Server) -> Raw {
    let mut raw = Raw::sent(&server.data, LIVE);
    raw.read_until("live");
    raw
}

/// The fewest places that are possible. One client may take all of them.
fn sixteen_places() -> Setup {
    let setup = Setup::new().flag("--connections-max", "16");
    setup.flag("--connections-per-client-max", "100")
}

#[test]
fn idle_connections_make_room_for_others_and_for_the_operator() {
    let setup = Setup::new().open_files(500).flag("--open-tenant", "acme");
    let mut server = setup.flag("--connections-per-client-max", "300").start();
    server.put("models/identity", include_bytes!("../../fixtures/identity-fp32.onnx"));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["identity"] }));
    let head = raw::post("/v2/models/identity/infer", &["content-length: 9"]);
    // This connection is in use all the time, because its body is incomplete.
    let mut in_use = Raw::sent(&server.data, &head);
    let never_used: Vec<_> = (0..400).map(|_| Raw::open(&server.data)).collect();
    let admin: Vec<_> = (0..100).map(|_| Raw::open(&server.admin)).collect();
    server.status();
    assert_eq!(server.data.get("/livez").status, 200);
    // Used connections make room as well, once they have waited for a moment.
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
    let server = sixteen_places().start();
    let mut idle: Vec<_> = (0..16).map(|_| h2::connect(&server.grpc)).collect();
    // One more connection of gRPC, and one of the data plane, which shares its places.
    let mut newcomer = h2::connect(&server.grpc);
    assert!(h2::call(&mut newcomer, "ServerLive", b""));
    assert_eq!(server.data.get("/livez").status, 200);
    // The first connection gets a GOAWAY and is closed.
    let mut kinds = Vec::new();
    while let Some((kind, ..)) = h2::next(&mut idle[0]) {
        kinds.push(kind);
    }
    assert!(kinds.contains(&h2::GOAWAY), "{kinds:?}");
}

#[test]
fn streams_that_only_stay_open_make_room() {
    let server = sixteen_places().flag("--open-tenant", "acme").start();
    server.open_tenant("acme");
    let open = |index: usize| {
        let mut stream = h2::connect(&server.grpc);
        if index.is_multiple_of(2) {
            h2::begin(&mut stream, "/grpc.health.v1.Health/Watch");
            h2::send_empty(&mut stream);
            h2::read_until(&mut stream, h2::DATA);
        } else {
            h2::begin(&mut stream, "/inference.GRPCInferenceService/ModelStreamInfer");
            h2::read_until(&mut stream, h2::HEADERS);
        }
        stream
    };
    let mut open: Vec<_> = (0..16).map(open).collect();
    let mut newcomer = h2::connect(&server.grpc);
    assert!(h2::call(&mut newcomer, "ServerLive", b""));
    assert_eq!(server.data.get("/livez").status, 200);
    h2::read_until(&mut open[0], h2::GOAWAY);
}

#[test]
fn a_call_that_came_before_its_connection_was_to_close_is_answered() {
    // The server closes a connection a second after it told its client. On a busy machine a call
    // can come later than that, and no frame tells which of the two happened. So there are
    // attempts.
    const ATTEMPTS: usize = 10;
    let answered = || {
        let server = sixteen_places().flag("--infer-timeout-s", "3").start();
        let mut idle: Vec<_> = (0..16).map(|_| h2::connect(&server.grpc)).collect();
        let _newcomer = TcpStream::connect(&server.grpc).unwrap();
        h2::read_until(&mut idle[0], h2::GOAWAY);
        // The server does not know yet that the client has read this. The call ends by its own
        // timeout, because its message never comes.
        h2::begin(&mut idle[0], "/inference.GRPCInferenceService/ServerLive");
        let mut frames = std::iter::from_fn(|| h2::next(&mut idle[0]));
        let is_answered = frames.any(|(kind, ..)| kind == h2::HEADERS);
        if is_answered {
            h2::assert_closes(&mut idle[0]);
        }
        is_answered
    };
    assert!((0..ATTEMPTS).any(|_| answered()), "not answered in {ATTEMPTS} attempts");
}

#[test]
fn a_client_that_takes_no_answer_is_disconnected() {
    let server = Setup::new().flag("--write-timeout-s", "1").start();
    let mut reads = h2::connect(&server.grpc);
    let mut stalls = h2::connect_without_window(&server.grpc);
    h2::begin(&mut stalls, "/inference.GRPCInferenceService/ServerLive");
    h2::send_empty(&mut stalls);
    h2::read_until(&mut stalls, h2::HEADERS);
    h2::assert_closes(&mut stalls);
    assert!(h2::call(&mut reads, "ServerLive", b""));
}

#[test]
fn one_client_leaves_places_for_others() {
    let setup = Setup::new().flag("--connections-max", "32").flag("--infer-timeout-s", "600");
    let server = setup.flag("--open-tenant", "acme").start();
    server.put("models/identity", include_bytes!("../../fixtures/identity-fp32.onnx"));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["identity"] }));
    let head = raw::post("/v2/models/identity/infer", &["content-length: 9"]);
    let slow = |_| {
        let mut raw = Raw::open(&server.data);
        raw.try_send(head.as_bytes());
        raw
    };
    let slow: Vec<_> = (0..40).map(slow).collect();
    let mut other = Raw::open_from(Ipv4Addr::new(127, 0, 0, 2), &server.data);
    other.send(LIVE.as_bytes());
    other.read_until("live");
    server.log_with("a client has as many connections as it may client=\"127.0.0.1\"");
    drop(slow);
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
            answer.refused(
                400,
                "invalid_request",
                &["Host headers are given: exactly one is needed"],
            );
        }
    }
    // HTTP/1.0 needs no host.
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
    // A connection without a request may wait.
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
    h2::begin(&mut stream, "/inference.GRPCInferenceService/ModelStreamInfer");
    stream.write_all(&h2::frame(h2::DATA, 0, 1, &[0, 0, 0, 1, 0, 7])).unwrap();
    // The last headers have the reason.
    loop {
        let (kind, flags, _) = h2::next(&mut stream).expect("an answer");
        if kind == h2::HEADERS && flags & h2::END_STREAM != 0 {
            break;
        }
    }
}
