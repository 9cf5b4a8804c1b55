//! A body that is read from the socket by whoever wants it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::ReadBuf;
use tokio::sync::oneshot;

use super::io::Io;

/// What it is read in by who takes it frame by frame.
const FRAME_BYTES: usize = 64 << 10;

/// The body of a request whose connection was taken out of hyper; it goes back there as soon as the body is read,
/// or dropped.
pub(crate) struct LargeBody {
    /// What hyper had read of it.
    begun: BytesMut,
    /// How much of it is to be read, with what is in `begun`.
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
    /// A body of `len` bytes, which are `begun` and what follows in `io`.
    pub(super) fn new(begun: BytesMut, len: usize, io: Io) -> (Self, oneshot::Receiver<Returned>) {
        let (back, returned) = oneshot::channel();
        (Self { begun, left: len, connection: Some((io, back)) }, returned)
    }

    /// How many bytes are to be read.
    pub(crate) fn len(&self) -> usize {
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
        let len = if self.begun.is_empty() {
            let Some((io, _)) = &mut self.connection else { return Poll::Ready(Ok(0)) };
            let mut target = ReadBuf::new(&mut target[..room]);
            ready!(io.poll_read_on(context, &mut target))?;
            if room > 0 && target.filled().is_empty() {
                let detail = format!("it ended {} bytes early", self.left);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, detail)));
            }
            target.filled().len()
        } else {
            let len = room.min(self.begun.len());
            self.begun.copy_to_slice(&mut target[..len]);
            len
        };
        self.left -= len;
        if self.left == 0 {
            self.give_back();
        }
        Poll::Ready(Ok(len))
    }

    fn give_back(&mut self) {
        if let Some((io, back)) = self.connection.take() {
            // Nobody takes it where the connection was given up.
            let _ = back.send(Returned { io, is_read: self.left == self.begun.len() });
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
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut frame = vec![0; self.left.min(FRAME_BYTES)];
        let len = ready!(self.poll_read(context, &mut frame))?;
        frame.truncate(len);
        Poll::Ready(Some(Ok(Frame::data(frame.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
