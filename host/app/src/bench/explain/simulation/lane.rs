//! The queue and the instances of a model, with the rules by which `gristmill-batch` forms batches
//! of the requests of one tenant. Pure.
//!
//! Left out: copying a batch together ahead of its run, priorities, and waiting for several shapes.

use std::collections::VecDeque;

use crate::bench::explain::machine::LaneModel;

/// Batches shorter than this are run by a thread of the server.
const LED_BATCH_US_MAX: f64 = 100.0;

/// A task that lets others go first is waited for no longer.
const GATHERED_US_MAX: f64 = 100.0;

/// After so many times in a row without another request, letting others go first is only tried
/// once in so many requests.
const ALONE_MAX: u32 = 4;
const GATHER_EVERY: u32 = 64;

/// After batches that take this long an instance waits for their clients, for this share of the
/// batch's time, unless too few came back: then once in so many batches.
const WAIT_BATCH_US_MIN: f64 = 500.0;
const WAIT_SHARE: f64 = 0.1;
const WAIT_GAIN_MIN: f64 = 0.25;
const WAIT_EVERY: u32 = 32;

/// Whether the thread that brought a request runs the next batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Lead {
    Now,
    AfterOthers,
    No,
}

pub(super) struct Lane<'a> {
    model: &'a LaneModel,
    /// Requests, and when they came.
    queue: VecDeque<(usize, f64)>,
    idle: usize,
    /// The tasks that let others go first.
    pub(super) gathering: usize,
    gathering_since: Option<f64>,
    alone: u32,
    not_gathered: u32,
    wait: Option<Wait>,
    gain: f64,
    not_waited: u32,
}

/// An instance waits for the clients of a batch.
#[derive(Clone, Copy)]
struct Wait {
    until: f64,
    before: usize,
    expected: usize,
}

impl<'a> Lane<'a> {
    pub(super) fn new(model: &'a LaneModel) -> Self {
        Self {
            model,
            queue: VecDeque::new(),
            idle: model.instances,
            gathering: 0,
            gathering_since: None,
            alone: 0,
            not_gathered: 0,
            wait: None,
            gain: 1.0,
            not_waited: 0,
        }
    }

    /// The instances that run a batch.
    pub(super) fn busy(&self) -> usize {
        self.model.instances - self.idle
    }

    /// A request comes.
    pub(super) fn submit(&mut self, now: f64, request: usize) -> Lead {
        self.queue.push_back((request, now));
        if !self.may_lead() {
            return Lead::No;
        }
        if !self.should_gather(now) {
            return Lead::Now;
        }
        self.gathering += 1;
        Lead::AfterOthers
    }

    /// The next batch for a thread of the server.
    pub(super) fn take_for_leader(&mut self, now: f64) -> Option<Vec<usize>> {
        if self.may_lead() { self.take(now) } else { None }
    }

    /// The next batch for a thread of the model.
    pub(super) fn take_for_worker(&mut self, now: f64) -> Option<Vec<usize>> {
        if self.gathering > 0 { None } else { self.take(now) }
    }

    /// When a batch is due that is not due yet.
    pub(super) fn due_at(&self) -> Option<f64> {
        let (_, came) = self.queue.front().filter(|_| self.idle > 0)?;
        let preferred = self.model.preferred_rows.first().copied();
        let enough = preferred.unwrap_or(self.model.max_rows);
        let is_full = self.queue.len() * self.model.rows >= enough;
        let delay = if is_full { 0.0 } else { self.model.delay_us };
        let waits = self.wait.filter(|wait| self.queue.len() < wait.expected);
        Some(waits.map_or(0.0, |wait| wait.until).max(came + delay))
    }

    /// A batch has run: its instance is free, and may wait for its clients.
    pub(super) fn ended(&mut self, now: f64, requests: usize) {
        let us = self.model.batch_us(requests);
        let expected = self.model.requests_max().min(self.queue.len() + requests);
        let may_pay = us >= WAIT_BATCH_US_MIN && self.idle == 0 && expected > self.queue.len();
        self.idle += 1;
        if !may_pay {
            return;
        }
        if self.gain < WAIT_GAIN_MIN && self.not_waited < WAIT_EVERY {
            self.not_waited += 1;
        } else if self.wait.is_none() {
            self.not_waited = 0;
            let until = now + us * WAIT_SHARE;
            self.wait = Some(Wait { until, before: self.queue.len(), expected });
        }
    }

    fn may_lead(&self) -> bool {
        let requests = self.queue.len().min(self.model.requests_max());
        self.idle > 0 && requests > 0 && self.model.batch_us(requests) < LED_BATCH_US_MAX
    }

    fn should_gather(&mut self, now: f64) -> bool {
        if let Some(since) = self.gathering_since {
            return now - since < GATHERED_US_MAX;
        }
        if self.alone >= ALONE_MAX && self.not_gathered < GATHER_EVERY {
            self.not_gathered += 1;
            return false;
        }
        (self.not_gathered, self.gathering_since) = (0, Some(now));
        true
    }

    fn take(&mut self, now: f64) -> Option<Vec<usize>> {
        if self.due_at()? > now {
            return None;
        }
        if let Some(Wait { before, expected, .. }) = self.wait.take() {
            let came = self.queue.len().saturating_sub(before) as f64;
            self.gain = 0.75 * self.gain + 0.25 * (came / (expected - before) as f64).min(1.0);
        }
        let rows = self.queue.len() * self.model.rows;
        let preferred = self.model.preferred_rows.iter().rev().find(|size| **size <= rows);
        let room = preferred.map_or(self.model.requests_max(), |size| size / self.model.rows);
        let count = self.queue.len().min(room.max(1));
        if self.gathering_since.take().is_some() {
            self.alone = if count > 1 { 0 } else { self.alone + 1 };
        }
        self.idle -= 1;
        Some(self.queue.drain(..count).map(|(request, _)| request).collect())
    }
}
