//! Which requests share the next batch. Pure: time comes in as a parameter, requests are opaque.
//!
//! A request waits in a tier. Each priority level has two tiers: one for requests as they came, and
//! behind it one for delayed requests, whose queue timeout has passed. Tiers are served in strict
//! order, and ageing moves requests up after a long wait. Within a tier the least served tenant
//! goes first (`fair_queue`). A batch has one shape, that of its first request. Requests of other
//! shapes keep their place in the queue.
//!
//! A batch with room left also takes requests that can be padded to its shape, if that is cheaper
//! (`raising`). `limits` bounds the queue. `closed_loop` and `gather` wait a moment for expected
//! requests; if that does not pay, a `trial` decides when they try again. `shape` decides which
//! requests fit one batch, and `forming` is a batch on its way.
//!
//! Invariants: a queued request comes out once: in a batch, as expired or as gone. A batch never
//! has more rows than the maximum. Requests of one tenant, level and shape keep their order.

mod closed_loop;
mod entry;
mod fair_queue;
mod forming;
mod gather;
mod limits;
mod raising;
mod shape;
mod trial;

use std::time::{Duration, Instant};

use gristmill_core::Name;

use crate::config::LaneConfig;
use crate::service_time::ServiceTime;
use closed_loop::{ClosedLoop, QueueRows};
use entry::QueuedEntry;
pub(crate) use entry::{Entry, Size, Taken, rows_of};
use fair_queue::FairQueue;
use forming::Forming;
pub(crate) use gather::Gather;
pub use limits::Full;
use limits::Usage;
use raising::Raising;
pub(crate) use shape::{FILLING_FACTOR_MAX, ShapeKeys, is_lone, joined_key};
use shape::{buckets_in, is_near, is_padded_to};

/// When the queue has a batch for an idle instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    /// Not before this time, unless more arrives.
    At(Instant),
    Never,
}

/// Maximum shapes that a tenant may have queued in a level. Taking a batch costs time for each of
/// them.
const TENANT_SHAPES_MAX: usize = 256;

/// The queue is shared out over idle instances only if that saves this time.
const SHARED_OUT_TIME_MIN: Duration = Duration::from_micros(200);

/// The queue of a lane.
#[derive(Debug)]
pub(crate) struct Policy<T> {
    config: LaneConfig,
    usage: Usage,
    tiers: Vec<FairQueue<T>>,
    closed_loop: ClosedLoop,
    raising: Raising,
}

/// The queued rows of one shape.
struct ShapeRows {
    key: u64,
    rows: usize,
    oldest: Instant,
}

impl<T> Policy<T> {
    pub(crate) fn new(config: LaneConfig) -> Self {
        let tiers = (0..config.levels.len() * 2).map(|_| FairQueue::default()).collect();
        Self {
            config,
            usage: Usage::default(),
            tiers,
            closed_loop: ClosedLoop::default(),
            raising: Raising::default(),
        }
    }

    /// Apply other settings. Returns whether they differ from those before. Requests in a level
    /// that no longer exists move to the lowest level.
    pub(crate) fn configure(&mut self, config: &LaneConfig, now: Instant) -> bool {
        if self.config == *config {
            return false;
        }
        let tiers = config.levels.len() * 2;
        let removed = self.tiers.split_off(tiers.min(self.tiers.len()));
        self.tiers.resize_with(tiers, FairQueue::default);
        for (index, mut tier) in removed.into_iter().enumerate() {
            for mut queued in tier.take_older(now) {
                (queued.entry.level, queued.since) = (config.levels.len() - 1, now);
                self.tiers[tiers - 2 + index % 2].push(queued);
            }
        }
        self.config = config.clone();
        true
    }

    /// The time from the last deadline of a run's requests until the run is told to end.
    pub(crate) fn run_grace(&self) -> Duration {
        self.config.run_grace
    }

    /// The level in which a request of `level` waits. There may be fewer levels now than its
    /// submitter knows.
    fn level(&self, level: usize) -> usize {
        level.min(self.config.levels.len() - 1)
    }

    /// The arrival of the request that has been queued longest.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.tiers.iter().flat_map(FairQueue::shapes).map(|(_, _, oldest)| oldest).min()
    }

    pub(crate) fn queued_rows(&self) -> usize {
        self.usage.rows()
    }

    pub(crate) fn queued_requests(&self) -> usize {
        self.tiers.iter().map(FairQueue::requests).sum()
    }

    /// Whether a request of `tenant` of this size may wait in `level`.
    pub(crate) fn has_room(&self, tenant: &Name, level: usize, size: &Size) -> Result<(), Full> {
        let level = self.level(level);
        let policy = &self.config.levels[level];
        let requests = self.tiers[level * 2].requests() + self.tiers[level * 2 + 1].requests();
        if let Some(max) = policy.max_requests.filter(|max| requests >= *max) {
            return Err(Full::Level { requests, max });
        }
        let tier = &self.tiers[level * 2];
        let tenant = self.usage.index(tenant);
        let shapes = tenant.map_or(0, |index| tier.shapes_beside(index, size.shape_key));
        if shapes >= TENANT_SHAPES_MAX {
            return Err(Full::Tenant { queued: shapes, max: TENANT_SHAPES_MAX, unit: "shapes" });
        }
        self.usage.has_room(tenant, size, &self.config)
    }

    /// A batch of this shape with `rows` rows, at the size of its bucket, took so long.
    pub(crate) fn learn(&mut self, shape_key: u64, rows: usize, time: Duration) {
        self.raising.observe(shape_key, rows, time);
    }

    /// Put each request into a batch of its own.
    pub(crate) fn run_alone(&mut self) {
        self.config.max_batch_size = 1;
        self.config.preferred_batch_sizes.clear();
    }

    /// Stop waiting for further requests: all queued requests are due.
    pub(crate) fn close(&mut self) {
        self.config.max_queue_delay = Duration::ZERO;
        self.closed_loop = ClosedLoop::default();
    }

    /// Whether the queued rows of some shape fill a batch.
    pub(crate) fn has_full_batch(&self, now: Instant) -> bool {
        let full = |shape: &ShapeRows| shape.rows >= self.config.max_batch_size;
        self.shapes().iter().any(|shape| full(shape) && self.ready_at(shape) <= now)
    }

    /// Queue `entry`, which [has room](Self::has_room) and has at most a batch's rows.
    pub(crate) fn push(&mut self, mut entry: Entry<T>) {
        entry.level = self.level(entry.level);
        let tenant = self.usage.add(&entry.tenant, entry.rows, entry.bytes);
        let tier = entry.level * 2;
        self.tiers[tier].push(QueuedEntry { tenant, since: entry.arrived, entry });
    }

    /// Whether a batch is to be taken at `now`, if an instance is idle.
    pub(crate) fn due(&self, now: Instant) -> Due {
        if self.usage.rows() == 0 {
            return Due::Never;
        }
        let waits = self.closed_loop.until(self.usage.rows());
        let delayed = if self.config.max_queue_delay.is_zero() {
            None
        } else {
            self.shapes().into_iter().map(|shape| self.ready_at(&shape)).min()
        };
        match waits.max(delayed) {
            Some(at) if at > now => Due::At(at),
            _ => Due::Now,
        }
    }

    /// Whether to answer a batch of `rows` rows before the next one is taken, and then to
    /// [wait](Self::wait_for_clients) for its clients.
    pub(crate) fn should_wait_after(&mut self, rows: usize, service: &ServiceTime) -> bool {
        let batch_time = service.of(rows).unwrap_or_default();
        self.closed_loop.should_wait(self.rows_after(rows), batch_time)
    }

    /// A batch of `rows` rows was just answered: wait for its clients.
    pub(crate) fn wait_for_clients(&mut self, now: Instant, rows: usize, service: &ServiceTime) {
        let batch_time = service.of(rows).unwrap_or_default();
        self.closed_loop.begin(now, self.rows_after(rows), batch_time);
    }

    fn rows_after(&self, answered: usize) -> QueueRows {
        QueueRows { answered, queued: self.usage.rows(), max: self.config.max_batch_size }
    }

    /// Take the next batch at `now` into `taken`, which is empty. Entries are left out if `gone`
    /// says so, or if they have expired or would expire before the batch is done. The queue is
    /// shared out over so many `idle` instances, of which one takes this batch.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        (service, idle): (&ServiceTime, usize),
        gone: impl Fn(&T) -> bool,
        taken: &mut Taken<T>,
    ) {
        self.promote(now);
        self.closed_loop.end(self.usage.rows());
        let share = share_of(self.usage.rows(), idle, service);
        let (ready, room_of) = self.ready_shapes(now, share);
        let Self { config, usage, tiers, raising, .. } = self;
        let verdict = |entry: &Entry<T>, queued_rows: usize| {
            // A request that waits alone is served in any case. If it were not, the lane would
            // never learn that batches became faster after a slow one.
            let alone = queued_rows <= entry.rows;
            let takes = service.of(entry.rows).filter(|_| !alone).unwrap_or_default();
            entry.verdict(config, now, takes, &gone)
        };
        let mut forming = Forming {
            shape: None,
            room: 0,
            ready: &ready,
            room_of: &room_of,
            usage,
            verdict: &verdict,
            taken,
            blocked: Vec::new(),
            delayed: Vec::new(),
        };
        for index in 0..tiers.len() {
            tiers[index].fill(&mut forming);
            // Only the first tier of a level delays requests, so there is a next tier.
            forming.take_delayed(now).into_iter().for_each(|queued| tiers[index + 1].push(queued));
        }
        // With another idle instance, they run side by side with this batch.
        let may_raise = |key: &u64| idle < 2 && forming.room > 0 && buckets_in(*key).is_some();
        let Some(larger) = forming.shape.filter(may_raise) else { return };
        let fits = |key| is_padded_to(key, larger) && is_near(&config.padding, key, larger);
        let mut smaller = shapes_of(tiers, fits);
        smaller.sort_by_key(|shape| shape.oldest);
        for ShapeRows { key, rows, .. } in smaller {
            let taken = rows_of(&forming.taken.batch);
            if rows > forming.room || !raising.pays((larger, taken), (key, rows)) {
                continue;
            }
            for index in 0..tiers.len() {
                tiers[index].fill_with(key, &mut forming);
                forming.take_delayed(now).into_iter().for_each(|one| tiers[index + 1].push(one));
            }
        }
    }

    /// Remove all entries that are gone or expired. Returns the expired ones. Takes time for each
    /// queued request.
    pub(crate) fn sweep(&mut self, now: Instant, gone: impl Fn(&T) -> bool) -> Vec<Entry<T>> {
        let mut expired = Vec::new();
        let Self { config, usage, tiers, .. } = self;
        let verdict = |entry: &Entry<T>| entry.verdict(config, now, Duration::ZERO, &gone);
        for tier in tiers {
            tier.sweep(&verdict, usage, &mut expired);
        }
        expired
    }

    /// The number of rows that are served before a request of `tenant` that arrives in `level` now.
    /// These are the rows of the levels above, the tenant's own rows in this level, and rows of
    /// each other tenant in proportion to its weight.
    pub(crate) fn rows_ahead(&self, tenant: &Name, weight: u32, level: usize) -> usize {
        let (above, rest) = self.tiers.split_at(self.level(level) * 2);
        let above: usize = above.iter().map(FairQueue::rows).sum();
        let own_level =
            self.usage.index(tenant).map_or(0, |index| rest[0].rows_before(index, weight));
        above + own_level
    }

    /// Forget the tenants that are not to be kept and have nothing queued.
    pub(crate) fn retain_tenants(&mut self, keep: impl Fn(&Name) -> bool) {
        for tenant in self.usage.retain(keep) {
            self.tiers.iter_mut().for_each(|tier| tier.forget(tenant));
        }
    }

    /// Move entries that waited for the ageing time in their tier up by one level.
    fn promote(&mut self, now: Instant) {
        for index in 1..self.tiers.len() {
            if self.tiers[index].requests() == 0 {
                continue;
            }
            let Some(before) = now.checked_sub(self.config.ageing) else { return };
            for mut queued in self.tiers[index].take_older(before) {
                queued.since = now;
                self.tiers[index.saturating_sub(2)].push(queued);
            }
        }
    }

    /// The shapes that may be taken at `now` (none means all), and the size of a batch of each
    /// shape: the largest preferred size that the queued rows fill, else the maximum. If no sizes
    /// are preferred, it is an instance's `share` of the queue at most.
    fn ready_shapes(
        &self,
        now: Instant,
        share: usize,
    ) -> (Option<Vec<u64>>, impl Fn(u64) -> usize + use<T>) {
        let LaneConfig { max_batch_size, preferred_batch_sizes, max_queue_delay, .. } =
            &self.config;
        let plain = preferred_batch_sizes.is_empty();
        let max = if plain { share.min(*max_batch_size) } else { *max_batch_size };
        let shapes = if plain && max_queue_delay.is_zero() { Vec::new() } else { self.shapes() };
        let ready = (!max_queue_delay.is_zero()).then(|| {
            let ready = shapes.iter().filter(|shape| self.ready_at(shape) <= now);
            ready.map(|shape| shape.key).collect()
        });
        let rooms: Vec<(u64, usize)> = if plain {
            Vec::new()
        } else {
            let fits = |rows: usize| preferred_batch_sizes.iter().rev().find(|size| **size <= rows);
            shapes.iter().filter_map(|shape| Some((shape.key, *fits(shape.rows)?))).collect()
        };
        let room_of =
            move |key| rooms.iter().find(|(shape, _)| *shape == key).map_or(max, |(_, room)| *room);
        (ready, room_of)
    }

    /// The time at which a batch of this shape may go to an idle instance: at once if it fills a
    /// preferred size or no request can join it, else when its oldest request has waited for the
    /// queue delay.
    fn ready_at(&self, shape: &ShapeRows) -> Instant {
        let LaneConfig { max_batch_size, preferred_batch_sizes, max_queue_delay, .. } =
            &self.config;
        let enough = preferred_batch_sizes.first().unwrap_or(max_batch_size);
        let is_complete = shape.rows >= *enough || is_lone(shape.key);
        let delay = if is_complete { Duration::ZERO } else { *max_queue_delay };
        shape.oldest + delay
    }

    fn shapes(&self) -> Vec<ShapeRows> {
        shapes_of(&self.tiers, |_| true)
    }
}

/// The queued rows of each shape whose key is `wanted`.
fn shapes_of<T>(tiers: &[FairQueue<T>], wanted: impl Fn(u64) -> bool) -> Vec<ShapeRows> {
    let mut shapes: Vec<ShapeRows> = Vec::new();
    let all = tiers.iter().flat_map(FairQueue::shapes);
    for (key, rows, oldest) in all.filter(|(key, ..)| wanted(*key)) {
        match shapes.iter_mut().find(|shape| shape.key == key) {
            Some(shape) => {
                shape.rows += rows;
                shape.oldest = shape.oldest.min(oldest);
            }
            None => shapes.push(ShapeRows { key, rows, oldest }),
        }
    }
    shapes
}

/// The rows that one of `idle` instances takes of so many that are queued. It is all of them if
/// running the parts side by side would save less time than each part costs beside its rows, or
/// less than waking another thread costs.
fn share_of(queued: usize, idle: usize, service: &ServiceTime) -> usize {
    let part = queued.div_ceil(idle.max(1)).max(1);
    if idle < 2 || service.of(queued).is_some_and(|time| time < SHARED_OUT_TIME_MIN) {
        return usize::MAX;
    }
    // Until parts of different sizes have run, the time of a row is not known.
    let pays = service.line().is_none_or(|(fixed, per_row)| {
        let saved = per_row * queued.saturating_sub(part) as f64;
        saved >= fixed.max(SHARED_OUT_TIME_MIN.as_secs_f64())
    });
    if pays { part } else { usize::MAX }
}

#[cfg(test)]
mod tests;
