//! Work on whole files, on a thread of lower priority than those that serve.

use std::sync::mpsc::{Sender, channel};
use std::{io, thread};

use gristmill_platform::{Job, do_jobs};
use tokio::sync::oneshot;

/// A thread of low priority that does one job after the other. It ends when this is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Worker(Sender<Job>);

impl Worker {
    pub(crate) fn start() -> io::Result<Self> {
        let (jobs, queue) = channel();
        let work = move || do_jobs("files", || queue.recv().ok());
        thread::Builder::new().name("files".into()).spawn(work)?;
        Ok(Self(jobs))
    }

    /// Do `work` and return what it returns. It runs to its end even if the caller is cancelled.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (done, outcome) = oneshot::channel();
        self.spawn(move || drop(done.send(work())));
        outcome.await.map_err(|_| io::Error::other("work on a file failed"))
    }

    /// Do `work` later, without waiting for it.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        // The thread lives for as long as this does. A job that cannot be sent is dropped, which
        // its caller notices.
        let _ = self.0.send(Box::new(work));
    }
}
