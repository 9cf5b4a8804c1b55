//! Watching HTTP/2 frames for heads that begin and never end: h2 waits for them without a limit.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::stream::Stream;

/// The length of the preface, which a client sends first.
pub(crate) const HTTP2_PREFACE_BYTES: usize = 24;

const FRAME_HEAD_BYTES: usize = 9;

const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 0x4;

/// A connection whose preface was read, and on which each head must arrive within a time limit.
pub(crate) struct Paced {
    stream: Stream,
    /// Is read again before what comes from the client.
    preface: [u8; HTTP2_PREFACE_BYTES],
    /// How much of it is left.
    preface_left: usize,
    frames: Frames,
    timeout: Duration,
    /// Runs while a head is open.
    timer: Option<Pin<Box<Sleep>>>,
}

/// The position in the stream of frames.
struct Frames {
    head: [u8; FRAME_HEAD_BYTES],
    head_len: usize,
    /// The bytes that are left of the frame's payload.
    left: usize,
    /// Whether more of a head follows in another frame.
    continues: bool,
}

impl Paced {
    pub(crate) fn new(
        stream: Stream,
        preface: [u8; HTTP2_PREFACE_BYTES],
        timeout: Duration,
    ) -> Self {
        let preface_left = preface.len();
        Self { stream, preface, preface_left, frames: Frames::new(), timeout, timer: None }
    }

    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.frames.has_open_head() {
            return Poll::Pending;
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        timer.as_mut().poll(context)
    }
}

impl Frames {
    fn new() -> Self {
        let head = [0; FRAME_HEAD_BYTES];
        Self { head, head_len: 0, left: 0, continues: false }
    }

    fn has_open_head(&self) -> bool {
        let is_of_head = matches!(self.head[3], HEADERS | CONTINUATION);
        match self.head_len {
            0 => self.continues,
            FRAME_HEAD_BYTES => is_of_head || self.continues,
            _ => true,
        }
    }

    /// Follow the frames through `data`. Returns whether a head ended in it.
    fn read(&mut self, mut data: &[u8]) -> bool {
        let mut ended = false;
        while !data.is_empty() {
            if self.left > 0 {
                let len = data.len().min(self.left);
                self.left -= len;
                data = &data[len..];
            } else {
                let len = data.len().min(FRAME_HEAD_BYTES - self.head_len);
                self.head[self.head_len..][..len].copy_from_slice(&data[..len]);
                self.head_len += len;
                data = &data[len..];
                if self.head_len < FRAME_HEAD_BYTES {
                    break;
                }
                let [a, b, c, ..] = self.head;
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
            }
            if self.left == 0 && self.head_len == FRAME_HEAD_BYTES {
                self.head_len = 0;
                if matches!(self.head[3], HEADERS | CONTINUATION) {
                    self.continues = self.head[4] & END_HEADERS == 0;
                }
                ended |= !self.continues;
            }
        }
        ended
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.preface_left > 0 {
            let len = self.preface_left.min(buffer.remaining());
            let begin = HTTP2_PREFACE_BYTES - self.preface_left;
            buffer.put_slice(&self.preface[begin..][..len]);
            self.preface_left -= len;
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        if let Poll::Ready(read) = self.stream.as_mut().poll_read(context, buffer) {
            if self.frames.read(&buffer.filled()[before..]) {
                self.timer = None;
            }
            return Poll::Ready(read);
        }
        ready!(self.poll_late(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::{CONTINUATION, END_HEADERS, Frames, HEADERS};

    const DATA: u8 = 0;

    fn frame(kind: u8, flags: u8, len: u8) -> Vec<u8> {
        let head = [0, 0, len, kind, flags, 0, 0, 0, 1];
        [&head[..], &vec![7; len.into()]].concat()
    }

    #[test]
    fn a_head_is_open_from_its_first_byte_until_the_last_of_its_last_frame() {
        let (data, ping) = (frame(DATA, END_HEADERS, 20), frame(6, 0, 8));
        let parts = [
            (frame(4, 0, 0), true),
            (data[..12].to_vec(), false),
            (data[12..].to_vec(), true),
            (ping[..8].to_vec(), false),
            (ping[8..].to_vec(), true),
            (frame(HEADERS, END_HEADERS, 3), true),
            (frame(HEADERS, 0, 3), false),
            (frame(CONTINUATION, 0, 3), false),
            (frame(CONTINUATION, END_HEADERS, 3)[..11].to_vec(), false),
            (vec![7], true),
            (frame(HEADERS, END_HEADERS, 3)[..9].to_vec(), false),
        ];
        let open = [false, false, false, true, false, false, true, true, true, false, true];
        let (mut frames, mut by_byte) = (Frames::new(), Frames::new());
        for ((part, ends), open) in parts.iter().zip(open) {
            assert_eq!(frames.read(part), *ends, "{part:?}");
            assert_eq!(frames.has_open_head(), open, "{part:?}");
            let mut ended = false;
            for byte in part.iter().copied() {
                ended |= by_byte.read(&[byte]);
            }
            assert_eq!((ended, by_byte.has_open_head()), (*ends, open), "{part:?}");
        }
    }
}
