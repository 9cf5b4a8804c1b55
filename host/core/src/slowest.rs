//! The slowest requests of a tenant in the last minutes, for people who ask why.
//!
//! Reading a body takes as long as its client likes, so requests are compared without that time.
//!
//! Invariants: there are never more than a few, of bounded size. A request that is not among the
//! slowest costs two loads of an atomic number, and takes no lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use crate::Name;
use crate::charge::Charge;
use crate::stages::Stages;

/// The number of requests that are kept for each tenant.
const KEPT_MAX: usize = 16;

/// The time for which they are kept.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// The slowest requests of a tenant.
pub struct Slowest {
    /// From here on, `fresh_until` counts.
    began: Instant,
    /// A request that took less is not kept.
    least_ns: AtomicU64,
    /// When the oldest of them is to go, in milliseconds. Any request is kept then.
    fresh_until_ms: AtomicU64,
    kept: Mutex<Vec<SlowRequest>>,
}

/// A request that was slow.
#[derive(Clone, Debug)]
pub struct SlowRequest {
    /// Its id. Its maker bounds the length.
    pub id: String,
    /// When it ended.
    pub at: SystemTime,
    /// The same on the clock of this process.
    pub ended: Instant,
    /// Its pipeline, if it had one.
    pub pipeline: Option<Name>,
    /// Its model.
    pub model: Option<Name>,
    /// `ok`, `abandoned` or the code of an error.
    pub code: &'static str,
    /// From its arrival until its answer was ready.
    pub took: Duration,
    /// How long each stage took.
    pub stages: Stages,
    /// Rows of its largest batch, those of other requests included.
    pub batch_rows: usize,
    /// The tenants in it.
    pub batch_tenants: usize,
    /// The use of the server.
    pub charge: Charge,
}

impl Default for Slowest {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            least_ns: AtomicU64::new(0),
            fresh_until_ms: AtomicU64::new(0),
            kept: Mutex::default(),
        }
    }
}

impl Slowest {
    /// Keep a request that ended at `ended` and worked for `work`, if it is among the slowest.
    pub fn note(&self, work: Duration, ended: Instant, make: impl FnOnce() -> SlowRequest) {
        let is_slow = nanos(work) >= self.least_ns.load(Relaxed);
        if is_slow || self.since_begin_ms(ended) >= self.fresh_until_ms.load(Relaxed) {
            self.keep(make());
        }
    }

    /// The requests that are kept, the slowest first.
    pub fn all(&self) -> Vec<SlowRequest> {
        let mut all = {
            let mut kept = self.kept.lock();
            drop_old(&mut kept, Instant::now());
            kept.clone()
        };
        all.sort_by_key(|request| std::cmp::Reverse(request.work()));
        all
    }

    fn keep(&self, request: SlowRequest) {
        let mut kept = self.kept.lock();
        drop_old(&mut kept, request.ended);
        kept.push(request);
        if kept.len() > KEPT_MAX {
            let quickest = kept.iter().enumerate().min_by_key(|(_, request)| request.work());
            if let Some((index, _)) = quickest {
                kept.swap_remove(index);
            }
        }
        let least = match kept.len() {
            KEPT_MAX => kept.iter().map(SlowRequest::work).min().unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let oldest = kept.iter().map(|request| request.ended).min();
        let fresh_until = oldest.map_or(0, |oldest| self.since_begin_ms(oldest + KEPT_FOR));
        self.least_ns.store(nanos(least), Relaxed);
        self.fresh_until_ms.store(fresh_until, Relaxed);
    }

    fn since_begin_ms(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.began).as_millis() as u64
    }
}

impl SlowRequest {
    /// The time that it took without reading its body.
    pub fn work(&self) -> Duration {
        self.took.saturating_sub(self.stages.read.unwrap_or_default())
    }
}

fn drop_old(kept: &mut Vec<SlowRequest>, now: Instant) {
    kept.retain(|request| now.saturating_duration_since(request.ended) < KEPT_FOR);
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(slowest: &Slowest, ended: Instant, work_ms: u64) {
        let read = Duration::from_secs(3);
        let work = Duration::from_millis(work_ms);
        slowest.note(work, ended, || SlowRequest {
            id: work_ms.to_string(),
            at: SystemTime::now(),
            ended,
            pipeline: None,
            model: None,
            code: "ok",
            took: work + read,
            stages: Stages { read: Some(read), ..Stages::default() },
            batch_rows: 1,
            batch_tenants: 1,
            charge: Charge::default(),
        });
    }

    fn ids(slowest: &Slowest) -> Vec<String> {
        slowest.all().into_iter().map(|request| request.id).collect()
    }

    #[test]
    fn only_the_slowest_are_kept() {
        let (slowest, now) = (Slowest::default(), Instant::now());
        (1..=100).for_each(|work_ms| note(&slowest, now, work_ms));
        let expected: Vec<_> = (85..=100).rev().map(|work: u64| work.to_string()).collect();
        assert_eq!(ids(&slowest), expected);
        note(&slowest, now, 84);
        assert_eq!(ids(&slowest), expected);
        note(&slowest, now, 200);
        assert_eq!(ids(&slowest)[..2], ["200", "100"]);
        assert_eq!(ids(&slowest).len(), KEPT_MAX);
    }

    #[test]
    fn old_ones_make_room_for_quicker_ones() {
        let (slowest, now) = (Slowest::default(), Instant::now());
        (0..KEPT_MAX).for_each(|_| note(&slowest, now, 60));
        note(&slowest, now + KEPT_FOR - Duration::from_secs(1), 1);
        assert_eq!(ids(&slowest), ["60"; KEPT_MAX]);
        note(&slowest, now + KEPT_FOR, 1);
        assert_eq!(ids(&slowest), ["1"]);
    }
}
