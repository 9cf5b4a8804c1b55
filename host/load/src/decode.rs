//! Reading answers of HTTP/1.1: how long they are, and whether the connection stays open.

use std::mem::MaybeUninit;

/// The most bytes of an answer's head.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;

/// The most headers of an answer.
const HEADERS_MAX: usize = 128;

/// Why an answer cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadAnswer;

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Whether the connection can be used again.
    pub(crate) stays_open: bool,
    body: Body,
}

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// So many bytes.
    Length(u64),
    /// Chunks: so many bytes of this one, with the end of its line.
    Chunk(u64),
    /// The line with the length of the next chunk.
    ChunkLength,
    /// The lines after the last chunk.
    Trailer,
    /// All until the connection ends.
    Rest,
}

/// An answer that is read.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    head: Option<Head>,
    is_head: bool,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// The bytes that were read, which can be forgotten.
    pub(crate) used: usize,
    /// The head, if the answer is complete.
    pub(crate) complete: Option<Head>,
}

impl Decoder {
    /// A new answer. `is_head`: the request's method was HEAD.
    pub(crate) fn new(is_head: bool) -> Self {
        Self { head: None, is_head }
    }

    /// Read on. What is not used has to be given again, with more.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<Read, BadAnswer> {
        let mut used = 0;
        let mut head = match self.head {
            Some(head) => head,
            None => {
                let Some((len, head)) = head_of(bytes, self.is_head)? else {
                    return Ok(Read { used, complete: None });
                };
                used = len;
                // Interim answers have no body.
                if (100..200).contains(&head.status) {
                    let rest = self.read(&bytes[used..])?;
                    return Ok(Read { used: used + rest.used, ..rest });
                }
                head
            }
        };
        let is_complete = head.body.read(bytes, &mut used)?;
        self.head = Some(head);
        Ok(Read { used, complete: is_complete.then_some(head) })
    }

    /// The connection has ended. The head, if that completes the answer.
    pub(crate) fn end(&self) -> Option<Head> {
        self.head.filter(|head| head.body == Body::Rest)
    }
}

impl Body {
    /// Read on from `used`. Returns whether it is complete.
    fn read(&mut self, bytes: &[u8], used: &mut usize) -> Result<bool, BadAnswer> {
        loop {
            let rest = &bytes[*used..];
            match self {
                Self::Length(left) | Self::Chunk(left) => {
                    let taken = (*left).min(rest.len() as u64);
                    *left -= taken;
                    *used += taken as usize;
                    if *left > 0 {
                        return Ok(false);
                    }
                    if let Self::Length(_) = self {
                        return Ok(true);
                    }
                    *self = Self::ChunkLength;
                }
                Self::ChunkLength => {
                    let Some(end) = memchr::memchr(b'\n', rest) else { return Ok(false) };
                    let line = str::from_utf8(&rest[..end]).map_err(|_| BadAnswer)?;
                    let length = line.split(';').next().unwrap_or_default().trim();
                    let length = u64::from_str_radix(length, 16).map_err(|_| BadAnswer)?;
                    *used += end + 1;
                    *self = match length {
                        0 => Self::Trailer,
                        // The end of its line comes after it.
                        length => Self::Chunk(length.saturating_add(2)),
                    };
                }
                Self::Trailer => {
                    let Some(end) = memchr::memchr(b'\n', rest) else { return Ok(false) };
                    *used += end + 1;
                    if rest[..end].trim_ascii().is_empty() {
                        return Ok(true);
                    }
                }
                Self::Rest => {
                    *used = bytes.len();
                    return Ok(false);
                }
            }
        }
    }
}

/// The head at the beginning of `bytes`, and its length. None if it is not complete.
fn head_of(bytes: &[u8], is_head: bool) -> Result<Option<(usize, Head)>, BadAnswer> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut answer, bytes, &mut headers);
    let len = match parsed.map_err(|_| BadAnswer)? {
        httparse::Status::Complete(len) => len,
        httparse::Status::Partial if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        httparse::Status::Partial => return Err(BadAnswer),
    };
    let status = answer.code.ok_or(BadAnswer)?;
    let mut stays_open = answer.version == Some(1);
    let (mut length, mut is_chunked) = (None, false);
    for header in answer.headers.iter() {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let value = || str::from_utf8(header.value).map(str::trim).map_err(|_| BadAnswer);
        if is("content-length") {
            length = Some(value()?.parse::<u64>().map_err(|_| BadAnswer)?);
        } else if is("transfer-encoding") {
            is_chunked = value()?.eq_ignore_ascii_case("chunked");
        } else if is("connection") {
            let closes = value()?.eq_ignore_ascii_case("close");
            stays_open = !closes && (stays_open || value()?.eq_ignore_ascii_case("keep-alive"));
        }
    }
    let body = match (length, is_chunked) {
        _ if is_head || matches!(status, 100..200 | 204 | 304) => Body::Length(0),
        (_, true) => Body::ChunkLength,
        (Some(length), false) => Body::Length(length),
        (None, false) => Body::Rest,
    };
    let stays_open = stays_open && body != Body::Rest;
    Ok(Some((len, Head { status, stays_open, body })))
}

#[cfg(test)]
mod tests {
    use super::{BadAnswer, Decoder};

    /// The status and the bytes of the answer at the beginning of `text`, given in pieces of this
    /// size.
    fn read(text: &str, piece: usize) -> Result<(u16, bool, usize), BadAnswer> {
        let mut decoder = Decoder::new(false);
        let (mut used, mut given) = (0, 0);
        while given < text.len() {
            given = text.len().min(given + piece);
            let read = decoder.read(&text.as_bytes()[used..given])?;
            used += read.used;
            if let Some(head) = read.complete {
                return Ok((head.status, head.stays_open, used));
            }
        }
        let head = decoder.end().ok_or(BadAnswer)?;
        Ok((head.status, head.stays_open, used))
    }

    #[test]
    fn answers_are_read_to_their_end_however_they_come() {
        for (text, rest, expected) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody", "HTTP", (200, true)),
            ("HTTP/1.1 204 No\r\n\r\n", "HTTP", (204, true)),
            ("HTTP/1.1 429 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "", (429, false)),
            ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", "", (200, false)),
            (
                "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx",
                "y",
                (200, true),
            ),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4;a=b\r\nbody\r\n1F\r\n\
                 0123456789012345678901234567890\r\n0\r\nt: x\r\n\r\n",
                "more",
                (200, true),
            ),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
                "",
                (200, true),
            ),
            ("HTTP/1.1 200 OK\r\n\r\nuntil the end", "", (200, false)),
        ] {
            for piece in [1, 3, 7, 1000] {
                let whole = format!("{text}{rest}");
                let (status, stays_open, used) = read(&whole, piece).unwrap();
                assert_eq!((status, stays_open), expected, "{text:?} in pieces of {piece}");
                assert_eq!(used, text.len(), "{text:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for bad in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbo",
        ] {
            assert_eq!(read(bad, 1000), Err(BadAnswer), "{bad:?}");
        }
    }
}
