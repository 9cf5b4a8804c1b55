//! One tier of the queue: weighted deficit round robin over tenants, by rows.
//!
//! Each round gives every tenant that could add to the batch as many rows of credit as its weight; a
//! request costs its rows. Rounds go on until the batch is full or nobody can add to it, so a tenant
//! alone gets all of it. Credit left is kept as long as the tenant has something queued. The tenant
//! whose turn it is begins the batch and decides its shape.

use std::collections::VecDeque;
use std::time::Instant;

use super::usage::Usage;
use super::{Entry, Queued, Taken, Verdict};

/// Empty queues of so many shapes a tenant are kept, so that a steady flow allocates nothing.
const IDLE_SHAPES_MAX: usize = 4;

/// A batch on its way.
pub(super) struct Forming<'a, T> {
    /// Its shape, once a request has begun it.
    pub(super) shape: Option<u64>,
    /// Rows that it still takes.
    pub(super) room: usize,
    /// Shapes that may begin it; none standing for any.
    pub(super) ready: &'a Option<Vec<u64>>,
    /// The rows a batch of a shape takes.
    pub(super) room_of: &'a dyn Fn(u64) -> usize,
    pub(super) taken: &'a mut Taken<T>,
    /// Tenants whose next request did not fit. What they have in lower tiers does not pass it.
    pub(super) blocked: Vec<usize>,
    /// What overstayed its timeout and goes to the next tier.
    pub(super) delayed: Vec<Queued<T>>,
}

/// What becomes of an entry in [`Tier::retain`].
pub(super) enum Fate {
    Keep,
    Drop,
    Return,
}

#[derive(Debug)]
pub(super) struct Tier<T> {
    /// By the tenant's index.
    shares: Vec<Share<T>>,
    /// Tenants with something queued, in the order of their turns.
    turns: VecDeque<usize>,
    requests: usize,
    rows: usize,
}

/// What one tenant has in a tier.
#[derive(Debug)]
struct Share<T> {
    weight: u64,
    credit: u64,
    queues: Vec<ShapeQueue<T>>,
    rows: usize,
}

#[derive(Debug)]
struct ShapeQueue<T> {
    key: u64,
    rows: usize,
    entries: VecDeque<Queued<T>>,
}

impl<T> Default for Tier<T> {
    fn default() -> Self {
        Self { shares: Vec::new(), turns: VecDeque::new(), requests: 0, rows: 0 }
    }
}

impl<T> Tier<T> {
    pub(super) fn requests(&self) -> usize {
        self.requests
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn rows_of(&self, tenant: usize) -> usize {
        self.shares.get(tenant).map_or(0, |share| share.rows)
    }

    /// The weights of the tenants with something queued here, but for `tenant`.
    pub(super) fn weight_of_others(&self, tenant: usize) -> u64 {
        let others = self.turns.iter().filter(|index| **index != tenant);
        others.map(|index| self.shares[*index].weight).sum()
    }

    /// Key, rows and oldest arrival of each tenant's queue of each shape.
    pub(super) fn shapes(&self) -> impl Iterator<Item = (u64, usize, Instant)> {
        let queues = self.turns.iter().flat_map(|index| &self.shares[*index].queues);
        queues
            .filter_map(|queue| Some((queue.key, queue.rows, queue.entries.front()?.entry.arrived)))
    }

    pub(super) fn push(&mut self, queued: Queued<T>) {
        let tenant = queued.tenant;
        while self.shares.len() <= tenant {
            self.shares.push(Share { weight: 1, credit: 0, queues: Vec::new(), rows: 0 });
        }
        let share = &mut self.shares[tenant];
        if share.rows == 0 {
            self.turns.push_back(tenant);
        }
        self.requests += 1;
        self.rows += queued.entry.rows;
        share.push(queued);
    }

    /// Add to the batch what it takes of this tier.
    pub(super) fn fill(
        &mut self,
        forming: &mut Forming<'_, T>,
        usage: &mut Usage,
        verdict: &impl Fn(&Entry<T>) -> Verdict,
    ) {
        if self.requests == 0 {
            return;
        }
        let begins = forming.shape.is_none();
        if begins {
            self.begin(forming, usage, verdict);
        }
        let Some(shape) = forming.shape else { return self.end_idle_turns() };
        loop {
            // The fewest rounds after which somebody can pay for their next request.
            let mut rounds: Option<u64> = None;
            for turn in 0..self.turns.len() {
                let tenant = self.turns[turn];
                while let Some(cost) = self.next_cost(tenant, shape, forming, usage, verdict) {
                    let share = &mut self.shares[tenant];
                    if cost > share.credit {
                        let needed = (cost - share.credit).div_ceil(share.weight);
                        rounds = Some(rounds.map_or(needed, |least| least.min(needed)));
                        break;
                    }
                    share.credit -= cost;
                    if let Some(queued) = self.pop(tenant, shape, usage) {
                        forming.room -= queued.entry.rows;
                        forming.taken.batch.push(queued.entry);
                    }
                }
            }
            let Some(rounds) = rounds else { break };
            for turn in 0..self.turns.len() {
                let tenant = self.turns[turn];
                if self.shares[tenant].cost(shape).is_some_and(|rows| rows <= forming.room) {
                    let share = &mut self.shares[tenant];
                    share.credit += rounds * share.weight;
                }
            }
        }
        if begins {
            self.turns.rotate_left(1);
        }
        self.end_idle_turns();
    }

    /// Find whose turn it is to begin a batch, and put that tenant in front.
    fn begin(
        &mut self,
        forming: &mut Forming<'_, T>,
        usage: &mut Usage,
        verdict: &impl Fn(&Entry<T>) -> Verdict,
    ) {
        for turn in 0..self.turns.len() {
            let tenant = self.turns[turn];
            for queue in 0..self.shares[tenant].queues.len() {
                let key = self.shares[tenant].queues[queue].key;
                self.drop_dead(tenant, key, forming, usage, verdict);
            }
            let ready = |key| forming.ready.as_ref().is_none_or(|ready| ready.contains(&key));
            if let Some(key) = self.shares[tenant].oldest(ready) {
                let first = self.shares[tenant].cost(key).unwrap_or(0);
                forming.shape = Some(key);
                forming.room = (forming.room_of)(key).max(first);
                self.turns.rotate_left(turn);
                return;
            }
        }
    }

    /// The rows of the tenant's next request of `shape` that is to be served, if the batch has room.
    fn next_cost(
        &mut self,
        tenant: usize,
        shape: u64,
        forming: &mut Forming<'_, T>,
        usage: &mut Usage,
        verdict: &impl Fn(&Entry<T>) -> Verdict,
    ) -> Option<u64> {
        if forming.room == 0 || forming.blocked.contains(&tenant) {
            return None;
        }
        self.drop_dead(tenant, shape, forming, usage, verdict);
        let rows = self.shares[tenant].cost(shape)?;
        if rows > forming.room {
            forming.blocked.push(tenant);
            return None;
        }
        Some(rows as u64)
    }

    /// Take out what is not to be served before the tenant's next request of `shape`.
    fn drop_dead(
        &mut self,
        tenant: usize,
        shape: u64,
        forming: &mut Forming<'_, T>,
        usage: &mut Usage,
        verdict: &impl Fn(&Entry<T>) -> Verdict,
    ) {
        while let Some(queued) = self.shares[tenant].head(shape) {
            match verdict(&queued.entry) {
                Verdict::Serve => return,
                Verdict::Gone => drop(self.pop(tenant, shape, usage)),
                Verdict::Expired => {
                    let queued = self.pop(tenant, shape, usage);
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
    fn pop(&mut self, tenant: usize, shape: u64, usage: &mut Usage) -> Option<Queued<T>> {
        let queued = self.detach(tenant, shape)?;
        usage.remove(tenant, queued.entry.rows, queued.entry.bytes);
        Some(queued)
    }

    /// Take it out of this tier; it stays queued.
    fn detach(&mut self, tenant: usize, shape: u64) -> Option<Queued<T>> {
        let queued = self.shares[tenant].pop(shape)?;
        self.requests -= 1;
        self.rows -= queued.entry.rows;
        Some(queued)
    }

    /// What is in its tier since `before` or longer, in the order of each queue.
    pub(super) fn take_older(&mut self, before: Instant) -> Vec<Queued<T>> {
        let mut older = Vec::new();
        for turn in 0..self.turns.len() {
            let tenant = self.turns[turn];
            let keys: Vec<_> = self.shares[tenant].queues.iter().map(|queue| queue.key).collect();
            for key in keys {
                while self.shares[tenant].head(key).is_some_and(|queued| queued.since <= before) {
                    older.extend(self.detach(tenant, key));
                }
            }
        }
        self.end_idle_turns();
        older.sort_by_key(|queued| queued.entry.arrived);
        older
    }

    /// Look at every entry.
    pub(super) fn retain(
        &mut self,
        mut fate: impl FnMut(&Queued<T>) -> Fate,
        usage: &mut Usage,
        returned: &mut Vec<Entry<T>>,
    ) {
        for turn in 0..self.turns.len() {
            let share = &mut self.shares[self.turns[turn]];
            for queue in &mut share.queues {
                for _ in 0..queue.entries.len() {
                    let Some(queued) = queue.entries.pop_front() else { break };
                    let fate = fate(&queued);
                    if matches!(fate, Fate::Keep) {
                        queue.entries.push_back(queued);
                        continue;
                    }
                    let rows = queued.entry.rows;
                    queue.rows -= rows;
                    share.rows -= rows;
                    self.rows -= rows;
                    self.requests -= 1;
                    usage.remove(queued.tenant, rows, queued.entry.bytes);
                    if matches!(fate, Fate::Return) {
                        returned.push(queued.entry);
                    }
                }
            }
        }
        self.end_idle_turns();
    }

    /// Whoever has nothing queued loses turn and credit.
    fn end_idle_turns(&mut self) {
        let shares = &mut self.shares;
        self.turns.retain(|tenant| {
            let share = &mut shares[*tenant];
            if share.rows == 0 {
                share.credit = 0;
            }
            share.rows > 0
        });
    }
}

impl<T> Share<T> {
    fn push(&mut self, queued: Queued<T>) {
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

    fn pop(&mut self, key: u64) -> Option<Queued<T>> {
        let queue = self.queue_mut(key)?;
        let queued = queue.entries.pop_front()?;
        queue.rows -= queued.entry.rows;
        self.rows -= queued.entry.rows;
        Some(queued)
    }

    fn head(&self, key: u64) -> Option<&Queued<T>> {
        self.queues.iter().find(|queue| queue.key == key)?.entries.front()
    }

    /// The rows of the next request of the shape.
    fn cost(&self, key: u64) -> Option<usize> {
        self.head(key).map(|queued| queued.entry.rows)
    }

    /// The shape of the request that waits longest, of those that may begin a batch.
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
