//! A thread that does jobs, one of each tenant in turn.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use gristmill_core::Name;
use gristmill_platform::{Job, Share};
use parking_lot::{Condvar, Mutex};

/// The tenant of a job; none for the host's.
type Owner = Option<Name>;

/// A thread. When this is dropped, it does the jobs that wait and ends.
pub(super) struct Worker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wakes: Condvar,
}

/// The jobs that wait.
#[derive(Default)]
struct Queue {
    /// Each owner that has jobs, once.
    turns: VecDeque<Owner>,
    jobs: HashMap<Owner, VecDeque<Job>>,
    is_ended: bool,
}

impl Queue {
    fn push(&mut self, owner: Owner, job: Job) {
        let jobs = self.jobs.entry(owner.clone()).or_default();
        if jobs.is_empty() {
            self.turns.push_back(owner);
        }
        jobs.push_back(job);
    }

    /// The next job. Its owner's others come after one of each other owner.
    fn pop(&mut self) -> Option<Job> {
        let owner = self.turns.pop_front()?;
        let jobs = self.jobs.get_mut(&owner)?;
        let job = jobs.pop_front();
        match jobs.is_empty() {
            true => drop(self.jobs.remove(&owner)),
            false => self.turns.push_back(owner),
        }
        job
    }

    fn is_over(&self) -> bool {
        self.is_ended && self.turns.is_empty()
    }
}

impl Shared {
    /// The next job. None when `due` comes before there is one, or all is over.
    fn next(&self, due: Option<Instant>) -> Option<Job> {
        let mut queue = self.queue.lock();
        loop {
            let job = queue.pop();
            let is_due = due.is_some_and(|due| Instant::now() >= due);
            if job.is_some() || queue.is_ended || is_due {
                return job;
            }
            match due {
                Some(due) => {
                    self.wakes.wait_until(&mut queue, due);
                }
                None => self.wakes.wait(&mut queue),
            }
        }
    }

    fn run(&self, every: Duration, mut tick: impl FnMut()) {
        Share::Ordinary.take("embedded stores");
        let mut due = Instant::now().checked_add(every);
        loop {
            let job = self.next(due);
            let is_over = job.is_none() && self.queue.lock().is_over();
            if let Some(job) = job {
                caught(job);
            }
            if is_over || due.is_some_and(|due| Instant::now() >= due) {
                caught(&mut tick);
                due = Instant::now().checked_add(every);
            }
            if is_over {
                return;
            }
        }
    }
}

impl Worker {
    /// A thread that also does `tick` in this interval, and at its end.
    pub(super) fn start(every: Duration, tick: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let running = shared.clone();
        let work = move || running.run(every, tick);
        let thread = thread::Builder::new().name("embedded".into()).spawn(work)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Do `job` later.
    pub(super) fn push(&self, owner: Owner, job: Job) {
        self.shared.queue.lock().push(owner, job);
        self.shared.wakes.notify_one();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.queue.lock().is_ended = true;
        self.shared.wakes.notify_one();
        if let Some(thread) = self.thread.take() {
            // It catches panics.
            let _ = thread.join();
        }
    }
}

fn caught(work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!("work on an embedded store panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn owners_take_turns() {
        let (done, order) = channel();
        let mut queue = Queue::default();
        let [acme, beta] = ["acme", "beta"].map(|name| Some(name.parse::<Name>().unwrap()));
        for (owner, number) in [(&acme, 1), (&acme, 2), (&acme, 3), (&beta, 4), (&None, 5)] {
            let done = done.clone();
            queue.push(owner.clone(), Box::new(move || done.send(number).unwrap()));
        }
        while let Some(job) = queue.pop() {
            job();
        }
        drop(done);
        assert_eq!(order.iter().collect::<Vec<_>>(), [1, 4, 5, 2, 3]);
        assert!(queue.jobs.is_empty() && queue.turns.is_empty());
    }

    #[test]
    fn a_job_that_panics_ends_no_other() {
        let (done, outcome) = channel();
        let at_end = done.clone();
        let worker = Worker::start(Duration::MAX, move || at_end.send("end").unwrap()).unwrap();
        worker.push(None, Box::new(|| panic!("on purpose")));
        worker.push(None, Box::new(move || done.send("job").unwrap()));
        drop(worker);
        assert_eq!(outcome.iter().collect::<Vec<_>>(), ["job", "end"]);
    }
}
