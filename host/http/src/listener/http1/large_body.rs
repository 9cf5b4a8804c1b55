//! A body that is read from the socket by whoever wants it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use super::io::Io;

/// What it is read in by who takes it frame by frame.
const FRAME_BYTES: usize = 16 << 10;

/// The body of a request whose connection was taken out of hyper. The connection goes back as soon as the body is
/// read, or dropped: an answer that kept it would never be sent.
pub struct LargeBody {
    left: usize,
    connection: Option<(Io, oneshot::Sender<Returned>)>,
}

/// A connection that goes back to hyper.
pub(super) struct Returned {
    pub(super) io: Io,
    /// Whether none of the body is left in it.
    pub(super) is_read: bool,
}

impl LargeBody {
    /// The next `len` bytes of a connection, and where it comes back.
    pub(super) fn new(len: usize, io: Io) -> (Self, oneshot::Receiver<Returned>) {
        let (back, returned) = oneshot::channel();
        (Self { left: len, connection: Some((io, back)) }, returned)
    }

    /// How many bytes are still to be read.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Read some of it into the beginning of `target`; how many bytes, none where none is left.
    pub(crate) async fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| self.poll_read(context, target)).await
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        target: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let room = target.len().min(self.left);
        let target = &mut target[..room];
        let Some((io, _)) = &mut self.connection else { return Poll::Ready(Ok(0)) };
        let len = ready!(io.poll_read_bytes(context, target))?;
        if len == 0 && !target.is_empty() {
            let detail = format!("it ended {} bytes early", self.left);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, detail)));
        }
        self.left -= len;
        if self.left == 0 {
            self.give_back();
        }
        Poll::Ready(Ok(len))
    }

    fn give_back(&mut self) {
        if let Some((io, back)) = self.connection.take() {
            // Nobody takes it where the connection was given up.
            let _ = back.send(Returned { io, is_read: self.left == 0 });
        }
    }
}

impl Drop for LargeBody {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Body for LargeBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let mut frame = [0; FRAME_BYTES];
        let len = ready!(self.poll_read(context, &mut frame))?;
        let frame = || Ok(Frame::data(Bytes::copy_from_slice(&frame[..len])));
        Poll::Ready((len > 0).then(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
