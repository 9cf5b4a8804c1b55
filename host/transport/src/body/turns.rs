//! Taking turns: a task that reads a large body lets other tasks run in between.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

use tokio::task::yield_now;

/// The bytes of one turn. tokio itself lets other tasks run only after 128 reads, which can be 32
/// MB. It never does if another task reads the bytes from the socket.
const TURN_BYTES_MAX: usize = 256 << 10;

/// The number of turns after which the task also lets its thread look at its sockets.
const TURNS_BETWEEN_SOCKETS: usize = 4;

/// Counts the bytes that a task has read. After each turn, other tasks of its thread go on.
#[derive(Debug, Default)]
pub struct Turns {
    bytes: usize,
    over: usize,
}

impl Turns {
    /// Count `bytes` more.
    pub fn took(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// To be polled before reading more. Pending once if the turn is over.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.bytes < TURN_BYTES_MAX {
            return Poll::Ready(());
        }
        self.bytes = 0;
        self.over += 1;
        if self.over.is_multiple_of(TURNS_BETWEEN_SOCKETS) {
            // This wakes the task only after the thread has looked at its sockets.
            return pin!(yield_now()).poll(context);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Wait for the next turn, if this one is over.
    pub async fn next(&mut self) {
        poll_fn(|context| self.poll_next(context)).await;
    }
}
