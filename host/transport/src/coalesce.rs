//! Writing the answers of several calls on one connection together.
//!
//! Calls that come in one read are answered one after the other. If each answer were written at
//! once, each would cost a system call here and a wake-up of the client. So a small write waits
//! once for the runtime's other tasks, while other calls of the connection are under way.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};

/// Only writes of fewer bytes wait.
const SMALL_BYTES: usize = 8 << 10;

/// The number of calls of a connection that are not answered yet. Clones share the count.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<AtomicUsize>);

/// A call that is counted until this is dropped.
pub(crate) struct PendingCall(Calls);

impl Calls {
    pub(crate) fn begin(&self) -> PendingCall {
        self.0.fetch_add(1, Ordering::Relaxed);
        PendingCall(self.clone())
    }

    fn are_under_way(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection whose small writes wait for the answers of other calls.
pub(crate) struct Coalesced<T> {
    io: T,
    calls: Calls,
    /// Whether the next write has waited already.
    waited: bool,
}

impl<T> Coalesced<T> {
    pub(crate) fn new(io: T, calls: Calls) -> Self {
        Self { io, calls, waited: false }
    }

    /// Whether a write of this many bytes must wait now. If so, the task is polled again after
    /// other tasks.
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

    /// Everything is written: the next write may wait again.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.waited = false;
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
