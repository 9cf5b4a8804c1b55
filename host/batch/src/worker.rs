//! Running batches: by worker threads, or by the submitting task where batches are short.
//!
//! A worker runs batch after batch for as long as there is one. While an instance is busy, other
//! workers answer the batch before and, where batches are long, stage the one after.
//!
//! Invariants: an instance runs on one thread at a time and is put back by whoever took it, but for one
//! that was given up meanwhile; one request's failure is not another's.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::SubmitError;
use crate::batch::{Batch, Ran};
use crate::lane::{Shared, State};
use crate::policy::Due;
use crate::running::{Begun, Instance};

/// Batches shorter than this are run by the task that submits, if an instance is idle: handing them
/// to a worker and back would cost as much again. Far below what would hold up a runtime thread.
const LEADER_BATCH_TIME_MAX: Duration = Duration::from_micros(100);

/// How many batches a leader runs before it leaves the rest to a worker.
pub(crate) const LEADER_BATCHES_MAX: usize = 4;

/// Batches that take this long to be copied together are staged while the one before runs, if they are
/// full: that takes nothing from those that could still join.
const STAGING_TIME_MIN: Duration = Duration::from_micros(100);

/// Batches shorter than this are answered by who ran them: waking another worker costs as much.
const HANDED_OVER_TIME_MIN: Duration = Duration::from_millis(1);

/// Emptied batches that are kept.
const SPARE_MAX: usize = 8;

/// A batch and the instance to run it on.
struct Turn {
    batch: Batch,
    instance: Instance,
    /// As of [`Running`](crate::running::Running).
    run: u64,
    /// Whether a submitting task runs it.
    led: bool,
}

/// Start a worker.
pub(crate) fn spawn(shared: &Arc<Shared>) -> std::io::Result<()> {
    let own = shared.clone();
    let worker = std::thread::Builder::new().name(format!("model-{}", shared.name));
    worker.spawn(move || run(&own)).map(drop)
}

/// A worker: run, answer and stage batches until the lane is closed and its queue empty.
fn run(shared: &Shared) {
    let mut state = shared.state();
    loop {
        if state.surplus_workers > 0 {
            state.surplus_workers -= 1;
            shared.wake_worker(&mut state, Instant::now());
            return;
        }
        if let Some(mut batch) = state.ran.pop() {
            drop(state);
            batch.answer();
            state = shared.state();
            keep(&mut state, batch);
        } else if let Some(turn) = begin(shared, &mut state, false) {
            drop(state);
            state = play(shared, turn);
        } else if may_stage(shared, &state) {
            state = stage_ahead(shared, state);
        } else if state.closed && state.policy.queued_rows() == 0 {
            // Others may be waiting for what this one just took.
            shared.work.notify_all();
            return;
        } else {
            state = wait(shared, state);
        }
    }
}

/// When a worker could run or stage a batch, if at all as things are; `spoken_for` instances are others'.
fn work_at(shared: &Shared, state: &State, spoken_for: usize, now: Instant) -> Option<Instant> {
    let free = state.idle.len() > state.staged + spoken_for;
    match state.policy.due(now) {
        Due::Now if free => Some(now),
        Due::At(at) if free => Some(at),
        _ => stage_at(shared, state, now),
    }
}

/// Whether another worker has something to do, or has to wait for it.
pub(crate) fn has_work(shared: &Shared, state: &State, now: Instant) -> bool {
    // Whoever was woken takes an instance, too.
    let at = work_at(shared, state, state.woken_workers, now);
    at.is_some_and(|at| at <= now || state.timed.is_none_or(|timed| at < timed))
}

/// Whether a submitting task may run what is queued itself.
pub(crate) fn may_lead(shared: &Shared, state: &State) -> bool {
    let rows = state.policy.queued_rows().min(shared.max_batch_size);
    shared.leads
        && state.idle.len() > state.staged
        && state.service.of(rows).is_some_and(|time| time < LEADER_BATCH_TIME_MAX)
}

/// A leader: the submitting task runs what is queued itself, its own request among it, for as long
/// as that is short; what then is left goes to a worker.
pub(crate) fn lead(shared: &Shared) {
    let mut state = shared.state();
    for _ in 0..LEADER_BATCHES_MAX {
        if !may_lead(shared, &state) {
            break;
        }
        let Some(turn) = begin(shared, &mut state, true) else { break };
        drop(state);
        state = turn.run(shared).answer(shared);
    }
    shared.wake_worker(&mut state, Instant::now());
}

/// Run a batch, and the next ones for as long as there are any and somebody else to answer.
///
/// Where those who are answered may be back in time for the next batch, answering goes first
/// (`policy::linger`).
fn play(shared: &Shared, mut turn: Turn) -> MutexGuard<'_, State> {
    loop {
        let mut finished = turn.run(shared);
        if finished.is_short() {
            return finished.answer(shared);
        }
        let mut state = shared.state();
        finished.settle(&mut state);
        if finished.lingers || !state.has_waiting_worker() {
            drop(state);
            return finished.answer(shared);
        }
        put_back(shared, &mut state, finished.returned);
        state.ran.push(finished.batch);
        shared.wake_any(&mut state);
        match begin(shared, &mut state, false) {
            Some(next) => {
                drop(state);
                turn = next;
            }
            None => return state,
        }
    }
}

/// The instance of a run that is over.
struct Returned {
    instance: Instance,
    run: u64,
    led: bool,
}

fn put_back(shared: &Shared, state: &mut State, returned: Returned) {
    let Returned { instance, run, led } = returned;
    if state.running.end(run) {
        state.idle.push(instance);
        if state.staged > 0 {
            shared.freed.notify_one();
        }
    } else {
        shared.upkeep.lost_runs.fetch_sub(1, Ordering::Relaxed);
        state.surplus_workers += usize::from(!led);
        tracing::warn!(model = &*shared.name, "a run that was lost has ended after all");
        if std::mem::take(&mut state.has_lost_too_many) {
            // Nothing took its place: the model serves again.
            state.refused = None;
            state.idle.push(instance);
            shared.freed.notify_all();
            return;
        }
        // Its place is taken, and letting go of it takes long: not under the lane's lock.
        let _ = std::thread::Builder::new().spawn(move || drop(instance));
    }
}

/// The next batch with an idle instance for it; none where either is missing.
fn begin(shared: &Shared, state: &mut State, led: bool) -> Option<Turn> {
    let now = Instant::now();
    if state.idle.len() <= state.staged || state.policy.due(now) != Due::Now {
        return None;
    }
    let batch = take(shared, state, now)?;
    let instance = state.idle.pop()?;
    state.gather.taken(batch.requests().len());
    let mut turn = Turn { batch, instance, run: 0, led };
    turn.begin(shared, state, now);
    // Whoever queued that woke one worker only.
    shared.wake_worker(state, now);
    Some(turn)
}

/// Answer all that is queued: nothing is run any more.
pub(crate) fn refuse_queued(shared: &Shared, state: &mut State) {
    let Some(why) = state.refused.clone() else { return };
    while let Some(mut batch) = take(shared, state, Instant::now()) {
        batch.refuse(&why);
        keep(state, batch);
    }
}

/// A batch off the queue; what came too late for it is told.
fn take(shared: &Shared, state: &mut State, now: Instant) -> Option<Batch> {
    let mut batch = state.spare.pop().unwrap_or_default();
    let State { policy, service, .. } = state;
    policy.take(now, service, |job| job.reply.is_gone(), &mut batch.taken);
    if !batch.taken.expired.is_empty() {
        shared.statistics().expired += batch.taken.expired.len() as u64;
    }
    for entry in batch.taken.expired.drain(..) {
        entry.item.reply.answer(Err(SubmitError::Expired));
    }
    if batch.taken.batch.is_empty() {
        state.spare.push(batch);
        return None;
    }
    Some(batch)
}

/// When to take the next batch although no instance is idle, if at all: it is full, and copying it
/// together takes long enough. Not before it has to be, so that it can still take in who comes late.
fn stage_at(shared: &Shared, state: &State, now: Instant) -> Option<Instant> {
    let worth_it = state.staged < shared.instances
        && state.idle.is_empty()
        && state.staging_time >= STAGING_TIME_MIN
        && state.policy.queued_rows() >= shared.max_batch_size
        && state.policy.has_full_batch(now);
    let end = state.running.first_end().filter(|_| worth_it)?;
    end.checked_sub(state.staging_time * 2)
}

fn may_stage(shared: &Shared, state: &State) -> bool {
    let now = Instant::now();
    stage_at(shared, state, now).is_some_and(|at| at <= now)
}

/// Take and stage the next batch, wait for an instance, run it.
fn stage_ahead<'a>(shared: &'a Shared, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    let Some(mut batch) = take(shared, &mut state, Instant::now()) else { return state };
    state.staged += 1;
    drop(state);
    batch.stage(&shared.pool);
    state = shared.state();
    let instance = loop {
        match (state.idle.pop(), &state.refused) {
            (Some(instance), None) => break instance,
            (idle, Some(why)) => {
                batch.refuse(why);
                state.idle.extend(idle);
                state.staged -= 1;
                keep(&mut state, batch);
                return state;
            }
            (None, None) => {
                state = shared.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    };
    state.staged -= 1;
    let mut turn = Turn { batch, instance, run: 0, led: false };
    turn.begin(shared, &mut state, Instant::now());
    drop(state);
    play(shared, turn)
}

/// Wait until there may be something to do.
fn wait<'a>(shared: &'a Shared, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    let now = Instant::now();
    let next = work_at(shared, &state, 0, now);
    if next.is_some_and(|at| at <= now) {
        // Since it was last looked at.
        return state;
    }
    state.waiting_workers += 1;
    state = match next {
        Some(at) => {
            state.timed = Some(state.timed.map_or(at, |timed| timed.min(at)));
            let waited = shared.work.wait_timeout(state, at.saturating_duration_since(now));
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.timed = None;
            state
        }
        None => shared.work.wait(state).unwrap_or_else(PoisonError::into_inner),
    };
    state.waiting_workers -= 1;
    state.woken_workers = state.woken_workers.saturating_sub(1);
    state
}

/// A batch that ran and is not answered yet, and its instance, not put back yet.
struct Finished {
    batch: Batch,
    rows: usize,
    returned: Returned,
    /// What is to be learned of it; none where it is, or nothing ran.
    ran: Option<Ran>,
    /// Whether the instance waits for those who are answered, as decided when it was learned from.
    lingers: bool,
}

impl Turn {
    /// List the run, which begins now.
    fn begin(&mut self, shared: &Shared, state: &mut State, now: Instant) {
        let Self { batch, instance, led, .. } = self;
        let until = now + state.service.of(batch.rows()).unwrap_or_default();
        let give_up_at = batch.last_deadline().unwrap_or(now) + state.policy.run_grace();
        if std::mem::take(&mut state.unwatched) {
            shared.begun.notify_one();
        }
        self.run = state.running.begin(Begun { until, give_up_at, led: *led, instance });
    }

    fn run(self, shared: &Shared) -> Finished {
        let Self { mut batch, mut instance, run, led } = self;
        let ran = batch.run(&mut instance, &shared.pool);
        if let Some(ran) = &ran {
            // Counted before it is answered: whoever sees its answer sees it counted, too.
            shared.statistics().count(&batch, ran);
        }
        let returned = Returned { instance, run, led };
        Finished { rows: batch.rows(), batch, returned, ran, lingers: false }
    }
}

impl Finished {
    fn is_short(&self) -> bool {
        self.ran.as_ref().is_none_or(|ran| ran.times.total() < HANDED_OVER_TIME_MIN)
    }

    /// Learn from the run, once.
    fn settle(&mut self, state: &mut State) {
        let Some(ran) = self.ran.take() else { return };
        if ran.failed == 0 {
            state.service.observe(self.rows, ran.times.total());
        }
        if ran.requests > 1 {
            state.staging_time = (state.staging_time * 7 + ran.staging_time) / 8;
        }
        let State { policy, service, idle, .. } = state;
        self.lingers = idle.is_empty() && policy.hopes_after(self.rows, service);
    }

    /// Answer, then put the instance back. Where batches are short this is the one time that the lock
    /// is taken for a batch: submitters hold it often.
    fn answer(mut self, shared: &Shared) -> MutexGuard<'_, State> {
        self.batch.answer();
        let mut state = shared.state();
        self.settle(&mut state);
        if self.lingers {
            let State { policy, service, .. } = &mut *state;
            policy.linger(Instant::now(), self.rows, service);
        }
        put_back(shared, &mut state, self.returned);
        keep(&mut state, self.batch);
        state
    }
}

/// Keep an emptied batch for its allocations.
fn keep(state: &mut State, batch: Batch) {
    if state.spare.len() < SPARE_MAX {
        state.spare.push(batch);
    }
}
