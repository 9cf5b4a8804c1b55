//! One tier of the queue: fair queueing over tenants, by rows and weight. Pure.
//!
//! Each tenant has a virtual time: the number of its served rows, divided by its weight. The tenant
//! with the least virtual time goes first. A tenant that comes back after a pause starts at the
//! least virtual time of the others, if its own is less. So it goes first at once, but cannot save
//! up rows during the pause. A tenant that took much before its pause keeps its own virtual time.
//!
//! This is start-time fair queueing. Deficit round robin is better known, but there a newcomer
//! waits for the credit of others, and a request as large as a batch waits for several credits.
//!
//! The least served tenant begins a batch, and its request decides the shape. The other tenants add
//! requests that have this shape and fit.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Instant;

use super::entry::{Entry, QueuedEntry, Verdict};
use super::forming::Forming;
use super::limits::Usage;

/// The number of empty queues (one for each shape) that are kept for each tenant, so that a steady
/// flow allocates nothing.
const IDLE_SHAPES_MAX: usize = 4;

/// The virtual time that one row adds to a tenant of weight 1.
const ROW_TIME: u64 = 1_000_000;

/// The entries of one tier.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    /// By the tenant's index.
    shares: Vec<Share<T>>,
    /// Tenants with something queued.
    active: Vec<usize>,
    /// The virtual time of the tenant that was served last.
    now: u64,
    /// Tenants that can add to the batch that is being formed, the least served first.
    adding: BinaryHeap<Reverse<Precedence>>,
    requests: usize,
    rows: usize,
}

/// The rank of a tenant: the smallest goes first, compared field by field.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Precedence {
    /// Virtual time.
    served: u64,
    seen: bool,
    tenant: usize,
}

/// One tenant's part of a tier.
#[derive(Debug)]
struct Share<T> {
    weight: u64,
    /// Its virtual time.
    served: u64,
    /// Whether it was served since it last had nothing queued. Of tenants with equal virtual time,
    /// one that was not served goes first.
    seen: bool,
    queues: Vec<ShapeQueue<T>>,
    rows: usize,
}

#[derive(Debug)]
struct ShapeQueue<T> {
    key: u64,
    rows: usize,
    entries: VecDeque<QueuedEntry<T>>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            shares: Vec::new(),
            active: Vec::new(),
            now: 0,
            adding: BinaryHeap::new(),
            requests: 0,
            rows: 0,
        }
    }
}

impl<T> Default for Share<T> {
    fn default() -> Self {
        Self { weight: 1, served: 0, seen: false, queues: Vec::new(), rows: 0 }
    }
}

impl<T> FairQueue<T> {
    pub(super) fn requests(&self) -> usize {
        self.requests
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn rows_of(&self, tenant: usize) -> usize {
        self.shares.get(tenant).map_or(0, |share| share.rows)
    }

    /// The number of rows that are served before the next row that the tenant queues here: its own
    /// rows, and rows of each other tenant in proportion to its weight.
    pub(super) fn rows_before(&self, tenant: usize, weight: u32) -> usize {
        let tenant_rows = self.rows_of(tenant);
        let others = self.active.iter().filter(|index| **index != tenant).map(|index| {
            let Share { weight: others, rows, .. } = &self.shares[*index];
            let due =
                (tenant_rows as u64).saturating_mul(*others).div_ceil(u64::from(weight.max(1)));
            (*rows).min(due as usize)
        });
        tenant_rows + others.sum::<usize>()
    }

    /// The number of shapes that the tenant has queued here, without `key`.
    pub(super) fn shapes_beside(&self, tenant: usize, key: u64) -> usize {
        let Some(share) = self.shares.get(tenant).filter(|share| share.queues.len() > 1) else {
            return 0;
        };
        let others = share.queues.iter().filter(|queue| queue.key != key);
        others.filter(|queue| !queue.entries.is_empty()).count()
    }

    /// Key, rows and oldest arrival of each tenant's queue of each shape.
    pub(super) fn shapes(&self) -> impl Iterator<Item = (u64, usize, Instant)> {
        let queues = self.active.iter().flat_map(|index| &self.shares[*index].queues);
        queues
            .filter_map(|queue| Some((queue.key, queue.rows, queue.entries.front()?.entry.arrived)))
    }

    pub(super) fn push(&mut self, queued: QueuedEntry<T>) {
        let tenant = queued.tenant;
        while self.shares.len() <= tenant {
            self.shares.push(Share::default());
        }
        if self.shares[tenant].rows == 0 {
            let least = self.active.iter().map(|other| self.shares[*other].served).min();
            let share = &mut self.shares[tenant];
            share.served = share.served.max(least.unwrap_or(self.now));
            share.seen = false;
            self.active.push(tenant);
        }
        let share = &mut self.shares[tenant];
        self.requests += 1;
        self.rows += queued.entry.rows;
        share.push(queued);
    }

    /// Add entries of this tier to the batch until it has no more room.
    pub(super) fn fill(&mut self, forming: &mut Forming<'_, T>) {
        if self.requests == 0 {
            return;
        }
        if forming.shape.is_none() {
            self.begin(forming);
        }
        match forming.shape {
            Some(shape) => self.fill_with(shape, forming),
            None => self.forget_idle(),
        }
    }

    /// Add entries of this tier and of this shape to the batch until it has no more room.
    pub(super) fn fill_with(&mut self, shape: u64, forming: &mut Forming<'_, T>) {
        self.adding.clear();
        for index in 0..self.active.len() {
            self.offer(self.active[index], shape, forming);
        }
        while let Some(Reverse(Precedence { tenant, .. })) = self.adding.pop() {
            // The room may have become smaller since the tenant was put on the list.
            if self.shares[tenant].cost(shape).is_some_and(|rows| rows <= forming.room) {
                self.serve(tenant, shape, forming);
            }
            self.offer(tenant, shape, forming);
        }
        self.forget_idle();
    }

    /// Find the least served tenant with a request that may begin a batch, and begin the batch with
    /// it.
    fn begin(&mut self, forming: &mut Forming<'_, T>) {
        self.adding.clear();
        let shares = &self.shares;
        let candidates =
            self.active.iter().map(|tenant| Reverse(shares[*tenant].precedence(*tenant)));
        self.adding.extend(candidates);
        while let Some(Reverse(Precedence { tenant, .. })) = self.adding.pop() {
            for queue in 0..self.shares[tenant].queues.len() {
                let key = self.shares[tenant].queues[queue].key;
                self.drop_dead(tenant, key, forming);
            }
            let ready = |key| forming.ready.as_ref().is_none_or(|ready| ready.contains(&key));
            if let Some(key) = self.shares[tenant].oldest(ready) {
                let first = self.shares[tenant].cost(key).unwrap_or(0);
                forming.shape = Some(key);
                forming.room = (forming.room_of)(key).max(first);
                return self.serve(tenant, key, forming);
            }
        }
    }

    /// Add the tenant's next request to the batch, if one fits.
    fn offer(&mut self, tenant: usize, shape: u64, forming: &mut Forming<'_, T>) {
        if forming.room == 0 || forming.blocked.contains(&tenant) {
            return;
        }
        self.drop_dead(tenant, shape, forming);
        match self.shares[tenant].cost(shape) {
            None => {}
            Some(rows) if rows > forming.room => forming.blocked.push(tenant),
            Some(_) => self.adding.push(Reverse(self.shares[tenant].precedence(tenant))),
        }
    }

    /// Put the tenant's next request of `shape` into the batch, and count it.
    fn serve(&mut self, tenant: usize, shape: u64, forming: &mut Forming<'_, T>) {
        if let Some(queued) = self.pop(tenant, shape, forming.usage) {
            let share = &mut self.shares[tenant];
            self.now = self.now.max(share.served);
            share.served += queued.entry.rows as u64 * ROW_TIME / share.weight;
            share.seen = true;
            forming.room -= queued.entry.rows;
            forming.taken.batch.push(queued.entry);
        }
    }

    /// Remove the entries that must not be served before the tenant's next request of `shape`.
    fn drop_dead(&mut self, tenant: usize, shape: u64, forming: &mut Forming<'_, T>) {
        while let Some(queued) = self.shares[tenant].head(shape) {
            match (forming.verdict)(&queued.entry, forming.usage.rows()) {
                Verdict::Serve => return,
                Verdict::Gone => drop(self.pop(tenant, shape, forming.usage)),
                Verdict::Expired => {
                    let queued = self.pop(tenant, shape, forming.usage);
                    forming.taken.expired.extend(queued.map(|queued| queued.entry));
                }
                Verdict::Delay => {
                    let queued = self.detach(tenant, shape);
                    forming.delayed.extend(queued);
                }
            }
        }
    }

    /// Take the tenant's next request of `shape` out of the queue.
    fn pop(&mut self, tenant: usize, shape: u64, usage: &mut Usage) -> Option<QueuedEntry<T>> {
        let queued = self.detach(tenant, shape)?;
        usage.remove(tenant, queued.entry.rows, queued.entry.bytes);
        Some(queued)
    }

    /// Take it out of this tier; it stays queued.
    fn detach(&mut self, tenant: usize, shape: u64) -> Option<QueuedEntry<T>> {
        let queued = self.shares[tenant].pop(shape)?;
        self.requests -= 1;
        self.rows -= queued.entry.rows;
        Some(queued)
    }

    /// Remove the entries that have been in this tier since `before` or longer, in the order of
    /// each queue.
    pub(super) fn take_older(&mut self, before: Instant) -> Vec<QueuedEntry<T>> {
        let mut older = Vec::new();
        for index in 0..self.active.len() {
            let tenant = self.active[index];
            let keys: Vec<_> = self.shares[tenant].queues.iter().map(|queue| queue.key).collect();
            for key in keys {
                while self.shares[tenant].head(key).is_some_and(|queued| queued.since <= before) {
                    older.extend(self.detach(tenant, key));
                }
            }
        }
        self.forget_idle();
        older.sort_by_key(|queued| queued.entry.arrived);
        older
    }

    /// Remove all entries that must not be served. The expired ones go to `expired`.
    pub(super) fn sweep(
        &mut self,
        verdict: &impl Fn(&Entry<T>) -> Verdict,
        usage: &mut Usage,
        expired: &mut Vec<Entry<T>>,
    ) {
        for tenant in &self.active {
            let share = &mut self.shares[*tenant];
            for queue in &mut share.queues {
                for _ in 0..queue.entries.len() {
                    let Some(queued) = queue.entries.pop_front() else { break };
                    let verdict = verdict(&queued.entry);
                    if matches!(verdict, Verdict::Serve | Verdict::Delay) {
                        queue.entries.push_back(queued);
                        continue;
                    }
                    let rows = queued.entry.rows;
                    queue.rows -= rows;
                    share.rows -= rows;
                    self.rows -= rows;
                    self.requests -= 1;
                    usage.remove(queued.tenant, rows, queued.entry.bytes);
                    if matches!(verdict, Verdict::Expired) {
                        expired.push(queued.entry);
                    }
                }
            }
        }
        self.forget_idle();
    }

    /// Forget the tenant's virtual time. It must have nothing queued.
    pub(super) fn forget(&mut self, tenant: usize) {
        if let Some(share) = self.shares.get_mut(tenant) {
            *share = Share::default();
        }
    }

    /// The number of tenants with a place here, including forgotten ones.
    #[cfg(test)]
    pub(super) fn shares_known(&self) -> usize {
        self.shares.len()
    }

    fn forget_idle(&mut self) {
        let shares = &self.shares;
        self.active.retain(|tenant| shares[*tenant].rows > 0);
    }
}

impl<T> Share<T> {
    fn precedence(&self, tenant: usize) -> Precedence {
        Precedence { served: self.served, seen: self.seen, tenant }
    }

    fn push(&mut self, queued: QueuedEntry<T>) {
        self.weight = u64::from(queued.entry.weight.max(1));
        self.rows += queued.entry.rows;
        let key = queued.entry.shape_key;
        if let Some(queue) = self.queue_mut(key) {
            queue.rows += queued.entry.rows;
            queue.entries.push_back(queued);
        } else {
            if self.queues.len() >= IDLE_SHAPES_MAX {
                self.queues.retain(|queue| !queue.entries.is_empty());
            }
            let rows = queued.entry.rows;
            self.queues.push(ShapeQueue { key, rows, entries: VecDeque::from([queued]) });
        }
    }

    fn pop(&mut self, key: u64) -> Option<QueuedEntry<T>> {
        let queue = self.queue_mut(key)?;
        let queued = queue.entries.pop_front()?;
        queue.rows -= queued.entry.rows;
        self.rows -= queued.entry.rows;
        Some(queued)
    }

    fn head(&self, key: u64) -> Option<&QueuedEntry<T>> {
        self.queues.iter().find(|queue| queue.key == key)?.entries.front()
    }

    /// The rows of the next request of the shape.
    fn cost(&self, key: u64) -> Option<usize> {
        self.head(key).map(|queued| queued.entry.rows)
    }

    /// The shape of the oldest request that may begin a batch.
    fn oldest(&self, ready: impl Fn(u64) -> bool) -> Option<u64> {
        let heads = self.queues.iter().filter(|queue| ready(queue.key));
        let heads =
            heads.filter_map(|queue| Some((queue.entries.front()?.entry.arrived, queue.key)));
        heads.min().map(|(_, key)| key)
    }

    fn queue_mut(&mut self, key: u64) -> Option<&mut ShapeQueue<T>> {
        self.queues.iter_mut().find(|queue| queue.key == key)
    }
}
