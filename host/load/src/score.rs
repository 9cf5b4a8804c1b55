//! How requests ended, and counting them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::load::Load;
use crate::measured::Tally;

/// What all threads count for the reports, and whether they stop early.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) stops: AtomicBool,
}

/// The status of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Http(u16),
    Grpc(u16),
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedRequest {
    /// When it should have been sent.
    pub(crate) intended: Instant,
    /// The status of its answer, or none if there was no answer.
    pub(crate) status: Option<Status>,
}

/// What one thread counts.
pub(crate) struct Score {
    counts: Arc<Counts>,
    /// The begin and the end of what is measured.
    from: Instant,
    pub(crate) end: Instant,
    /// No answer is waited for after this.
    pub(crate) give_up: Instant,
    tally: Tally,
}

impl Status {
    pub(crate) fn is_ok(self) -> bool {
        matches!(self, Self::Http(200..300) | Self::Grpc(0))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(status) => write!(f, "{status}"),
            Self::Grpc(status) => write!(f, "gRPC {status}"),
        }
    }
}

impl Score {
    /// Of a load that begins at this time.
    pub(crate) fn new(load: &Load, counts: Arc<Counts>, begin: Instant) -> Self {
        let from = begin + load.warm_up;
        let end = from + load.duration;
        let give_up = end + load.patience;
        Self { counts, from, end, give_up, tally: Tally::new(load.duration) }
    }

    /// Whether the thread is to end, although requests are under way.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.give_up || self.counts.stops.load(Relaxed)
    }

    /// Count a request that has ended.
    pub(crate) fn count(&mut self, ended: &EndedRequest, now: Instant) {
        let took = now.saturating_duration_since(ended.intended);
        self.counts.answered.fetch_add(u64::from(ended.status.is_some()), Relaxed);
        let is_ok = ended.status.is_some_and(Status::is_ok);
        if !is_ok {
            self.counts.failed.fetch_add(1, Relaxed);
        }
        if ended.intended >= self.from && ended.intended < self.end {
            self.tally.time(took);
            if !is_ok {
                let what = ended.status.map(|status| status.to_string());
                self.tally.error(what.unwrap_or_else(|| "no answer".to_owned()));
            }
        }
        if ended.status.is_some() && now >= self.from && now < self.end {
            self.tally.answer(Some((now - self.from).as_secs() as usize), took);
        }
    }

    /// What the thread has counted, with the CPU time that it has used. Call this on it.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = self.tally.clone();
        tally.used(cpu_time());
        tally
    }
}

/// The CPU time of the calling thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
