//! HTTP/2 frame by frame, for messages that no gRPC client would send or leave unread.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// The setting for the initial window of each stream.
const INITIAL_WINDOW_SIZE: u8 = 4;

/// The flags of the last frame of a stream, and of the last frame of headers.
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
/// The flag of settings and pings that answer others.
const ACK: u8 = 0x1;

/// A connection over any stream, such as one of TLS.
pub(crate) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// An HTTP/2 connection after its opening frames.
pub(crate) fn connect(address: &str) -> TcpStream {
    opened(tcp(address), &[])
}

/// A connection whose client gives no window, so that no data of an answer can come.
pub(crate) fn connect_without_window(address: &str) -> TcpStream {
    opened(tcp(address), &[0, INITIAL_WINDOW_SIZE, 0, 0, 0, 0])
}

fn tcp(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// The opening frames, over any stream.
pub(crate) fn open<S: Stream>(stream: S) -> S {
    opened(stream, &[])
}

fn opened<S: Stream>(mut stream: S, settings: &[u8]) -> S {
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, settings)).unwrap();
    // The server has its own windows when it has sent both of them, and they were acknowledged.
    let mut frames = Vec::new();
    while !(frames.contains(&(SETTINGS, 0)) && frames.contains(&(WINDOW_UPDATE, 0))) {
        let (kind, flags, _) = next(&mut stream).unwrap();
        frames.push((kind, flags));
    }
    stream.write_all(&frame(SETTINGS, ACK, 0, &[])).unwrap();
    stream.write_all(&frame(PING, 0, 0, &[0; 8])).unwrap();
    while next(&mut stream).unwrap().0 != PING {}
    stream
}

/// The kind, the flags and the payload of the next frame, if one comes. Pings are answered and
/// skipped.
pub(crate) fn next(stream: &mut impl Stream) -> Option<(u8, u8, Vec<u8>)> {
    let (kind, flags, _, payload) = next_of(stream)?;
    Some((kind, flags, payload))
}

/// The same, with the number of the stream before the payload.
fn next_of(stream: &mut impl Stream) -> Option<(u8, u8, u32, Vec<u8>)> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; len as usize];
        stream.read_exact(&mut payload).ok()?;
        let (kind, flags) = (head[3], head[4]);
        if (kind, flags) != (PING, 0) {
            let number = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            return Some((kind, flags, number, payload));
        }
        stream.write_all(&frame(PING, ACK, 0, &payload)).ok()?;
    }
}

/// Begin a call of stream 1, without a message.
pub(crate) fn begin(stream: &mut impl Stream, path: &str) {
    stream.write_all(&frame(HEADERS, END_HEADERS, 1, &headers(path))).unwrap();
}

/// Send an empty message on stream 1, and end the stream.
pub(crate) fn send_empty(stream: &mut impl Stream) {
    stream.write_all(&frame(DATA, END_STREAM, 1, &[0; 5])).unwrap();
}

/// Read until a frame of this kind, which must come.
#[track_caller]
pub(crate) fn read_until(stream: &mut impl Stream, kind: u8) {
    while next(stream).expect("a frame").0 != kind {}
}

/// The data of the answer to the call of stream 1. A refused call has none.
#[track_caller]
pub(crate) fn read_answer(stream: &mut impl Stream) -> Vec<u8> {
    let mut data = Vec::new();
    loop {
        let (kind, flags, payload) = next(stream).expect("an answer");
        if kind == DATA {
            data.extend(payload);
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            return data;
        }
    }
}

/// Fails where the server does not close the connection.
#[track_caller]
pub(crate) fn assert_closes(stream: &mut TcpStream) {
    // The server sends a ping once a minute.
    stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    while next(stream).is_some() {}
    match stream.read(&mut [0]) {
        Ok(0) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("the connection stays open: {other:?}"),
    }
}

/// Call a method with `message`, as fast as the windows allow. Returns whether it is answered.
pub(crate) fn call(stream: &mut impl Stream, method: &str, message: &[u8]) -> bool {
    const FRAME_BYTES: usize = 16 << 10;
    let headers = headers(&format!("/inference.GRPCInferenceService/{method}"));
    if stream.write_all(&frame(HEADERS, END_HEADERS, 1, &headers)).is_err() {
        return false;
    }
    let len = (message.len() as u32).to_be_bytes();
    let body = [&[0], &len[..], message].concat();
    // The windows that the server gave when the connection was opened.
    let (mut of_connection, mut of_stream) = (16 << 20, 4 << 20);
    let mut sent = 0;
    loop {
        let part = (body.len() - sent).min(FRAME_BYTES);
        if part > 0 && part <= of_connection && part <= of_stream {
            let is_last = sent + part == body.len();
            let flags = if is_last { END_STREAM } else { 0 };
            if stream.write_all(&frame(DATA, flags, 1, &body[sent..][..part])).is_err() {
                return false;
            }
            (sent, of_connection, of_stream) =
                (sent + part, of_connection - part, of_stream - part);
            continue;
        }
        match next_of(stream) {
            Some((WINDOW_UPDATE, _, number, payload)) => {
                let more = u32::from_be_bytes(payload.try_into().unwrap()) as usize;
                *(if number == 0 { &mut of_connection } else { &mut of_stream }) += more;
            }
            Some((HEADERS, flags, ..)) if flags & END_STREAM != 0 => return true,
            Some(_) => {}
            None => return false,
        }
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Send a request of HTTP on a stream, whole.
pub(crate) fn send(stream: &mut impl Stream, number: u32, path: &str, body: &[u8]) {
    // GET or POST, https and the path.
    let method = if body.is_empty() { 0x82 } else { 0x83 };
    let headers = [&[method, 0x87][..], &literal(0x04, path), &literal(0x01, "a")].concat();
    let flags = if body.is_empty() { END_HEADERS | END_STREAM } else { END_HEADERS };
    stream.write_all(&frame(HEADERS, flags, number, &headers)).unwrap();
    const FRAME_BYTES: usize = 16 << 10;
    let mut parts = body.chunks(FRAME_BYTES).peekable();
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_none() { END_STREAM } else { 0 };
        stream.write_all(&frame(DATA, flags, number, part)).unwrap();
    }
}

/// A header whose name is an entry of the static table, the first 15.
fn literal(index: u8, value: &str) -> Vec<u8> {
    [&[index, value.len() as u8], value.as_bytes()].concat()
}

/// The headers of a gRPC call: POST and http as indices, the others as literals.
pub(crate) fn headers(path: &str) -> Vec<u8> {
    [
        vec![0x83, 0x86],
        literal(0x04, path),
        literal(0x01, "a"),
        // content-type is entry 31 of the static table, of which four bits fit in the first byte.
        literal_at(31, "application/grpc"),
    ]
    .concat()
}

/// The headers of a gRPC call with an API key.
pub(crate) fn headers_with_key(path: &str, key: &str) -> Vec<u8> {
    // authorization is entry 23 of the static table.
    [headers(path), literal_at(23, &format!("Bearer {key}"))].concat()
}

/// A literal whose name is an entry of the static table, 15 or later.
fn literal_at(entry: u8, value: &str) -> Vec<u8> {
    [&[0x0f, entry - 15, value.len() as u8], value.as_bytes()].concat()
}
