//! Frames of HTTP/2 that cost a careless server much and their sender little.
//!
//! A table says what each flood is, and whether the server may keep the connection: it must close
//! one whose frames are wrong or pile up. Afterwards it serves others, and has not grown.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use crate::support::h2::{self, END_HEADERS, END_STREAM, frame};
use crate::support::server::Server;

const DATA: u8 = h2::DATA;
const HEADERS: u8 = h2::HEADERS;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const LIVE: &str = "/inference.GRPCInferenceService/ServerLive";

/// The server's memory with all floods behind it.
const RESIDENT_BYTES_MAX: usize = 512 << 20;

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// It ends, with a GOAWAY or without one.
    Closed,
    /// It may go on: the frames are allowed and cheap.
    Any,
}

use End::{Any, Closed};

/// A flood: the frames with this number, from 0 on, and their count.
type Flood = (&'static str, u32, fn(u32) -> Vec<u8>, End);

/// The odd numbers, which a client's streams have.
fn stream(number: u32) -> u32 {
    2 * number + 1
}

/// A literal header that enters the table of the connection, with a value of this length.
fn indexed(name: &[u8], len: u8) -> Vec<u8> {
    let name = [&[0x40, name.len() as u8], name].concat();
    [&name[..], &[len], &vec![b'v'; len.into()]].concat()
}

const FLOODS: &[Flood] = &[
    (
        "continuations",
        100_000,
        |number| match number {
            0 => frame(HEADERS, 0, 1, &h2::headers(LIVE)),
            _ => frame(CONTINUATION, 0, 1, &indexed(b"x", 100)),
        },
        Closed,
    ),
    (
        "empty continuations",
        100_000,
        |number| match number {
            0 => frame(HEADERS, 0, 1, &h2::headers(LIVE)),
            _ => frame(CONTINUATION, 0, 1, &[]),
        },
        Closed,
    ),
    (
        "headers that grow",
        1,
        |_| {
            // One header of 4,000 bytes in the table, named again 16,000 times.
            let long = [&[0x40, 1, b'x', 127, 0xa1, 30][..], &[b'v'; 4000]].concat();
            frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                1,
                &[h2::headers(LIVE), long, vec![0xbe; 8_000]].concat(),
            )
        },
        Any,
    ),
    ("settings", 100_000, |_| frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]), Any),
    ("pings", 100_000, |_| frame(PING, 0, 0, &[0; 8]), Any),
    ("priorities", 100_000, |number| frame(PRIORITY, 0, stream(number), &[0, 0, 0, 0, 1]), Any),
    (
        "empty data",
        100_000,
        |number| match number {
            0 => frame(HEADERS, END_HEADERS, 1, &h2::headers(LIVE)),
            _ => frame(DATA, 0, 1, &[]),
        },
        Any,
    ),
    (
        "resets",
        100_000,
        |number| {
            let begin = frame(HEADERS, END_HEADERS, stream(number), &h2::headers(LIVE));
            [begin, frame(RST_STREAM, 0, stream(number), &[0, 0, 0, 8])].concat()
        },
        Closed,
    ),
    // The server is made to reset the streams itself.
    (
        "resets that it is made to send",
        50_000,
        |number| {
            let begin = frame(HEADERS, END_HEADERS, stream(number), &h2::headers(LIVE));
            [begin, frame(WINDOW_UPDATE, 0, stream(number), &[0; 4])].concat()
        },
        Closed,
    ),
    (
        "streams",
        50_000,
        |number| frame(HEADERS, END_HEADERS, stream(number), &h2::headers(LIVE)),
        Any,
    ),
    (
        "a window that overflows",
        3,
        |_| frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
        Closed,
    ),
    ("a window of 0", 1, |_| frame(WINDOW_UPDATE, 0, 0, &[0; 4]), Closed),
    ("data of no stream", 1, |_| frame(DATA, 0, 0, b"x"), Closed),
    ("data of a stream that is not open", 1, |_| frame(DATA, 0, 99, b"x"), Closed),
    ("headers of no stream", 1, |_| frame(HEADERS, END_HEADERS, 0, &h2::headers(LIVE)), Closed),
    (
        "headers of the server's stream",
        1,
        |_| frame(HEADERS, END_HEADERS, 2, &h2::headers(LIVE)),
        Closed,
    ),
    ("a continuation of nothing", 1, |_| frame(CONTINUATION, END_HEADERS, 1, &[]), Closed),
    ("a promise", 1, |_| frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]), Closed),
    ("a ping of 7 bytes", 1, |_| frame(PING, 0, 0, &[0; 7]), Closed),
    ("settings of 5 bytes", 1, |_| frame(SETTINGS, 0, 0, &[0; 5]), Closed),
    ("settings of a stream", 1, |_| frame(SETTINGS, 0, 1, &[0; 6]), Closed),
    ("a frame over the limit", 1, |_| frame(DATA, 0, 1, &vec![0; 1 << 20]), Closed),
    (
        "headers out of the table",
        1,
        |_| frame(HEADERS, END_HEADERS, 1, &[0xff, 0xff, 0x7f]),
        Closed,
    ),
    (
        "a table over the limit",
        1,
        |_| frame(HEADERS, END_HEADERS, 1, &[0x3f, 0xff, 0xff, 0xff, 0x7f]),
        Closed,
    ),
];

/// Send the flood while the answers are read. Returns whether the server ended the connection.
fn is_ended_by(address: &str, count: u32, frames: fn(u32) -> Vec<u8>) -> bool {
    const LAST: &[u8; 8] = b"the last";
    let mut answers = h2::connect(address);
    let mut sender = answers.try_clone().unwrap();
    let sending = thread::spawn(move || {
        let sent = (0..count).all(|number| sender.write_all(&frames(number)).is_ok());
        // The answer to this says that all others were read.
        sent && sender.write_all(&frame(PING, 0, 0, LAST)).is_ok()
    });
    let ended = loop {
        match next_answer(&mut answers) {
            Some((PING, payload)) if payload == LAST => break false,
            Some((h2::GOAWAY, _)) | None => break true,
            Some(_) => {}
        }
    };
    drop(answers);
    sending.join().unwrap();
    ended
}

/// The kind and the payload of the next frame. It writes nothing, because another thread does.
fn next_answer(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    stream.read_exact(&mut payload).ok()?;
    Some((head[3], payload))
}

#[test]
fn floods_and_malformed_frames_end_their_own_connection() {
    let mut server = Server::start();
    for (name, count, frames, end) in FLOODS {
        let ended = is_ended_by(&server.grpc, *count, *frames);
        assert!(ended || *end == Any, "{name}: the connection goes on");
        let mut next = h2::connect(&server.grpc);
        assert!(h2::call(&mut next, "ServerLive", b""), "after {name}");
        server.assert_alive();
        let resident = server.resident_bytes();
        assert!(resident < RESIDENT_BYTES_MAX, "{name}: the server has {resident} bytes");
    }
    assert_eq!(server.data.get("/livez").status, 200);
}
