//! The CPU time of one call, whether the call may go on, and the memory that it has used.
//!
//! It counts the CPU time of the thread that runs the call ([`Turn`]). So guest code, host
//! functions and the lifting of results all count, but not the time for which the call waits on a
//! busy machine.
//!
//! Invariant: between [`Meter::resume`] and [`Meter::pause`] one thread runs the call, and only
//! that thread reads [`Meter::used`] and [`Meter::faults`].

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use gristmill_core::{CallUsage, Turn, charged_elsewhere};
use gristmill_imaging::Stopped;
use gristmill_platform::thread_faults;

/// The length of a turn after which other calls go on, in nanoseconds: the same as for a guest that
/// loops.
const LONG_TURN: u64 = 1_000_000;

/// The CPU budget is used up; ends the guest like a trap.
#[derive(Debug, thiserror::Error)]
#[error("out of CPU time")]
pub(crate) struct CpuExhausted;

/// Shared by a call, the state in its store, the request that waits for it, and what works for it
/// on other threads.
#[derive(Debug)]
pub(crate) struct Meter {
    /// The CPU time that the call may take, in nanoseconds.
    limit: AtomicU64,
    /// Nanoseconds of the turns that are over.
    spent: AtomicU64,
    /// When the turn under way began, and the thread's CPU time then.
    resumed: AtomicU64,
    resumed_cpu: AtomicU64,
    /// The call runs on the threads for long calls.
    is_long: AtomicBool,
    /// The call asked to run on these threads.
    wants_move: AtomicBool,
    /// The CPU time that it had used when it asked, in nanoseconds.
    before_move: AtomicU64,
    /// The call holds so much memory that giving it back takes long.
    is_large: AtomicBool,
    /// The call's client has left.
    abandoned: AtomicBool,
    /// The linear memory of the call's instance, in bytes.
    memory_bytes: AtomicUsize,
    /// Peak bytes that the host has held for the call.
    host_memory_bytes: AtomicUsize,
    /// Nanoseconds of the waits for stores that are over.
    lookup: AtomicU64,
    /// Nanoseconds of CPU time that other threads took for the call's stores and requests. They
    /// count against its limit, and are charged where they are used.
    host_work: AtomicU64,
    /// Page faults are counted.
    counts_faults: AtomicBool,
    /// The page faults in the turns that are over.
    faults: AtomicU64,
    /// Those of the thread before the turn under way.
    faults_before: AtomicU64,
}

impl Meter {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit: AtomicU64::new(nanos(limit)),
            spent: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            resumed_cpu: AtomicU64::new(0),
            is_long: AtomicBool::new(false),
            wants_move: AtomicBool::new(false),
            before_move: AtomicU64::new(u64::MAX),
            is_large: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            memory_bytes: AtomicUsize::new(0),
            host_memory_bytes: AtomicUsize::new(0),
            lookup: AtomicU64::new(0),
            host_work: AtomicU64::new(0),
            counts_faults: AtomicBool::new(false),
            faults: AtomicU64::new(0),
            faults_before: AtomicU64::new(0),
        }
    }

    /// A turn begins: the calling thread runs the call from now on.
    pub(crate) fn resume(&self) {
        let Turn { passed, cpu } = Turn::begin();
        self.resumed.store(passed, Ordering::Relaxed);
        self.resumed_cpu.store(cpu, Ordering::Relaxed);
        if self.counts_faults.load(Ordering::Relaxed) {
            self.faults_before.store(thread_faults().unwrap_or_default(), Ordering::Relaxed);
        }
    }

    /// The turn ends. Returns its CPU time, in nanoseconds.
    pub(crate) fn pause(&self) -> u64 {
        let turn = self.turn();
        self.spent.fetch_add(turn, Ordering::Relaxed);
        if let Some(faults) = self.turn_faults() {
            self.faults.fetch_add(faults, Ordering::Relaxed);
        }
        charged_elsewhere(Duration::from_nanos(turn));
        turn
    }

    /// The CPU time of the turn under way, in nanoseconds.
    fn turn(&self) -> u64 {
        let passed = self.resumed.load(Ordering::Relaxed);
        Turn { passed, cpu: self.resumed_cpu.load(Ordering::Relaxed) }.took()
    }

    /// Count the page faults of the turns that begin from now on, if the kernel counts them.
    pub(crate) fn count_faults(&self) {
        self.counts_faults.store(thread_faults().is_some(), Ordering::Relaxed);
    }

    /// The page faults of the call so far, the turn under way included. None if they are not
    /// counted.
    pub(crate) fn faults(&self) -> Option<u64> {
        Some(self.faults.load(Ordering::Relaxed).saturating_add(self.turn_faults()?))
    }

    /// The page faults in the turn under way, if they are counted.
    fn turn_faults(&self) -> Option<u64> {
        let are_counted = self.counts_faults.load(Ordering::Relaxed);
        let now = if are_counted { thread_faults() } else { None };
        now.map(|now| now.wrapping_sub(self.faults_before.load(Ordering::Relaxed)))
    }

    /// The CPU time used by the turns that are over.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }

    /// The CPU time used so far, the turn under way included.
    pub(crate) fn used(&self) -> Duration {
        self.spent() + Duration::from_nanos(self.turn())
    }

    /// Other threads took so many nanoseconds of CPU time for the call.
    pub(crate) fn add_host_work(&self, nanos: u64) {
        self.host_work.fetch_add(nanos, Ordering::Relaxed);
    }

    /// The CPU time of the turns that are over, and of other threads for the call.
    fn paid(&self) -> Duration {
        self.spent() + Duration::from_nanos(self.host_work.load(Ordering::Relaxed))
    }

    /// What counts against the limit so far, if the turn under way has taken so many nanoseconds.
    fn counted(&self, turn: u64) -> Duration {
        self.paid() + Duration::from_nanos(turn)
    }

    /// The CPU time that the call may take.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_nanos(self.limit.load(Ordering::Relaxed))
    }

    /// The call may take this CPU time, if that is more than it might before.
    pub(crate) fn raise_limit(&self, limit: Duration) {
        self.limit.fetch_max(nanos(limit), Ordering::Relaxed);
    }

    /// The rest of the budget.
    pub(crate) fn left(&self) -> Duration {
        self.limit().saturating_sub(self.counted(self.turn()))
    }

    /// Whether the budget is used up.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.counted(self.turn()) > self.limit()
    }

    /// Whether the work may go on. Long native work asks between its parts.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        if self.abandoned.load(Ordering::Relaxed) || self.is_exhausted() {
            return Err(Stopped);
        }
        Ok(())
    }

    /// Whether work may go on that has so much CPU time, whatever the call's budget.
    pub(crate) fn check_until(&self, used: Duration) -> Result<(), Stopped> {
        if self.abandoned.load(Ordering::Relaxed) || self.used() > used {
            return Err(Stopped);
        }
        Ok(())
    }

    /// The request left or its deadline passed: native work stops at its next check.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Ask for the call to be moved to the threads for long calls, when its turn ends.
    pub(crate) fn ask_to_move(&self) {
        if !self.wants_move.swap(true, Ordering::Relaxed) {
            self.before_move.store(self.used().as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// Let other calls go on if this call's turn was long, before a host function begins. A guest
    /// that calls the host again and again without a loop would not yield otherwise.
    pub(crate) async fn take_turns(&self) -> Result<(), CpuExhausted> {
        let turn = self.turn();
        if self.counted(turn) > self.limit() {
            return Err(CpuExhausted);
        }
        if turn < LONG_TURN {
            return Ok(());
        }
        // Not `tokio::task::yield_now`: on a busy thread it waits until the thread polls its
        // sockets.
        let mut has_yielded = false;
        poll_fn(|task| {
            if std::mem::replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        Ok(())
    }

    /// Wait until the call runs on the threads for long calls, before work that takes long and
    /// cannot be interrupted.
    pub(crate) fn off_serving_threads(&self) -> impl Future<Output = ()> + Send {
        poll_fn(|_| {
            self.ask_to_move();
            // Otherwise the call's future ends its turn now, and is polled again on the other
            // threads.
            if self.is_long() { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// The CPU time used by the turns that are over, before the call asked to be moved.
    pub(crate) fn before_move(&self) -> Duration {
        self.spent().min(Duration::from_nanos(self.before_move.load(Ordering::Relaxed)))
    }

    pub(crate) fn wants_move(&self) -> bool {
        self.wants_move.load(Ordering::Relaxed)
    }

    /// The call runs on the threads for long calls from now on.
    pub(crate) fn set_long(&self) {
        self.is_long.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_long(&self) -> bool {
        self.is_long.load(Ordering::Relaxed)
    }

    /// The call's memory is so large that it is to be given back off the serving threads.
    pub(crate) fn set_large(&self) {
        self.is_large.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_large(&self) -> bool {
        self.is_large.load(Ordering::Relaxed)
    }

    /// The call's instance has so much linear memory.
    pub(crate) fn note_memory(&self, bytes: usize) {
        self.memory_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The host holds so many bytes for the call.
    pub(crate) fn note_host_memory(&self, bytes: usize) {
        if bytes > self.host_memory_bytes.load(Ordering::Relaxed) {
            self.host_memory_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// The call has waited for a store or another service for so long.
    fn note_lookup(&self, took: Duration) {
        self.lookup.fetch_add(nanos(took), Ordering::Relaxed);
    }

    /// The use of the limits by the turns that are over.
    pub(crate) fn usage(&self) -> CallUsage {
        CallUsage {
            cpu: self.paid(),
            cpu_limit: self.limit(),
            memory_bytes: self.memory_bytes.load(Ordering::Relaxed),
            host_memory_bytes: self.host_memory_bytes.load(Ordering::Relaxed),
            lookup: Duration::from_nanos(self.lookup.load(Ordering::Relaxed)),
        }
    }
}

/// Counts the time until it is dropped as a wait for a store or another service.
pub(crate) struct Lookup {
    meter: Arc<Meter>,
    since: Instant,
}

impl Lookup {
    /// The call of this meter waits from now on.
    pub(crate) fn begin(meter: &Arc<Meter>) -> Self {
        Self { meter: meter.clone(), since: Instant::now() }
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        self.meter.note_lookup(self.since.elapsed());
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    fn burn(time: Duration) {
        let cpu = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let begun = cpu();
        while cpu() - begun < time {
            std::hint::black_box(0);
        }
    }

    #[test]
    fn only_cpu_time_counts_and_it_counts_over_all_turns() {
        let meter = Meter::new(Duration::from_millis(100));
        for _ in 0..2 {
            meter.resume();
            burn(Duration::from_millis(30));
            meter.pause();
        }
        // CPU time that others use between the turns.
        burn(Duration::from_millis(100));
        meter.resume();
        assert!(meter.spent() >= Duration::from_millis(60));
        assert!(!meter.is_exhausted(), "{:?}", meter.used());
        meter.check().unwrap();
        burn(Duration::from_millis(40));
        assert!(meter.is_exhausted());
        meter.check().unwrap_err();
    }

    #[test]
    fn work_of_other_threads_counts_against_the_limit() {
        let meter = Meter::new(Duration::from_secs(60));
        meter.resume();
        meter.check().unwrap();
        meter.add_host_work(61_000_000_000);
        assert!(meter.is_exhausted());
        assert_eq!(meter.left(), Duration::ZERO);
        meter.check().unwrap_err();
        meter.pause();
        assert!(meter.spent() < Duration::from_secs(1), "it is not charged as a turn");
        assert!(meter.usage().cpu > Duration::from_secs(61));
    }

    #[test]
    fn waiting_within_a_turn_is_not_charged() {
        let meter = Meter::new(Duration::from_millis(100));
        meter.resume();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        // Blocks this thread for 200 ms without using CPU time.
        let _ = receiver.recv_timeout(Duration::from_millis(200));
        drop(sender);
        meter.pause();
        assert!(meter.spent() < Duration::from_millis(50), "{:?}", meter.spent());
    }

    #[test]
    fn an_abandoned_call_stops_whatever_its_budget() {
        let meter = Meter::new(Duration::from_secs(60));
        meter.resume();
        meter.check().unwrap();
        meter.abandon();
        meter.check().unwrap_err();
    }
}
