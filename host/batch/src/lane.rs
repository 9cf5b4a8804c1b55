//! A lane: where requests for one model version queue up.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{
    BufferPool, Deadline, ErrorCode, InputError, Model, ModelInfo, Name, NamedTensor, Tensor,
};
use tokio::sync::oneshot;

use crate::LaneStatistics;
use crate::policy::{Entry, Policy};
use crate::worker;

/// How a lane forms batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneConfig {
    /// The most rows in a batch.
    pub max_batch_size: usize,
    /// The most rows waiting; further requests are refused.
    pub max_queue_size: usize,
}

/// One request for a lane.
#[derive(Debug)]
pub struct Submission {
    pub tenant: Name,
    pub inputs: Vec<NamedTensor>,
    pub deadline: Deadline,
}

/// Why a request got no outputs.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("request has {rows} rows, the model takes at most {max} in a batch")]
    TooManyRows { rows: usize, max: usize },
    #[error("the model's queue is full: {queued} rows wait, {max} may")]
    QueueFull { queued: usize, max: usize },
    #[error("the deadline passed while the request was queued")]
    Expired,
    #[error("model failed: {0}")]
    Failed(String),
    #[error("the model is being unloaded")]
    Closed,
}

impl SubmitError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Input(error) => error.code(),
            Self::TooManyRows { .. } => ErrorCode::Unprocessable,
            Self::QueueFull { .. } => ErrorCode::QueueFull,
            Self::Expired => ErrorCode::DeadlineExceeded,
            Self::Failed(_) => ErrorCode::ModelFailed,
            Self::Closed => ErrorCode::Unavailable,
        }
    }
}

/// What the workers answer: outputs in the model's order, and how long the request was queued.
pub(crate) type Answer = Result<(Vec<Tensor>, Duration), SubmitError>;

pub(crate) struct Job {
    pub(crate) tenant: Name,
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) rows: usize,
    pub(crate) queued_at: Instant,
    pub(crate) reply: oneshot::Sender<Answer>,
}

pub(crate) struct Shared {
    pub(crate) pool: BufferPool,
    pub(crate) rows_are_dynamic: bool,
    state: Mutex<State>,
    pub(crate) work: Condvar,
}

pub(crate) struct State {
    pub(crate) policy: Policy<Job>,
    /// Instances that run nothing just now. Whoever takes one, worker or leader, puts it back.
    pub(crate) idle: Vec<Box<dyn Model>>,
    pub(crate) closed: bool,
    pub(crate) waiting_workers: usize,
    /// How long a batch takes, recency-weighted; none before the first.
    pub(crate) batch_time: Option<Duration>,
    pub(crate) statistics: LaneStatistics,
}

impl Shared {
    /// Wake a worker where there is work for one.
    pub(crate) fn wake_worker(&self, state: &State) {
        let work = state.policy.queued_rows() > 0 && !state.idle.is_empty();
        if work && state.waiting_workers > 0 {
            self.work.notify_one();
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Batches shorter than this are run by the task that submits, if an instance is idle: handing them
/// to a worker and back would cost as much again. Far below what would hold up a runtime thread.
const LEADER_BATCH_TIME_MAX: Duration = Duration::from_micros(100);

/// The queue and the worker threads of one model version. Dropping it lets the workers finish what
/// is queued and end.
pub struct Lane {
    info: ModelInfo,
    config: LaneConfig,
    shared: Arc<Shared>,
}

impl Lane {
    /// A lane over `instances`, each on a thread of its own.
    pub fn new(
        name: &str,
        info: ModelInfo,
        instances: Vec<Box<dyn Model>>,
        config: LaneConfig,
        pool: BufferPool,
    ) -> std::io::Result<Self> {
        let policy = Policy::new(config.max_batch_size, config.max_queue_size);
        let state = State {
            policy,
            idle: Vec::with_capacity(instances.len()),
            closed: false,
            waiting_workers: 0,
            batch_time: None,
            statistics: LaneStatistics::default(),
        };
        let shared = Arc::new(Shared {
            pool,
            rows_are_dynamic: info.rows_are_dynamic(),
            state: Mutex::new(state),
            work: Condvar::new(),
        });
        let lane = Self { info, config, shared };
        for instance in instances {
            lane.shared.state().idle.push(instance);
            let shared = lane.shared.clone();
            std::thread::Builder::new()
                .name(format!("model-{name}"))
                .spawn(move || worker::run(&shared))?;
        }
        Ok(lane)
    }

    /// The model's inputs and outputs.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// How batches are formed.
    pub fn config(&self) -> &LaneConfig {
        &self.config
    }

    /// The counters now.
    pub fn statistics(&self) -> LaneStatistics {
        let state = self.shared.state();
        LaneStatistics { queued_rows: state.policy.queued_rows(), ..state.statistics.clone() }
    }

    /// Run one request, in a batch with others where there are any. Dropping the future takes the
    /// request out of the queue. Returns the outputs with the request's own rows, and the time it
    /// was queued.
    pub async fn submit(
        &self,
        submission: Submission,
    ) -> Result<(Vec<NamedTensor>, Duration), SubmitError> {
        let (inputs, rows) = self.info.arrange(submission.inputs)?;
        let max = self.config.max_batch_size;
        if rows > max {
            return Err(SubmitError::TooManyRows { rows, max });
        }
        let shape_key = shape_key(&inputs);
        let (reply, answer) = oneshot::channel();
        let queued_at = Instant::now();
        let job = Job { tenant: submission.tenant, inputs, rows, queued_at, reply };
        let deadline = submission.deadline.instant();
        self.enqueue(Entry { rows, shape_key, deadline, item: job })?;
        let (outputs, queued) = answer.await.map_err(|_| SubmitError::Closed)??;
        let named = self.info.outputs.iter().zip(outputs);
        let named = named.map(|(info, tensor)| NamedTensor { name: info.name.clone(), tensor });
        Ok((named.collect(), queued))
    }

    fn enqueue(&self, entry: Entry<Job>) -> Result<(), SubmitError> {
        let mut state = self.shared.state();
        if state.policy.push(entry).is_err() {
            state.statistics.refused += 1;
            let (queued, max) = (state.policy.queued_rows(), self.config.max_queue_size);
            return Err(SubmitError::QueueFull { queued, max });
        }
        let short = state.batch_time.is_some_and(|time| time < LEADER_BATCH_TIME_MAX);
        if short && !state.idle.is_empty() {
            drop(state);
            worker::lead(&self.shared);
        } else {
            self.shared.wake_worker(&state);
        }
        Ok(())
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        self.shared.work.notify_all();
    }
}

/// Equal for inputs that can share a batch: the dtypes are the model's, so what may differ is the
/// dimensions after the first.
fn shape_key(inputs: &[Tensor]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for input in inputs {
        input.shape().get(1..).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
