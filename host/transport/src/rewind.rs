//! The stream that hyper reads from and writes to: a socket with bytes put back before it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONNECTION;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;

use crate::requests::Requests;
use crate::stream::{Stream, linger};

/// The state that a hyper connection, its service and its driver share.
#[derive(Default)]
pub(crate) struct ConnectionState {
    /// Whether hyper has something to write that is not written.
    unwritten: AtomicBool,
    /// Whether an answer closes the connection. Then a part of its request may be unread.
    closes: AtomicBool,
    /// The number of hyper's reads.
    reads: AtomicUsize,
    pub(crate) requests: Arc<Requests>,
}

impl ConnectionState {
    /// Note whether an answer says that it is the last of its connection.
    pub(crate) fn note_close(&self, answer: &HeaderMap) {
        if answer.get(CONNECTION).is_some_and(|option| option == "close") {
            self.closes.store(true, Ordering::Relaxed);
        }
    }

    /// Whether an answer closed the connection.
    pub(crate) fn closes(&self) -> bool {
        self.closes.load(Ordering::Relaxed)
    }

    /// The number of reads and calls so far.
    pub(crate) fn events(&self) -> usize {
        self.reads.load(Ordering::Relaxed).wrapping_add(self.requests.begun())
    }

    /// Whether there is nothing to answer and nothing to write.
    pub(crate) fn is_idle(&self) -> bool {
        !self.requests.are_under_way() && !self.unwritten.load(Ordering::Relaxed)
    }
}

/// A connection's socket.
pub(crate) struct Rewind {
    stream: TokioIo<Stream>,
    /// Bytes that are read before those of the socket.
    before: Bytes,
    shared: Arc<ConnectionState>,
}

impl Rewind {
    pub(crate) fn new(stream: Stream, shared: Arc<ConnectionState>) -> Self {
        Self { stream: TokioIo::new(stream), before: Bytes::new(), shared }
    }

    /// Wait until the client sends something, or leaves.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.stream.inner().get_ref().readable().await
    }

    /// Put `bytes` back, so that they are read before all others.
    pub(crate) fn put_before(&mut self, bytes: &[u8]) {
        self.before = [bytes, &self.before].concat().into();
    }

    /// Read and drop the bytes that still come, for a while.
    pub(crate) async fn linger(mut self) {
        let socket = self.stream.inner_mut().as_mut().get_pin_mut().get_mut();
        linger(socket.tcp_mut()).await;
    }

    /// At most `room` of the bytes that were put back.
    fn take_before(&mut self, room: usize) -> Bytes {
        self.before.split_to(self.before.len().min(room))
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

    /// hyper flushes when it has written all that it had. With TLS the session can hold some of it
    /// until the flush has ended.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(context));
        self.shared.unwritten.store(false, Ordering::Relaxed);
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.unwritten.store(true, Ordering::Relaxed);
        let ended = ready!(Pin::new(&mut self.stream).poll_shutdown(context));
        self.shared.unwritten.store(false, Ordering::Relaxed);
        Poll::Ready(ended)
    }
}
