//! The calls of one connection that carries several at once, and writing their answers together.
//!
//! Calls that come in one read are answered one after the other; were each answer written as it
//! comes, every one would cost a system call here and a wake-up of the client. So a small write
//! waits, once, until the runtime's other tasks had their turn, where calls of the same connection
//! are still to be answered.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};

/// From here on a write is worth its system call.
const SMALL_BYTES: usize = 8 << 10;

/// How many calls of a connection are to be answered. Clones count the same.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<AtomicUsize>);

/// One of them, until it is dropped.
pub(crate) struct Call(Calls);

impl Calls {
    pub(crate) fn begin(&self) -> Call {
        self.0.fetch_add(1, Ordering::Relaxed);
        Call(self.clone())
    }

    fn are_under_way(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection whose small writes wait for those of calls that end at the same time.
pub(crate) struct Coalesced<T> {
    io: T,
    calls: Calls,
    /// Whether what is to be written has waited.
    waited: bool,
}

impl<T> Coalesced<T> {
    pub(crate) fn new(io: T, calls: Calls) -> Self {
        Self { io, calls, waited: false }
    }

    /// Whether a write of so many bytes is to wait now; the task is then polled again, after the
    /// others.
    fn waits(&mut self, bytes: usize, context: &Context<'_>) -> bool {
        if self.waited || bytes >= SMALL_BYTES || !self.calls.are_under_way() {
            return false;
        }
        self.waited = true;
        context.waker().wake_by_ref();
        true
    }
}

impl<T: Read + Unpin> Read for Coalesced<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<T: Write + Unpin> Write for Coalesced<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.waits(bytes.len(), context) {
            return Poll::Pending;
        }
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.waits(parts.iter().map(|part| part.len()).sum(), context) {
            return Poll::Pending;
        }
        Pin::new(&mut self.io).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    /// All is written: what comes next may wait again.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.waited = false;
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
