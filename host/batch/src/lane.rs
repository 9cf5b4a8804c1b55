//! A lane: where requests for one model version queue up.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{
    BufferPool, Deadline, ErrorCode, InputError, Model, ModelInfo, Name, NamedTensor,
};
use smallvec::SmallVec;

use crate::batch::Batch;
use crate::config::{LaneConfig, TimeoutAction};
use crate::gather::Gather;
use crate::parts::{Part, Parts, joined, shape_key, split};
use crate::policy::{Entry, Full, Policy, Size};
use crate::running::{Instance, Running};
use crate::service_time::ServiceTime;
use crate::statistics::{LaneStatistics, Pending};
use crate::ticket::{Reply, Served, Waiting, ticket};
use crate::watch::{Upkeep, watch};
use crate::worker;

/// One request for a lane.
#[derive(Debug)]
pub struct Submission {
    pub tenant: Name,
    /// The tenant's share of contended batches, against the weights of others; at least 1.
    pub weight: u32,
    /// Priority level, 1 being served first; the lane's default where there is none or no such level.
    pub priority: Option<u32>,
    /// How long it may be queued, where the level lets requests say so.
    pub timeout: Option<Duration>,
    pub inputs: Vec<NamedTensor>,
    /// When the request reached the host: what its duration is counted from.
    pub arrived: Instant,
    pub deadline: Deadline,
}

/// What a request got.
#[derive(Debug)]
pub struct Answered {
    /// In the model's order, with the request's own rows.
    pub outputs: Vec<NamedTensor>,
    /// How long it was queued.
    pub queued: Duration,
    /// What ran it, where the model has several things that can.
    pub provider: Option<&'static str>,
}

/// Why a request got no outputs.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("request has {rows} rows, the model's queue holds {max} of a tenant")]
    TooManyRows { rows: usize, max: usize },
    #[error("{0}")]
    QueueFull(#[from] Full),
    #[error("the model is too busy to answer in time: expected in {} ms", .expected.as_millis())]
    TooBusy { expected: Duration },
    #[error("the deadline passed while the request was queued")]
    Expired,
    #[error("model failed: {0}")]
    Failed(String),
    #[error("the model did not answer in time, its run was given up")]
    GivenUp,
    #[error("the model is out of service: {0}")]
    OutOfService(Arc<str>),
    #[error("the model is being unloaded")]
    Closed,
}

impl SubmitError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Input(_) => ErrorCode::InvalidRequest,
            Self::TooManyRows { .. } => ErrorCode::Unprocessable,
            Self::QueueFull(_) => ErrorCode::QueueFull,
            Self::TooBusy { .. } => ErrorCode::Overloaded,
            Self::Expired | Self::GivenUp => ErrorCode::DeadlineExceeded,
            Self::Failed(_) => ErrorCode::ModelFailed,
            Self::Closed | Self::OutOfService(_) => ErrorCode::Unavailable,
        }
    }
}

pub(crate) struct Job {
    pub(crate) inputs: Vec<NamedTensor>,
    pub(crate) reply: Reply,
}

pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    pub(crate) pool: BufferPool,
    pub(crate) max_batch_size: usize,
    pub(crate) instances: usize,
    /// Whether submitting tasks may run short batches themselves.
    pub(crate) leads: bool,
    /// How long after it was told to end a run is lost.
    pub(crate) lost_after: Duration,
    pub(crate) upkeep: Upkeep,
    state: Mutex<State>,
    /// Of its own, so that counting a batch waits for nobody. Taken alone, or after `state`.
    statistics: Mutex<LaneStatistics>,
    /// Signalled when there may be work for a waiting worker.
    pub(crate) work: Condvar,
    /// Signalled when an instance is free for a staged batch.
    pub(crate) freed: Condvar,
    /// Signalled when a run begins that nobody watches, and when the lane is closed.
    pub(crate) begun: Condvar,
}

pub(crate) struct State {
    pub(crate) policy: Policy<Job>,
    pub(crate) service: ServiceTime,
    pub(crate) gather: Gather,
    /// Instances that run nothing just now. Whoever takes one, worker or leader, puts it back.
    pub(crate) idle: Vec<Instance>,
    pub(crate) running: Running,
    /// Whether the watching thread waits for a run to begin.
    pub(crate) unwatched: bool,
    /// Workers beyond those that are needed: lost ones that came back.
    pub(crate) surplus_workers: usize,
    /// Why nothing is taken any more, where that is so.
    pub(crate) refused: Option<Arc<str>>,
    /// Whether that is for lost runs, and over when one of them ends.
    pub(crate) has_lost_too_many: bool,
    /// How long it takes to copy a batch together, recency-weighted.
    pub(crate) staging_time: Duration,
    /// Batches taken early, being staged or waiting for an instance.
    pub(crate) staged: usize,
    /// Batches that ran and are to be answered by whoever is free.
    pub(crate) ran: Vec<Batch>,
    /// Until when a worker waits at most.
    pub(crate) timed: Option<Instant>,
    pub(crate) swept_at: Option<Instant>,
    /// Requests given up since what nobody waits for was last taken out of the queue.
    pub(crate) given_up: usize,
    pub(crate) closed: bool,
    pub(crate) waiting_workers: usize,
    /// Of those, how many were woken and are on their way.
    pub(crate) woken_workers: usize,
    /// Emptied batches, kept for their allocations.
    pub(crate) spare: Vec<Batch>,
}

impl Shared {
    /// Wake a worker, if one waits, where a batch can be run or staged.
    pub(crate) fn wake_worker(&self, state: &mut State, now: Instant) {
        if state.has_waiting_worker() && worker::has_work(self, state, now) {
            self.wake_any(state);
        }
    }

    /// Wake a worker, if one waits.
    pub(crate) fn wake_any(&self, state: &mut State) {
        if state.has_waiting_worker() {
            state.woken_workers += 1;
            self.work.notify_one();
        }
    }

    /// Take out of the queue what nobody waits for, which costs time for each request in it.
    fn sweep(&self, state: &mut State, now: Instant) {
        (state.swept_at, state.given_up) = (Some(now), 0);
        let expired = state.policy.sweep(now, |job| job.reply.is_gone());
        self.statistics().expired += expired.len() as u64;
        for entry in expired {
            entry.item.reply.answer(Err(SubmitError::Expired));
        }
    }

    pub(crate) fn statistics(&self) -> MutexGuard<'_, LaneStatistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a worker waits that nobody has woken yet.
    pub(crate) fn has_waiting_worker(&self) -> bool {
        self.waiting_workers > self.woken_workers
    }
}

/// The queue and the worker threads of one model version, with the settings that apply to requests
/// which are submitted through it. When the last lane over a queue is dropped, the workers finish
/// what is queued and end.
pub struct Lane {
    info: ModelInfo,
    config: LaneConfig,
    shared: Arc<Shared>,
    /// Held by all lanes over the same queue.
    closing: Arc<Closing>,
}

/// Closes the queue when it is dropped.
struct Closing(Arc<Shared>);

/// What a lane is made of.
pub struct LaneParts<'a> {
    /// The model's, for people.
    pub name: &'a str,
    pub info: ModelInfo,
    pub instances: Vec<Box<dyn Model>>,
    pub config: LaneConfig,
    /// What batches are copied together in.
    pub pool: BufferPool,
    pub upkeep: Upkeep,
}

/// A request at the lane's door.
struct Arrival<'a> {
    submission: &'a Submission,
    level: usize,
    /// How long it may be queued.
    timeout: Option<Duration>,
    /// Of all its parts.
    size: Size,
    at: Instant,
}

/// A request in the queue.
struct Queued<'a> {
    shared: &'a Shared,
    waiting: SmallVec<[Waiting; 1]>,
    /// Whether the submitting task lets others go first and then leads.
    gathers: bool,
    answered: bool,
}

/// Given up or failed: what nobody waits for leaves the queue, once it is enough of it to be worth looking
/// for, and a worker takes over where the submitting task was to lead.
impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        self.waiting.clear();
        let (mut state, now) = (self.shared.state(), Instant::now());
        state.given_up += 1;
        if state.given_up * GIVEN_UP_SHARE >= state.policy.queued_requests() {
            self.shared.sweep(&mut state, now);
        }
        self.shared.wake_worker(&mut state, now);
    }
}

/// How often a full queue is searched for requests that nobody waits for.
const SWEEP_INTERVAL: Duration = Duration::from_millis(10);

/// One in so many of the requests queued may be given up, and still count, before the queue is searched.
const GIVEN_UP_SHARE: usize = 8;

impl Lane {
    /// A lane over `instances`. There is one worker thread more than instances, so that one batch is
    /// answered and the next one staged while an instance runs.
    pub fn new(
        name: &str,
        info: ModelInfo,
        instances: Vec<Box<dyn Model>>,
        config: LaneConfig,
        pool: BufferPool,
    ) -> std::io::Result<Self> {
        Self::open(LaneParts { name, info, instances, config, pool, upkeep: Upkeep::default() })
    }

    /// The same, with its upkeep.
    pub fn open(parts: LaneParts<'_>) -> std::io::Result<Self> {
        let LaneParts { name, info, instances, mut config, pool, upkeep } = parts;
        if !info.rows_are_dynamic() {
            // A request is a whole batch, whatever its dimension 0.
            config.max_batch_size = 1;
            config.preferred_batch_sizes.clear();
        }
        let count = instances.len();
        let state = State {
            policy: Policy::new(config.clone()),
            service: ServiceTime::default(),
            gather: Gather::default(),
            idle: instances.into_iter().map(Instance::new).collect(),
            running: Running::default(),
            unwatched: false,
            surplus_workers: 0,
            refused: None,
            has_lost_too_many: false,
            staging_time: Duration::ZERO,
            staged: 0,
            ran: Vec::new(),
            timed: None,
            swept_at: None,
            given_up: 0,
            closed: false,
            waiting_workers: 0,
            woken_workers: 0,
            spare: Vec::new(),
        };
        let shared = Arc::new(Shared {
            name: name.into(),
            pool,
            max_batch_size: config.max_batch_size,
            instances: count,
            leads: config.leads,
            lost_after: config.lost_after,
            upkeep,
            state: Mutex::new(state),
            statistics: Mutex::default(),
            work: Condvar::new(),
            freed: Condvar::new(),
            begun: Condvar::new(),
        });
        let closing = Arc::new(Closing(shared.clone()));
        let lane = Self { info, config, shared, closing };
        for _ in 0..=count {
            worker::spawn(&lane.shared)?;
        }
        let shared = lane.shared.clone();
        let watching = std::thread::Builder::new().name(format!("watch-{name}"));
        watching.spawn(move || watch(&shared))?;
        Ok(lane)
    }

    /// A lane with other settings over the same queue, instances and counters. The queue follows them
    /// once they are [put in force](Self::put_in_force). Three settings stay as they are, because
    /// queued requests or the instances depend on them: `max_batch_size`, `leads` and `lost_after`.
    pub fn with_config(&self, mut config: LaneConfig) -> Self {
        let LaneConfig { max_batch_size, leads, lost_after, .. } = self.config;
        config.preferred_batch_sizes.retain(|size| *size <= max_batch_size);
        if !self.info.rows_are_dynamic() {
            config.preferred_batch_sizes.clear();
        }
        let config = LaneConfig { max_batch_size, leads, lost_after, ..config };
        let (shared, closing) = (self.shared.clone(), self.closing.clone());
        Self { info: self.info.clone(), config, shared, closing }
    }

    /// Let the queue follow this lane's settings, also for the requests that are queued already. A
    /// request that was queued with a timeout keeps it.
    pub fn put_in_force(&self) {
        let mut state = self.shared.state();
        if state.policy.configure(&self.config, Instant::now()) {
            drop(state);
            // A batch may be due earlier now.
            self.shared.work.notify_all();
        }
    }

    /// The model's inputs and outputs.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// How batches are formed.
    pub fn config(&self) -> &LaneConfig {
        &self.config
    }

    /// How many batches can run at the same time.
    pub fn instances(&self) -> usize {
        self.shared.instances
    }

    /// Why the lane takes no requests, where that is so.
    pub fn refusal(&self) -> Option<Arc<str>> {
        self.shared.state().refused.clone()
    }

    /// The counters now.
    pub fn statistics(&self) -> LaneStatistics {
        let state = self.shared.state();
        let (queued_rows, running) = (state.policy.queued_rows(), state.running.len());
        let service_time = state.service.line();
        drop(state);
        let counted = self.shared.statistics().clone();
        LaneStatistics { queued_rows, running, service_time, ..counted }
    }

    /// Run one request, in a batch with others where there are any; one with more rows than a batch
    /// holds runs in several. Dropping the future takes the request out of the queue.
    pub async fn submit(&self, mut submission: Submission) -> Result<Answered, SubmitError> {
        let inputs = std::mem::take(&mut submission.inputs);
        let pending = Pending::new(&self.shared, &submission.tenant, submission.arrived);
        let served = self.serve(&submission, inputs).await?;
        pending.succeeded(&served);
        let Served { outputs, queued, provider, .. } = served;
        let named = self.info.outputs.iter().zip(outputs);
        let named = named.map(|(info, tensor)| NamedTensor { name: info.name.clone(), tensor });
        Ok(Answered { outputs: named.collect(), queued, provider })
    }

    async fn serve(
        &self,
        submission: &Submission,
        mut inputs: Vec<NamedTensor>,
    ) -> Result<Served, SubmitError> {
        let level = self.level(submission.priority);
        let rows = self.info.arrange(&mut inputs)?;
        // Before anything is done for each row: rows of no bytes cost whoever names them nothing.
        let max = self.config.queue.rows.min(self.config.tenant_queue.rows);
        if rows > max {
            return Err(SubmitError::TooManyRows { rows, max });
        }
        let timeout = self.timeout(level, submission);
        let size =
            Size { rows, bytes: NamedTensor::bytes_of(&inputs), shape_key: shape_key(&inputs) };
        let arrival = Arrival { submission, level, timeout, size, at: Instant::now() };
        let parts = split(inputs, rows, self.config.max_batch_size)?;
        // What overstays in a level that delays waits on.
        let rejects = self.config.levels[level].timeout_action == TimeoutAction::Reject;
        let until =
            timeout.filter(|_| rejects).map(|timeout| tokio::time::Instant::now() + timeout);
        let mut answers = SmallVec::<[Served; 1]>::new();
        let mut queued = self.enqueue(&arrival, parts)?;
        if queued.gathers {
            tokio::task::yield_now().await;
            // By another one who leads, if it was.
            if !queued.waiting[0].is_answered() {
                worker::lead(&self.shared);
            }
        }
        for part in queued.waiting.drain(..) {
            answers.push(self.wait(part, until).await?);
        }
        queued.answered = true;
        joined(answers, self.info.outputs.len(), &self.shared.pool)
    }

    fn level(&self, priority: Option<u32>) -> usize {
        match priority.unwrap_or(0) as usize {
            given if (1..=self.config.levels.len()).contains(&given) => given - 1,
            _ => self.config.default_level,
        }
    }

    /// The answer; or, where no batch has the request by `until`, that it was queued for too long.
    async fn wait(
        &self,
        mut waiting: Waiting,
        until: Option<tokio::time::Instant>,
    ) -> Result<Served, SubmitError> {
        if let Some(until) = until {
            match tokio::time::timeout_at(until, &mut waiting).await {
                Ok(answer) => return answer,
                Err(_) if waiting.withdraw() => {
                    self.shared.statistics().expired += 1;
                    return Err(SubmitError::Expired);
                }
                // A batch has it already.
                Err(_) => {}
            }
        }
        waiting.await
    }

    /// How long a request may be queued.
    fn timeout(&self, level: usize, submission: &Submission) -> Option<Duration> {
        let policy = &self.config.levels[level];
        let own = submission.timeout.filter(|_| policy.allow_timeout_override);
        match (policy.timeout, own) {
            (Some(default), Some(own)) => Some(default.min(own)),
            (default, own) => own.or(default),
        }
    }

    /// Queue all parts of a request, or none; run them where that is quick and nobody is expected to join.
    fn enqueue(&self, arrival: &Arrival<'_>, parts: Parts) -> Result<Queued<'_>, SubmitError> {
        let Arrival { submission, level, timeout, size, at } = *arrival;
        let mut state = self.shared.state();
        if let Some(why) = &state.refused {
            return Err(SubmitError::OutOfService(why.clone()));
        }
        self.admit(&mut state, arrival)?;
        let mut waiting = SmallVec::with_capacity(parts.len());
        for Part { inputs, rows } in parts {
            let (reply, wait) = ticket();
            state.policy.push(Entry {
                tenant: submission.tenant.clone(),
                weight: submission.weight,
                level,
                rows,
                bytes: NamedTensor::bytes_of(&inputs),
                shape_key: size.shape_key,
                arrived: at,
                deadline: submission.deadline.instant(),
                timeout: timeout.map(|timeout| at + timeout),
                item: Job { inputs, reply },
            });
            waiting.push(wait);
        }
        let mut queued = Queued { shared: &self.shared, waiting, gathers: false, answered: false };
        if !worker::may_lead(&self.shared, &state) {
            self.shared.wake_worker(&mut state, at);
            return Ok(queued);
        }
        queued.gathers = state.gather.hopes(at);
        drop(state);
        if !queued.gathers {
            worker::lead(&self.shared);
        }
        Ok(queued)
    }

    /// Whether the request may wait, and can be answered in time.
    fn admit(&self, state: &mut State, arrival: &Arrival<'_>) -> Result<(), SubmitError> {
        let mut admitted = self.check(state, arrival);
        let may_sweep = state.swept_at.is_none_or(|at| arrival.at - at >= SWEEP_INTERVAL);
        if admitted.is_err() && may_sweep {
            self.shared.sweep(state, arrival.at);
            admitted = self.check(state, arrival);
        }
        match &admitted {
            Err(SubmitError::TooBusy { .. }) => self.shared.statistics().refused_early += 1,
            Err(_) => self.shared.statistics().refused += 1,
            Ok(()) => {}
        }
        admitted
    }

    fn check(&self, state: &State, arrival: &Arrival<'_>) -> Result<(), SubmitError> {
        let Arrival { submission, level, size, at, .. } = arrival;
        state.policy.admits(&submission.tenant, *level, size)?;
        match self.expected(state, arrival) {
            Some(expected) if *at + expected > submission.deadline.instant() => {
                Err(SubmitError::TooBusy { expected })
            }
            _ => Ok(()),
        }
    }

    /// When a request that arrives now is expected to be answered; none before anything was learned, and
    /// where it would be served at once: then it is worth trying, whatever was learned.
    fn expected(&self, state: &State, arrival: &Arrival<'_>) -> Option<Duration> {
        let Arrival { submission, level, size: Size { rows, .. }, at, .. } = *arrival;
        let max = self.config.max_batch_size;
        let until_idle = match state.running.first_end() {
            Some(end) if state.idle.is_empty() => end.saturating_duration_since(at),
            _ => Duration::ZERO,
        };
        let ahead = state.policy.rows_ahead(&submission.tenant, submission.weight, level);
        let ahead = ahead + state.staged * max;
        if ahead == 0 && !state.idle.is_empty() {
            return None;
        }
        let batches = (ahead + rows).div_ceil(max).saturating_sub(1);
        let full = state.service.of(max)?.mul_f64(batches as f64 / self.shared.instances as f64);
        let last = state.service.of((ahead + rows - 1) % max + 1)?;
        Some(until_idle + full + last)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let Self(shared) = self;
        let mut state = shared.state();
        state.closed = true;
        state.policy.close();
        drop(state);
        shared.work.notify_all();
        shared.begun.notify_all();
    }
}

#[cfg(test)]
mod tests;
