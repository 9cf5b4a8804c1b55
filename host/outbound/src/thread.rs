//! A thread on which connections live: it writes what is sent, and reads answers, so that a large
//! answer holds up no thread that serves. Stores have one, services over HTTP another.
//!
//! Invariant: tasks that can go on do so in the order in which that became true, so calls of one
//! connection end in the order of their answers.

use std::{io, thread};

use gristmill_platform::Share;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The thread. It and what runs there ends when this is dropped.
pub(crate) struct Thread {
    handle: Handle,
    _end: oneshot::Sender<()>,
}

impl Thread {
    /// The thread of this name, which those that look up names of servers have, too.
    pub(crate) fn start(name: &'static str) -> io::Result<Self> {
        // Not a runtime of several threads: there the last task that was woken goes first.
        let runtime =
            Builder::new_current_thread().enable_io().enable_time().thread_name(name).build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let work = move || {
            Share::Ordinary.take(name);
            // Nothing is sent: it ends when the sender is dropped.
            let _ = runtime.block_on(ended);
        };
        thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(Self { handle, _end: end })
    }

    pub(crate) fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.handle.spawn(work)
    }
}
