//! Runs jobs in children, a few at a time and in the order in which they came.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::attend::{Victim, attend};
use super::error::ChildError;
use super::limits::ChildLimits;
use super::task::Head;
use crate::Share;

/// The interval at which a long job is logged.
const PROGRESS: Duration = Duration::from_secs(15);

/// The configuration of children.
#[derive(Clone, Debug)]
pub struct RunnerConfig {
    /// The program of a child, which must call [`enter`](super::enter) first.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// All of a child's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Children at the same time; further jobs wait.
    pub concurrent: usize,
    /// Jobs that may wait; further ones are refused.
    pub waiting_max: usize,
}

impl RunnerConfig {
    /// Children of this process's own binary, one at a time.
    pub fn new(arguments: &[&str]) -> Self {
        Self {
            // This path leads to the running program, even if its file was replaced meanwhile.
            program: "/proc/self/exe".into(),
            arguments: arguments.iter().map(Into::into).collect(),
            environment: Vec::new(),
            concurrent: 1,
            waiting_max: 256,
        }
    }
}

/// One piece of work.
#[derive(Debug)]
pub struct Job {
    /// The kind of work, as the child knows it.
    pub job: &'static str,
    /// The subject of the work, for the log and the status.
    pub subject: String,
    /// The job's own description of the work.
    pub document: Vec<u8>,
    /// The file that the work is about.
    pub file: Bytes,
    /// The destination of the answer.
    pub output: Output,
    /// The child's limits.
    pub limits: ChildLimits,
}

/// The destination of a child's answer.
#[derive(Debug)]
pub enum Output {
    /// Returned by [`ChildRunner::run`].
    Returned,
    /// Written to this file, from its current position.
    File(File),
}

/// A job that waits or runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStatus {
    /// The kind of work.
    pub job: &'static str,
    /// The subject of the work, for the log and the status.
    pub subject: String,
    /// The time since it came.
    pub waited: Duration,
    /// The time since its child was started. None while the job waits.
    pub running: Option<Duration>,
}

/// Runs jobs in children.
#[derive(Debug)]
pub struct ChildRunner {
    config: RunnerConfig,
    permits: Semaphore,
    stopped: CancellationToken,
    next: AtomicU64,
    jobs: Mutex<BTreeMap<u64, Entry>>,
}

#[derive(Debug)]
struct Entry {
    job: &'static str,
    subject: String,
    came: Instant,
    started: Option<Instant>,
}

impl ChildRunner {
    /// A runner without jobs.
    pub fn new(config: RunnerConfig) -> Arc<Self> {
        let permits = Semaphore::new(config.concurrent.max(1));
        let (stopped, next) = (CancellationToken::new(), AtomicU64::new(0));
        Arc::new(Self { config, permits, stopped, next, jobs: Mutex::default() })
    }

    /// Run a job in a child of its own, in its turn. Dropping the returned future kills the child.
    ///
    /// # Errors
    /// [`ChildError::is_hosts_fault`] tells a fault of the host from one of the work.
    pub async fn run(&self, job: Job) -> Result<Vec<u8>, ChildError> {
        let place = self.enqueue(&job)?;
        let _permit = tokio::select! {
            biased;
            () = self.stopped.cancelled() => return Err(ChildError::ShuttingDown),
            permit = self.permits.acquire() => permit.map_err(|_| ChildError::ShuttingDown)?,
        };
        place.begin();
        let (kind, subject, limits) = (job.job, job.subject.clone(), job.limits.clone());
        let begun = Instant::now();
        let child = KillOnDrop(Victim::default());
        let (victim, command) = (child.0.clone(), self.command());
        let mut attending = start(move || serve(&victim, command, job))?;
        let mut progress = tokio::time::interval_at((begun + PROGRESS).into(), PROGRESS);
        let deadline = tokio::time::sleep_until((begun + limits.wall).into());
        tokio::pin!(deadline);
        let (ended, why) = loop {
            tokio::select! {
                biased;
                ended = &mut attending => break (ended, None),
                () = self.stopped.cancelled() => {
                    child.0.kill();
                    break (attending.await, Some(ChildError::ShuttingDown));
                }
                () = &mut deadline => {
                    child.0.kill();
                    break (attending.await, Some(ChildError::TimedOut(limits.wall)));
                }
                _ = progress.tick() => {
                    let (seconds, waiting) = (begun.elapsed().as_secs(), self.waiting());
                    tracing::info!(
                        job = kind,
                        subject,
                        seconds,
                        waiting,
                        "a child is still at work"
                    );
                }
            }
        };
        let answer = ended.map_err(|_| io::Error::other("the thread of a child panicked"))?;
        match (answer, why) {
            (Err(_), Some(why)) => Err(why),
            // A supervisor that ends the server ends its children, too.
            (Err(ChildError::Killed { .. }), None) if self.stopped.is_cancelled() => {
                Err(ChildError::ShuttingDown)
            }
            (answer, _) => answer,
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.config.program);
        command.args(&self.config.arguments).arg0("gristmill").current_dir("/").env_clear();
        command.envs(self.config.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// End all children and refuse further jobs, for good.
    pub fn stop(&self) {
        self.stopped.cancel();
    }

    /// The jobs that run or wait, in the order in which they came.
    pub fn status(&self) -> Vec<JobStatus> {
        let jobs = self.jobs.lock();
        let status = jobs.values().map(|entry| JobStatus {
            job: entry.job,
            subject: entry.subject.clone(),
            waited: entry.came.elapsed(),
            running: entry.started.map(|started| started.elapsed()),
        });
        status.collect()
    }

    fn waiting(&self) -> usize {
        self.jobs.lock().values().filter(|entry| entry.started.is_none()).count()
    }

    fn enqueue(&self, job: &Job) -> Result<JobEntry<'_>, ChildError> {
        let (came, started) = (Instant::now(), None);
        let entry = Entry { job: job.job, subject: job.subject.clone(), came, started };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut jobs = self.jobs.lock();
        if jobs.len() >= self.config.waiting_max.saturating_add(self.config.concurrent) {
            return Err(ChildError::Busy(jobs.len()));
        }
        jobs.insert(number, entry);
        Ok(JobEntry { runner: self, number })
    }
}

impl Drop for ChildRunner {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A job's line in the status.
struct JobEntry<'a> {
    runner: &'a ChildRunner,
    number: u64,
}

impl JobEntry<'_> {
    fn begin(&self) {
        if let Some(entry) = self.runner.jobs.lock().get_mut(&self.number) {
            entry.started = Some(Instant::now());
        }
    }
}

impl Drop for JobEntry<'_> {
    fn drop(&mut self) {
        self.runner.jobs.lock().remove(&self.number);
    }
}

struct KillOnDrop(Victim);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Run this on a thread with the share of long work. The child that it starts has that share from
/// its first instruction on. Loading its program takes some milliseconds, in which threads that
/// serve would wait for it.
fn start(
    serve: impl FnOnce() -> Result<Vec<u8>, ChildError> + Send + 'static,
) -> io::Result<oneshot::Receiver<Result<Vec<u8>, ChildError>>> {
    let (ended, ends) = oneshot::channel();
    let attend = move || {
        let answer = Share::Long.apply().map_err(ChildError::from).and_then(|()| serve());
        // The caller may have left.
        let _ = ended.send(answer);
    };
    thread::Builder::new().name("child".into()).spawn(attend)?;
    Ok(ends)
}

/// Run one child from its start to its end. Blocking.
fn serve(child: &Victim, mut command: Command, job: Job) -> Result<Vec<u8>, ChildError> {
    let Job { job, document, file, output, limits, .. } = job;
    let (document_len, file_len) = (document.len(), file.len());
    let head = Head { job: job.to_owned(), limits: limits.clone(), document_len, file_len };
    let head = serde_json::to_vec(&head).map_err(io::Error::other)?;
    let len = u32::try_from(head.len()).map_err(io::Error::other)?;
    let input = [Bytes::copy_from_slice(&len.to_le_bytes()), head.into(), document.into(), file];
    let stdout = match output {
        Output::Returned => Stdio::piped(),
        Output::File(file) => file.into(),
    };
    command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
    attend(child, command, &input, &limits)
}

#[cfg(test)]
mod tests;
