//! The threads that compute handshakes.
//!
//! A signature with a long RSA key takes milliseconds, and anyone can ask for one. So handshakes
//! have threads of low priority, and no request waits behind one.

use std::future::Future;
use std::io;

use gristmill_platform::Share;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// The threads, half as many as there are cores. What runs on them ends when this is dropped.
pub(super) struct Threads {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Threads {
    pub(super) fn start() -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads((cores / 2).max(1))
            .thread_name("tls")
            .on_thread_start(|| Share::Long.take("handshakes"))
            // For the polls of the files.
            .enable_time()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle })
    }

    pub(super) fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.handle.spawn(work)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for its threads would block, and this may run in a task.
            runtime.shutdown_background();
        }
    }
}
