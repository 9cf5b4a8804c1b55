//! The bytes of one connection, read in slices, so that a large answer holds up its thread for a
//! slice alone: after each one the tasks of other connections go on.
//!
//! It refuses to know what the bytes mean. What it and its user must both know is in [`Flow`].
//!
//! Invariant: between two answers no more than [`ANSWER_BYTES_MAX`] are read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes after which others go on. The client takes less than 1 ms to parse them.
const SLICE_BYTES: usize = 32 << 10;

/// Maximum bytes of an answer. The values of a call of a store have at most 16 MiB, as the body of
/// an answer over HTTP has.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// The state of a connection's bytes.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The server has closed the connection, or it failed.
    is_closed: AtomicBool,
    /// The bytes that came since the last answer.
    unanswered_bytes: AtomicUsize,
    /// The CPU time of reading and writing that no call was charged for yet, in nanoseconds.
    uncharged: AtomicU64,
}

impl Flow {
    /// Whether nothing more can be sent: the server has closed the connection, or it failed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Nothing more can be sent.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// A call has its answer.
    pub(crate) fn answered(&self) {
        self.unanswered_bytes.store(0, Ordering::Relaxed);
    }

    /// The connection took so much CPU time, in nanoseconds.
    pub(crate) fn worked(&self, nanos: u64) {
        self.uncharged.fetch_add(nanos, Ordering::Relaxed);
    }

    /// The CPU time since the last time that it was taken.
    pub(crate) fn take_work(&self) -> Duration {
        Duration::from_nanos(self.uncharged.swap(0, Ordering::Relaxed))
    }

    /// So many bytes came.
    fn came(&self, bytes: usize) -> io::Result<()> {
        let all = self.unanswered_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if all > ANSWER_BYTES_MAX {
            self.close();
            let text = format!("an answer is over the limit of {ANSWER_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(())
    }
}

/// The stream of a connection.
pub(crate) struct Stream<S> {
    inner: S,
    flow: Arc<Flow>,
    /// The bytes that may come before others go on.
    left: usize,
}

impl<S> Stream<S> {
    pub(crate) fn new(inner: S, flow: Arc<Flow>) -> Self {
        Self { inner, flow, left: SLICE_BYTES }
    }

    /// The outcome of a call of the stream. After an error nothing more can be sent.
    fn noted<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        if outcome.is_err() {
            self.flow.close();
        }
        outcome
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let room = this.left.min(buffer.remaining());
        if room == 0 {
            this.left = SLICE_BYTES;
            task.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut slice = ReadBuf::new(buffer.initialize_unfilled_to(room));
        let Poll::Ready(read) = Pin::new(&mut this.inner).poll_read(task, &mut slice) else {
            this.left = SLICE_BYTES;
            return Poll::Pending;
        };
        let bytes = slice.filled().len();
        this.noted(read)?;
        if bytes == 0 {
            this.flow.close();
        }
        buffer.advance(bytes);
        this.left -= bytes;
        Poll::Ready(this.flow.came(bytes))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.inner).poll_write(task, bytes));
        Poll::Ready(this.noted(written))
    }

    fn poll_flush(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = ready!(Pin::new(&mut this.inner).poll_flush(task));
        Poll::Ready(this.noted(flushed))
    }

    fn poll_shutdown(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(task)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::AsyncReadExt;

    use super::*;

    #[test]
    fn others_go_on_after_a_slice() {
        let bytes = vec![7_u8; 2 * SLICE_BYTES];
        let mut stream = Stream::new(bytes.as_slice(), Arc::default());
        let mut space = vec![0; 4 * SLICE_BYTES];
        let mut buffer = ReadBuf::new(&mut space);
        let mut task = Context::from_waker(Waker::noop());
        let mut read = || {
            let read = Pin::new(&mut stream).poll_read(&mut task, &mut buffer);
            (read.is_ready(), buffer.filled().len())
        };
        assert_eq!(read(), (true, SLICE_BYTES));
        assert_eq!(read(), (false, SLICE_BYTES));
        assert_eq!(read(), (true, 2 * SLICE_BYTES));
    }

    #[tokio::test]
    async fn an_endless_answer_ends_the_connection() {
        let flow = Arc::<Flow>::default();
        let mut stream = Stream::new(tokio::io::repeat(b'x'), flow.clone());
        let mut space = vec![0; ANSWER_BYTES_MAX];
        stream.read_exact(&mut space).await.unwrap();
        assert!(!flow.is_closed());
        flow.answered();
        stream.read_exact(&mut space).await.unwrap();
        stream.read_exact(&mut space[..1]).await.unwrap_err();
        assert!(flow.is_closed());
    }

    #[tokio::test]
    async fn the_end_of_a_connection_is_known_at_once() {
        let flow = Arc::<Flow>::default();
        let mut stream = Stream::new(&b"x"[..], flow.clone());
        let mut space = [0; 8];
        assert_eq!(stream.read(&mut space).await.unwrap(), 1);
        assert!(!flow.is_closed());
        assert_eq!(stream.read(&mut space).await.unwrap(), 0);
        assert!(flow.is_closed());
    }
}
