//! The stream that hyper reads from and writes to: a socket, before which bytes can be put back.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONNECTION;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, ReadBuf};

use crate::requests::Requests;
use crate::stream::Stream;

/// The state that a hyper connection, its service and its driver share.
#[derive(Default)]
pub(crate) struct Shared {
    /// Whether hyper has something to write that is not written.
    unwritten: AtomicBool,
    /// Whether an answer was given that closes the connection: some of its request may be unread.
    closes: AtomicBool,
    /// How often hyper read something.
    reads: AtomicUsize,
    pub(crate) requests: Arc<Requests>,
}

impl Shared {
    /// Take notice of whether an answer says that it is its connection's last.
    pub(crate) fn note_close(&self, answer: &HeaderMap) {
        if answer.get(CONNECTION).is_some_and(|option| option == "close") {
            self.closes.store(true, Ordering::Relaxed);
        }
    }

    /// Whether an answer was given that closes its connection.
    pub(crate) fn closes(&self) -> bool {
        self.closes.load(Ordering::Relaxed)
    }

    /// How often anything has happened.
    pub(crate) fn events(&self) -> usize {
        self.reads.load(Ordering::Relaxed).wrapping_add(self.requests.begun())
    }

    /// Whether there is nothing to answer and nothing to write.
    pub(crate) fn is_idle(&self) -> bool {
        !self.requests.are_under_way() && !self.unwritten.load(Ordering::Relaxed)
    }
}

/// How long the rest of an unread body is read before its connection is closed, and in what pieces.
const LINGER_TIME: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 16 << 10;

/// A connection's socket.
pub(crate) struct Rewind {
    stream: TokioIo<Stream>,
    /// What is read before the socket is.
    before: Bytes,
    shared: Arc<Shared>,
}

impl Rewind {
    pub(crate) fn new(stream: Stream, shared: Arc<Shared>) -> Self {
        Self { stream: TokioIo::new(stream), before: Bytes::new(), shared }
    }

    /// Wait until the client sends something, or leaves.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.stream.inner().get_ref().readable().await
    }

    /// Let `bytes` be read before all that is to be read.
    pub(crate) fn put_before(&mut self, bytes: &[u8]) {
        self.before = [bytes, &self.before].concat().into();
    }

    /// Read and drop what still comes, for a while. The kernel resets a connection that is closed
    /// with unread bytes, and a client that still sends could lose its answer.
    pub(crate) async fn linger(mut self) {
        let mut dropped = [0; LINGER_BYTES];
        let reading = poll_fn(|context| {
            while ready!(self.poll_read_bytes(context, &mut dropped)).is_ok_and(|len| len > 0) {}
            Poll::Ready(())
        });
        let _ = tokio::time::timeout(LINGER_TIME, reading).await;
    }

    /// At most `room` bytes of what is read before the socket is.
    fn take_before(&mut self, room: usize) -> Bytes {
        self.before.split_to(self.before.len().min(room))
    }

    /// Read some bytes into the beginning of `target`; how many, none where there are no more.
    pub(crate) fn poll_read_bytes(
        &mut self,
        context: &mut Context<'_>,
        target: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if !self.before.is_empty() {
            let taken = self.take_before(target.len());
            target[..taken.len()].copy_from_slice(&taken);
            return Poll::Ready(Ok(taken.len()));
        }
        let mut target = ReadBuf::new(target);
        ready!(self.stream.inner_mut().as_mut().poll_read(context, &mut target))?;
        Poll::Ready(Ok(target.filled().len()))
    }
}

impl Read for Rewind {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut target: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.before.is_empty() {
            ready!(Pin::new(&mut self.stream).poll_read(context, target))?;
        } else {
            target.put_slice(&self.take_before(target.remaining()));
        }
        self.shared.reads.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl Write for Rewind {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.shared.unwritten.store(true, Ordering::Relaxed);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.shared.unwritten.store(true, Ordering::Relaxed);
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when it has written all that it had.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.unwritten.store(false, Ordering::Relaxed);
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
