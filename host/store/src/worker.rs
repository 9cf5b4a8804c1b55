//! Work on whole files, on a thread that yields to everything that serves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{io, thread};

use gristmill_thread::Share;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// A thread of low priority, which does one thing after the other. It ends once this is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Worker(Sender<Job>);

impl Worker {
    pub(crate) fn start() -> io::Result<Self> {
        let (jobs, queue) = channel();
        thread::Builder::new().name("files".into()).spawn(move || work(&queue))?;
        Ok(Self(jobs))
    }

    /// What `work` returns. It is done, once it was asked for, although nobody may wait any more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (done, outcome) = oneshot::channel();
        self.spawn(move || drop(done.send(work())));
        outcome.await.map_err(|_| io::Error::other("work on a file failed"))
    }

    /// Do `work` some time.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        // The thread lives for as long as this does. What cannot be sent is dropped, which whoever
        // waits for it notices.
        let _ = self.0.send(Box::new(work));
    }
}

/// Do one job after the other, until no more can come.
fn work(queue: &Receiver<Job>) {
    if let Err(error) = Share::Long.apply() {
        tracing::warn!(%error, "uploads are worked on with ordinary priority");
    }
    while let Ok(job) = queue.recv() {
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("work on a file panicked");
        }
    }
}
