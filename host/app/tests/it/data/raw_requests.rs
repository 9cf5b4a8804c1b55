//! Requests over HTTP/1.1 that two readers could read differently, and malformed ones.
//!
//! Most of them carry a second request where a careless reader would find its beginning. The table
//! says how each connection is answered: a 404 after another status is that second request, where
//! it is one by the rules.

use crate::support::raw::Raw;
use crate::support::setup::Setup;

/// The second request. No path leads anywhere.
const SECOND: &str = "GET /second HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
const POST: &str = "POST /v1/acme/infer/hostile HTTP/1.1\r\nhost: a\r\n";
const GET: &str = "GET /livez HTTP/1.1\r\nhost: a\r\n";
const CHUNKED: &str = "transfer-encoding: chunked\r\n";
/// The end of a head, and a body without chunks.
const NO_CHUNKS: &str = "\r\n0\r\n\r\n";

/// What a connection sends, and the statuses of its answers.
type Case = (&'static str, String, &'static [u16]);

/// Requests with more than one length.
fn lengths() -> Vec<Case> {
    let len = SECOND.len();
    let post = |headers: &str, body: &str| format!("{POST}{headers}\r\n{body}");
    vec![
        // The chunks decide, and the connection closes.
        (
            "a length and chunks",
            post(&format!("content-length: {}\r\n{CHUNKED}", len + 5), "0\r\n\r\n") + SECOND,
            &[200],
        ),
        (
            "chunks and a length",
            post(
                &format!("{CHUNKED}content-length: 4\r\n"),
                &format!("{len:x}\r\n{SECOND}\r\n0\r\n\r\n"),
            ),
            &[200],
        ),
        (
            "two lengths",
            post(&format!("content-length: 0\r\ncontent-length: {len}\r\n"), SECOND),
            &[400],
        ),
        (
            "one length twice",
            post("content-length: 2\r\ncontent-length: 2\r\n", "{}") + SECOND,
            &[200, 404],
        ),
        ("a list of lengths", post("content-length: 2, 2\r\n", "{}") + SECOND, &[400]),
        ("a length with a sign", post("content-length: +2\r\n", "{}") + SECOND, &[400]),
        ("a length below 0", post("content-length: -2\r\n", "{}") + SECOND, &[400]),
        ("a length in hexadecimal", post("content-length: 0x2\r\n", "{}") + SECOND, &[400]),
        (
            "a length that overflows",
            post("content-length: 18446744073709551618\r\n", "{}") + SECOND,
            &[400],
        ),
        ("a length that is empty", post("content-length:\r\n", SECOND), &[400]),
        (
            "a body of GET",
            format!(
                "GET /livez HTTP/1.1\r\nhost: a\r\ncontent-length: {len}\r\n\r\n{SECOND}{SECOND}"
            ),
            &[200, 404],
        ),
    ]
}

/// Encodings of the transfer.
fn encodings() -> Vec<Case> {
    let post = |header: &str| format!("{POST}{header}\r\n{NO_CHUNKS}{SECOND}");
    vec![
        ("identity", post("transfer-encoding: identity"), &[400]),
        ("an unknown one", post("transfer-encoding: xchunked"), &[400]),
        ("chunked, then another", post("transfer-encoding: chunked, identity"), &[400]),
        ("a space before the colon", post("transfer-encoding : chunked"), &[400]),
        ("a tab before the value", post("transfer-encoding:\tchunked"), &[200, 404]),
        ("a vertical tab", post("transfer-encoding: \x0bchunked"), &[400]),
        ("on the next line", post("transfer-encoding:\r\n chunked"), &[400]),
        (
            "chunks in HTTP/1.0",
            post("transfer-encoding: chunked").replace("HTTP/1.1", "HTTP/1.0"),
            &[400],
        ),
    ]
}

/// Chunks and what follows them.
fn chunks() -> Vec<Case> {
    let post = |body: &str| format!("{POST}{CHUNKED}\r\n{body}");
    let last = format!("\r\n0\r\n\r\n{SECOND}");
    let trailers: String = (0..2000).map(|index| format!("x-{index}: y\r\n")).collect();
    vec![
        ("a size with a sign", post("+2\r\n{}") + &last, &[400]),
        ("a size with a prefix", post("0x2\r\n{}") + &last, &[400]),
        ("a size that overflows", post("10000000000000002\r\n{}") + &last, &[400]),
        // It could still come.
        ("the largest size", post("ffffffffffffffff\r\n{}") + &last, &[408]),
        ("a chunk without its end", post("2\r\n{}0\r\n\r\n") + SECOND, &[400]),
        ("lines that end in LF", post("2\n{}\n0\n\n") + SECOND, &[400]),
        ("a long extension", post(&format!("2;{}\r\n{{}}", "a".repeat(40_000))) + &last, &[400]),
        ("an extension that ends in LF", post("2;\n{}") + &last, &[400]),
        ("trailers", post("0\r\ncontent-length: 50\r\nhost: b\r\n\r\n") + SECOND, &[200, 404]),
        ("too many trailers", post(&format!("0\r\n{trailers}\r\n")) + SECOND, &[400]),
        ("a trailer of two lines", post("0\r\nx: y\r\n z\r\n\r\n") + SECOND, &[400]),
    ]
}

/// Heads that are none, and requests for another protocol.
fn heads() -> Vec<Case> {
    let get = |header: &str| format!("{GET}{header}\r\n\r\n");
    let upgrade = |to: &str| get(&format!("connection: upgrade, close\r\nupgrade: {to}"));
    vec![
        ("a header of two lines", get("x-a: b\r\n c"), &[400]),
        ("a NUL in a value", get("x-a: b\0c"), &[400]),
        ("a NUL in a name", get("x\0a: b"), &[400]),
        ("a CR in a value", get("x-a: b\rtransfer-encoding: chunked"), &[400]),
        ("no colon", get("nonsense"), &[400]),
        ("a NUL in the path", "GET /a\0b HTTP/1.1\r\nhost: a\r\n\r\n".into(), &[400]),
        ("HTTP/3", "GET /livez HTTP/3.0\r\nhost: a\r\n\r\n".into(), &[400]),
        ("HTTP/0.9", "GET /livez\r\n\r\n".into(), &[400]),
        ("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".into(), &[]),
        ("an upgrade to HTTP/2", upgrade("h2c") + SECOND, &[200]),
        ("an upgrade to WebSocket", upgrade("websocket") + SECOND, &[200]),
        ("a tunnel", format!("CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n{SECOND}"), &[404, 404]),
        (
            "another's address",
            format!("GET http://b/second HTTP/1.1\r\nhost: a\r\n\r\n{SECOND}"),
            &[404, 404],
        ),
        (
            "all of the server",
            format!("OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n{SECOND}"),
            &[404, 404],
        ),
        ("a trace", format!("TRACE /livez HTTP/1.1\r\nhost: a\r\n\r\n{SECOND}"), &[405, 404]),
        (
            "the admin plane",
            format!("GET /v1/../admin/v1/status HTTP/1.1\r\nhost: a\r\n\r\n{SECOND}"),
            &[404, 404],
        ),
    ]
}

/// The statuses in what a connection was answered.
fn statuses(answers: &str) -> Vec<u16> {
    let lines = answers.split("HTTP/1.1 ").skip(1);
    lines.map(|line| line.get(..3).and_then(|status| status.parse().ok()).unwrap_or(0)).collect()
}

/// Send each on a connection of its own. Fails unless it is answered as its table says. The admin
/// plane, whose token it lacks, gives no more answers.
#[test]
fn each_request_is_answered_as_the_tables_say() {
    // Ends connections that wait for more.
    let server = Setup::new().flag("--header-timeout-s", "1").start();
    server.hostile("acme");
    let tables = [
        ("lengths", lengths()),
        ("encodings", encodings()),
        ("chunks", chunks()),
        ("heads", heads()),
    ];
    let rows = tables.into_iter().flat_map(|(table, cases)| {
        cases.into_iter().map(move |(name, text, expected)| (table, name, text, expected))
    });
    for (table, name, text, expected) in rows {
        let name = format!("{table}: {name}");
        let answers = Raw::sent(&server.data, &text).read_to_end();
        assert_eq!(statuses(&answers), expected, "{name}: {answers}");
        let mut admin = Raw::open(&server.admin);
        admin.try_send(text.as_bytes());
        let answered = statuses(&admin.read_to_end());
        let is_refused = answered.iter().all(|status| [400, 401, 408].contains(status));
        assert!(is_refused && answered.len() <= expected.len().max(1), "{name}: {answered:?}");
        assert_eq!(server.data.post("/v1/acme/infer/hostile", b"").text(), "harmless", "{name}");
    }
}
