//! Work on large messages, off the threads that serve: reading and writing JSON, typed contents,
//! compressed bodies.
//!
//! A few threads of low priority do it. A tenant has at most half of them, so that another tenant
//! finds a free thread. Further work waits in the order of arrival. A job that has begun keeps its
//! permit until it ends, even if its client has left. So clients that leave cannot start more work
//! than there are permits.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;

use gristmill_core::{ErrorCode, HostTime, Name};
use gristmill_platform::{Job, do_jobs};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use crate::problem::Problem;

/// The longest message, in bytes, that is worked on by a serving thread.
pub const INLINE_BYTES_MAX: usize = 64 << 10;

/// The fewest threads.
const THREADS_MIN: usize = 2;

/// Threads for work on large messages. When this is dropped, they end after their work.
pub struct Offload {
    jobs: Sender<Job>,
    permits: Arc<Semaphore>,
    /// The number of permits that each tenant has.
    of_tenant: usize,
    /// The permits of each tenant that has work. All other callers share the entry without a name.
    tenants: Mutex<HashMap<Option<Name>, Weak<Semaphore>>>,
}

impl Offload {
    /// Start the threads.
    pub fn start() -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZero::get).max(THREADS_MIN);
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let queue = queue.clone();
            let work = move || do_jobs("large messages", || queue.lock().recv().ok());
            if let Err(error) = thread::Builder::new().name("offload".into()).spawn(work) {
                tracing::error!(%error, "cannot start a thread for large messages");
            }
        }
        let (permits, of_tenant) = (Arc::new(Semaphore::new(threads)), threads / 2);
        Self { jobs, permits, of_tenant, tenants: Mutex::default() }
    }

    /// Do `work` for `tenant` on one of the threads, and return its result.
    ///
    /// # Errors
    /// `internal` if the work panics or the threads have ended.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant: Option<&Name>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let failed = || Problem::new(ErrorCode::Internal, "work on a large message failed");
        let tenant_permit = self.places_of(tenant).acquire_owned().await.map_err(|_| failed())?;
        let any = self.permits.clone().acquire_owned().await.map_err(|_| failed())?;
        let (done, outcome) = oneshot::channel();
        let host = HostTime::current().unwrap_or_default();
        let job = move || {
            let _places = (tenant_permit, any);
            // If the client left while its work waited, nobody needs the result.
            if !done.is_closed() {
                let _ = done.send(host.turn(work));
            }
        };
        self.jobs.send(Box::new(job)).map_err(|_| failed())?;
        outcome.await.map_err(|_| failed())
    }

    fn places_of(&self, tenant: Option<&Name>) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock();
        if let Some(permits) = tenants.get(&tenant.cloned()).and_then(Weak::upgrade) {
            return permits;
        }
        tenants.retain(|_, permits| permits.strong_count() > 0);
        let permits = Arc::new(Semaphore::new(self.of_tenant));
        tenants.insert(tenant.cloned(), Arc::downgrade(&permits));
        permits
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::Offload;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_tenant_whose_places_are_full_leaves_others_theirs() {
        let offload = Arc::new(Offload::start());
        let (acme, globex) = ("acme".parse().unwrap(), "globex".parse().unwrap());
        let (begun, has_begun) = channel();
        let (end, ended) = channel::<()>();
        let full = offload.of_tenant;
        // Work that continues after its client left. Each job ends when the test says so.
        let ended = Arc::new(std::sync::Mutex::new(ended));
        for _ in 0..full {
            let (ended, begun) = (ended.clone(), begun.clone());
            let work = move || {
                begun.send(()).unwrap();
                ended.lock().unwrap().recv().unwrap();
            };
            let mut leaves = Box::pin(offload.run(Some(&acme), work));
            assert!((&mut leaves).now_or_never().is_none());
            has_begun.recv_timeout(PATIENCE).unwrap();
        }
        let mut waits = Box::pin(offload.run(Some(&acme), || 7));
        assert!((&mut waits).now_or_never().is_none());
        assert_eq!(offload.run(Some(&globex), || 8).await.unwrap(), 8);
        assert!((&mut waits).now_or_never().is_none());
        for _ in 0..full {
            end.send(()).unwrap();
        }
        let waited = tokio::time::timeout(PATIENCE, waits).await.unwrap();
        assert_eq!(waited.unwrap(), 7);
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error_and_ends_no_thread() {
        let offload = Offload::start();
        for _ in 0..10 {
            let problem = offload.run(None, || panic!("in a test")).await.unwrap_err();
            assert!(problem.detail.contains("failed"), "{}", problem.detail);
        }
        assert_eq!(offload.run(None, || 7).await.unwrap(), 7);
    }
}
