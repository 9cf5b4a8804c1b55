//! A lane: the queue and the instances of one model version. The public interface of this crate.

use std::sync::Arc;

use gristmill_core::{
    BufferPool, Model, ModelInfo, Name, NamedTensor, Padding, Receipt, Tensor, rows_of,
};
use smallvec::SmallVec;

use crate::config::LaneConfig;
use crate::error::SubmitError;
use crate::leader::lead;
use crate::pending::Pending;
use crate::policy::Size;
use crate::queue_timeout::{answer_of, expires_at, timeout_of};
use crate::ragged;
use crate::split::{RequestPart, RequestParts, joined};
use crate::state::{Arrival, LaneShared, SharedParts};
use crate::statistics::LaneStatistics;
use crate::submission::{Answered, LAST_PRIORITY, Submission};
use crate::sync::now;
use crate::ticket::PendingReply;
use crate::upkeep::{Refusal, Upkeep};
use crate::{watch, worker};

/// The queue and the worker threads of one model version, with settings for the requests that are
/// submitted through it. When the last lane over a queue is dropped, the workers finish the
/// requests that are queued, and end.
pub struct Lane {
    info: ModelInfo,
    config: LaneConfig,
    shared: Arc<LaneShared>,
    /// Held by all lanes over the same queue.
    closing: Arc<Closing>,
}

/// Closes the queue when it is dropped.
struct Closing(Arc<LaneShared>);

/// The parts of a lane.
pub struct LaneParts<'a> {
    /// The model's name, for the log.
    pub name: &'a str,
    /// The model's inputs and outputs.
    pub info: ModelInfo,
    /// The instances. Each runs one batch at a time.
    pub instances: Vec<Box<dyn Model>>,
    /// How batches are formed.
    pub config: LaneConfig,
    /// Memory in which batches are copied together.
    pub pool: BufferPool,
}

/// A request in the queue, in one or more parts.
struct QueuedRequest<'a> {
    shared: &'a LaneShared,
    /// Its parts, in order.
    waiting: SmallVec<[PendingReply; 1]>,
    /// The answers to the first of them.
    answers: SmallVec<[Answered; 1]>,
    receipt: Option<&'a Receipt>,
    /// Whether the submitting task lets others go first and then leads.
    gathers: bool,
    is_answered: bool,
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            if let Some(late) = self.receipt.map(|receipt| receipt.late(&self.shared.name)) {
                self.answers.iter().for_each(|answer| late.ran(answer.used));
                self.waiting.iter().for_each(|part| part.leave(late.clone()));
            }
            self.waiting.clear();
            self.shared.lock().forget_dropped(now());
        }
    }
}

impl Lane {
    /// A lane made of `parts`, with no upkeep. There is one worker thread more than instances.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn new(parts: LaneParts<'_>) -> std::io::Result<Self> {
        Self::with_upkeep(parts, Upkeep::default())
    }

    /// A lane made of `parts`. `upkeep` replaces instances whose runs do not end.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn with_upkeep(parts: LaneParts<'_>, upkeep: Upkeep) -> std::io::Result<Self> {
        let LaneParts { name, info, instances, mut config, pool } = parts;
        if !info.forms_batches {
            // Each request is a batch of its own. Its dimension 0 may have any size.
            config.max_batch_size = 1;
            config.preferred_batch_sizes.clear();
            config.padding = Padding::default();
        }
        // The size of texts is not bounded, so padding would not be, either.
        if !info.forms_batches || info.has_texts() {
            config.allowed_batch_sizes.clear();
        }
        let parts = SharedParts { name, instances, config: &config, pool, upkeep };
        let shared = Arc::new(LaneShared::new(parts));
        let closing = Arc::new(Closing(shared.clone()));
        let lane = Self { info, config, shared, closing };
        for _ in 0..=lane.shared.instances {
            worker::spawn(&lane.shared)?;
        }
        watch::spawn(&lane.shared)?;
        Ok(lane)
    }

    /// A lane with other settings over the same queue, instances and counters. The queue follows
    /// them once they are [put in force](Self::put_in_force). Six settings stay as they are,
    /// because queued requests or the instances depend on them: `max_batch_size`,
    /// `allowed_batch_sizes`, `padding`, `rows_are_declared`, `leads` and `lost_after`.
    pub fn with_config(&self, mut config: LaneConfig) -> Self {
        let LaneConfig { max_batch_size, rows_are_declared, leads, lost_after, .. } = self.config;
        let LaneConfig { allowed_batch_sizes, padding, .. } = self.config.clone();
        config.preferred_batch_sizes.retain(|size| *size <= max_batch_size);
        if !self.info.forms_batches {
            config.preferred_batch_sizes.clear();
        }
        let config = LaneConfig {
            max_batch_size,
            allowed_batch_sizes,
            padding,
            rows_are_declared,
            leads,
            lost_after,
            ..config
        };
        let (shared, closing) = (self.shared.clone(), self.closing.clone());
        Self { info: self.info.clone(), config, shared, closing }
    }

    /// Whether a lane [with these settings](Self::with_config) waits for all sizes that they
    /// prefer, if requests share batches. It does not wait for those over its maximum.
    pub fn can_prefer(&self, config: &LaneConfig) -> bool {
        let largest = config.preferred_batch_sizes.last().copied().unwrap_or(1);
        !self.forms_batches() || largest.min(config.queue.rows) <= self.config.max_batch_size
    }

    /// Let the queue follow this lane's settings, also for the requests that are queued already. A
    /// request that was queued with a timeout keeps it.
    pub fn put_in_force(&self) {
        self.shared.lock().configure(&self.config, now());
    }

    /// The model's inputs and outputs.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Whether requests share batches.
    pub fn forms_batches(&self) -> bool {
        self.info.forms_batches && !self.shared.sharing.has_ended()
    }

    /// Why requests do not share batches any more, if a run has shown that rows influence each
    /// other.
    pub fn batches_ended(&self) -> Option<Arc<str>> {
        self.shared.sharing.why_ended()
    }

    /// Why rows of different lengths do not share batches any more, if a run has shown that filling
    /// them up changes answers.
    pub fn padding_ended(&self) -> Option<Arc<str>> {
        self.shared.sharing.why_filling_ended()
    }

    /// How batches are formed.
    pub fn config(&self) -> &LaneConfig {
        &self.config
    }

    /// How many batches can run at the same time.
    pub fn instances(&self) -> usize {
        self.shared.instances
    }

    /// Why the lane refuses requests, if it does.
    pub fn refusal(&self) -> Option<Refusal> {
        self.shared.lock().refusal()
    }

    /// All figures since the lane was made. Costs time for each tenant, but no request waits for
    /// it.
    pub fn statistics(&self) -> LaneStatistics {
        self.shared.statistics()
    }

    /// Forget the figures and the shares of tenants that are not to be kept. A tenant with a queued
    /// request keeps its share until the next call. A tenant with a request under way is counted
    /// again when that request ends.
    pub fn retain_tenants(&self, keep: impl Fn(&Name) -> bool) {
        self.shared.retain_tenants(keep);
    }

    /// Run one request, in a batch with others if there are any. A request with more rows than a
    /// batch holds runs in several. Dropping the future takes the request out of the queue; what
    /// is in a batch already runs to its end, and is charged to the sinks of `receipt` then.
    ///
    /// # Errors
    /// Fails if the inputs do not fit the model, the queue has no room, the request could not be
    /// answered in time, the model failed, or the lane refuses requests.
    pub async fn submit(
        &self,
        mut submission: Submission,
        receipt: Option<&Receipt>,
    ) -> Result<Answered, SubmitError> {
        let inputs = std::mem::take(&mut submission.inputs);
        let pending = Pending::new(&self.shared.tally, &submission.tenant, submission.arrived);
        let answered = self.serve(&submission, inputs, receipt).await?;
        pending.succeeded(&answered);
        Ok(answered)
    }

    /// The outputs of an answer, with their names.
    pub fn named(&self, outputs: Vec<Tensor>) -> Vec<NamedTensor> {
        let named = self.info.outputs.iter().zip(outputs);
        named.map(|(info, tensor)| NamedTensor { name: info.name.clone(), tensor }).collect()
    }

    async fn serve(
        &self,
        submission: &Submission,
        mut inputs: Vec<NamedTensor>,
        receipt: Option<&Receipt>,
    ) -> Result<Answered, SubmitError> {
        self.info.arrange(&mut inputs)?;
        let optional = inputs.split_off(self.info.inputs.len());
        let rows = if self.forms_batches() { rows_of(&inputs)? } else { 1 };
        // Checked before any work for each row, because a client can send rows of 0 bytes at no
        // cost.
        let max = self.config.queue.rows.min(self.config.tenant_queue.rows);
        if rows > max {
            return Err(SubmitError::TooManyRows { rows, max });
        }
        let level = self.level(submission.priority);
        let policy = &self.config.levels[level];
        let timeout = timeout_of(policy, submission.timeout);
        let bytes = NamedTensor::bytes_of(&inputs) + NamedTensor::bytes_of(&optional);
        let keys = &self.shared.shape_keys;
        let apart = Some(&submission.tenant).filter(|_| submission.keeps_apart);
        // The proof of rows supposes that no dimension is empty.
        let is_empty = inputs.iter().any(|input| input.tensor.shape().contains(&0));
        let is_lone = !optional.is_empty() || is_empty;
        let unpadded = Padding::default();
        let padding = match self.shared.sharing.has_filling_ended() {
            true => &unpadded,
            false => &self.config.padding,
        };
        let is_whole = self.config.rows_are_declared || is_empty;
        let cut_at = if is_whole { rows } else { self.config.max_batch_size };
        let (whole, pool) = (RequestPart::new(inputs, optional, rows), &self.shared.stager.pool);
        let ragged = if is_whole { None } else { ragged::by_length(&whole, padding, pool) };
        let is_ragged = ragged.is_some();
        // Rows of one bucket are as long as the longest of them, so each part has one shape.
        let mut parts = ragged.unwrap_or_else(|| whole.into()).cut(cut_at)?;
        for part in &mut parts.list {
            part.shape_key = match is_lone {
                true => keys.lone(),
                false => keys.of(&part.inputs, padding, apart),
            };
        }
        let RequestParts { list: parts, places } = parts;
        let is_cut = parts.len() > 1;
        let shape_key = parts.first().map_or(0, |part| part.shape_key);
        let arrival = Arrival {
            tenant: &submission.tenant,
            weight: submission.weight,
            level,
            timeout,
            size: Size { rows, bytes, shape_key },
            at: now(),
            deadline: submission.deadline.instant(),
            receipt,
        };
        let expires_at = expires_at(policy, timeout);
        let mut queued = self.enqueue(&arrival, parts, submission.more_follow)?;
        if queued.gathers {
            tokio::task::yield_now().await;
            // If it was answered meanwhile, another task has led. Of requests that were submitted
            // together, only the last one leads.
            if !queued.waiting[0].is_answered() {
                match submission.more_follow {
                    true => self.shared.lock().wake_worker(now()),
                    false => lead(&self.shared),
                }
            }
        }
        let QueuedRequest { waiting, answers, .. } = &mut queued;
        for part in waiting {
            match answer_of(part, expires_at, &self.shared.tally).await {
                Ok(answered) => answers.push(answered),
                Err(error) => return Err(error.with(answers)),
            }
        }
        let is_refuted =
            is_cut && !self.forms_batches() || is_ragged && self.shared.sharing.has_filling_ended();
        if is_refuted {
            return Err(SubmitError::Mixed);
        }
        let whole = joined(answers, places.as_deref(), self.info.outputs.len(), pool);
        let whole = whole.map_err(|error| error.with(answers))?;
        queued.is_answered = true;
        Ok(whole)
    }

    fn level(&self, priority: Option<u32>) -> usize {
        if priority == Some(LAST_PRIORITY) {
            return self.config.levels.len() - 1;
        }
        match priority.unwrap_or(0) as usize {
            level if (1..=self.config.levels.len()).contains(&level) => level - 1,
            _ => self.config.default_level,
        }
    }

    /// Queue all parts of a request, or none. If running them is quick and no other request is
    /// expected to join, run them here; else wake a worker.
    fn enqueue<'a>(
        &'a self,
        arrival: &Arrival<'a>,
        parts: SmallVec<[RequestPart; 1]>,
        more_follow: bool,
    ) -> Result<QueuedRequest<'a>, SubmitError> {
        let shared = &*self.shared;
        let mut state = shared.lock();
        let waiting = state.enqueue(arrival, parts)?;
        let mut queued = QueuedRequest {
            shared,
            waiting,
            answers: SmallVec::new(),
            receipt: arrival.receipt,
            gathers: false,
            is_answered: false,
        };
        if !state.may_lead() {
            state.wake_worker(arrival.at);
            return Ok(queued);
        }
        queued.gathers = more_follow || state.should_gather(arrival.at);
        drop(state);
        if !queued.gathers {
            lead(shared);
        }
        Ok(queued)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.lock().close();
    }
}

#[cfg(test)]
mod tests;
