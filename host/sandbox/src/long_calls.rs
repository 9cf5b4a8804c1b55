//! Chooses the threads of a call: short calls run on the serving threads, long calls on separate
//! ones.
//!
//! A call begins on the thread of its request. When it has used [`LONG_AFTER`] of CPU time, when it
//! is about to do large native work, or when its memory has grown large, it moves to a runtime
//! whose threads have a lower priority, and the request only waits for it. There each owner runs a
//! bounded number of calls at a time, and running guests take turns each millisecond. So a short
//! request never waits behind a long call of any plugin.
//!
//! Invariants:
//! - a call's places are given back only when its instance is gone, even if its request has left
//!   long before;
//! - memory of large guests is reset on the threads for long calls.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use gristmill_thread::Share;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::account::Places;
use crate::error::{CallError, HostFault};
use crate::guest::Guest;
use crate::idle::Keep;
use crate::meter::Meter;

/// CPU time after which a call is long.
const LONG_AFTER: Duration = Duration::from_millis(3);

/// An export's long calls may use a hundredth of one serving thread: for each second of CPU time
/// that they use, the export counts as long for up to this many seconds.
const TIMES_AS_LONG: u32 = 100;

/// CPU time that long calls may use at once, before the export counts as long. A virtual machine's
/// host can stop a thread for 10 ms, which counts as the thread's CPU time: one such call must not
/// make an export long.
const AT_ONCE: Duration = Duration::from_millis(20);

/// The longest time that an export counts as long after a call that held a serving thread.
const LONG_FOR_MAX: Duration = Duration::from_secs(10);

/// How long an export counts as long after a call that ran elsewhere and would have held a serving
/// thread.
const STAYS_LONG: Duration = Duration::from_millis(500);

/// The threads for long calls.
pub(crate) struct LongCalls {
    runtime: Option<Runtime>,
    handle: Handle,
    started: Instant,
}

/// The time until which a plugin's export is in debt for the CPU time that its long calls used on
/// serving threads, in nanoseconds since the sandbox started.
#[derive(Debug, Default)]
pub(crate) struct Pace(AtomicU64);

impl Pace {
    /// Whether the export's calls run on the threads for long calls.
    fn is_long(&self, now: Duration) -> bool {
        self.0.load(Ordering::Relaxed) > nanos(now + AT_ONCE * TIMES_AS_LONG)
    }

    /// A call took this CPU time on a serving thread.
    fn took(&self, spent: Duration, now: Duration) {
        if spent > LONG_AFTER {
            self.add(spent, now, LONG_FOR_MAX);
        }
    }

    /// A call that ran on the threads for long calls would have taken this CPU time on a serving
    /// thread.
    fn would_take(&self, spent: Duration, now: Duration) {
        if spent > LONG_AFTER {
            self.add(LONG_AFTER, now, STAYS_LONG);
        }
    }

    fn add(&self, spent: Duration, now: Duration, long_for_max: Duration) {
        let most = nanos(now + AT_ONCE * TIMES_AS_LONG + long_for_max);
        let later = |until: u64| {
            let added = until.max(nanos(now)).saturating_add(nanos(spent * TIMES_AS_LONG));
            Some(added.min(most).max(until))
        };
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

/// A call with its instance, to be polled to its end on one thread or another.
pub(crate) type CallFuture<T> = Pin<Box<dyn Future<Output = (Guest, Result<T, CallError>)> + Send>>;

/// A call to be run, and the data that decide on which threads.
pub(crate) struct NewCall<'a, T> {
    pub(crate) call: CallFuture<T>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) pace: &'a Pace,
    pub(crate) places: Places,
    /// The owner's places on the threads for long calls.
    pub(crate) long_places: Arc<Semaphore>,
    /// What becomes of the guest.
    pub(crate) keep: Keep,
}

impl LongCalls {
    /// One thread more than there are cores. One owner can have as many threads as there are cores,
    /// so that its native work leaves a thread to others.
    pub(crate) fn new() -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let lower_priority = || {
            if let Err(error) = Share::Long.apply() {
                tracing::warn!(%error, "long plugin calls run at ordinary priority");
            }
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(cores + 1)
            .thread_name("long-calls")
            .on_thread_start(lower_priority)
            // For plugins that wait for a clock.
            .enable_time()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle, started: Instant::now() })
    }

    /// The runtime of these threads.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Run a call to its end. Dropping the returned future abandons the call.
    pub(crate) async fn run<T: Send + 'static>(&self, new: NewCall<'_, T>) -> Result<T, CallError> {
        let NewCall { call, meter, pace, places, long_places, keep } = new;
        let long = self.handle.clone();
        let instance = Some((call, places));
        let mut call = MovableCall { instance, meter: meter.clone(), long, keep };
        let begins_long = pace.is_long(self.started.elapsed());
        if !begins_long {
            let begun = call.run_while_short(|| pace.is_long(self.started.elapsed())).await;
            pace.took(meter.spent(), self.started.elapsed());
            if let Some(outcome) = begun {
                return outcome;
            }
        }
        let place = long_places.acquire_owned().await;
        let place = place.map_err(|error| CallError::Host(error.into()))?;
        meter.set_long();
        let running = async move {
            let outcome = poll_fn(|task| call.turn(task)).await;
            drop((call, place));
            outcome
        };
        // In the request's span, so that the guest's log lines have its fields.
        let running = self.handle.spawn(running.in_current_span());
        let mut waiting = Waiting { running, meter };
        let outcome = (&mut waiting.running).await;
        if begins_long {
            pace.would_take(waiting.meter.before_move(), self.started.elapsed());
        }
        match outcome {
            Ok(outcome) => outcome,
            Err(error) => Err(CallError::Host(error.into())),
        }
    }
}

impl Drop for LongCalls {
    fn drop(&mut self) {
        // The caller of a call that is still under way has left.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A request that waits for its long call.
struct Waiting<T> {
    running: JoinHandle<Result<T, CallError>>,
    meter: Arc<Meter>,
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        // Stops native work at its next check.
        self.meter.abandon();
        // Stops the guest at its next yield.
        self.running.abort();
    }
}

/// A call under way, which can move to another thread.
struct MovableCall<T: 'static> {
    instance: Option<(CallFuture<T>, Places)>,
    meter: Arc<Meter>,
    long: Handle,
    keep: Keep,
}

impl<T: Send + 'static> MovableCall<T> {
    /// Poll the call until it ends or is to be moved. It is moved for its own CPU time, or because
    /// its export became long. Returns none if it must be moved.
    async fn run_while_short(&mut self, moves: impl Fn() -> bool) -> Option<Result<T, CallError>> {
        poll_fn(|task| match self.turn(task) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if self.meter.wants_move() => Poll::Ready(None),
            Poll::Pending if self.meter.spent() > LONG_AFTER || moves() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Poll the call once on the calling thread, and charge it for that time.
    fn turn(&mut self, task: &mut Context<'_>) -> Poll<Result<T, CallError>> {
        let Some((call, _)) = &mut self.instance else {
            return Poll::Ready(Err(CallError::Host(HostFault::Ended)));
        };
        self.meter.resume();
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(task)));
        self.meter.pause();
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready((guest, outcome))) => {
                let ended_well = matches!(outcome, Ok(_) | Err(CallError::Failure(_)));
                match if ended_well { self.keep.put(guest) } else { Some(guest) } {
                    Some(guest) => self.give_back(guest),
                    // The guest stays, so nothing that takes long is dropped.
                    None => self.instance = None,
                }
                Poll::Ready(outcome)
            }
            Err(panic) => {
                self.give_back(());
                Poll::Ready(Err(CallError::Host(panicked(&*panic))))
            }
        }
    }
}

impl<T> Drop for MovableCall<T> {
    fn drop(&mut self) {
        self.give_back(());
    }
}

impl<T: 'static> MovableCall<T> {
    /// Drop the call and its `guest`, then give its places back. If its memory is large, this
    /// happens off the serving threads.
    fn give_back(&mut self, guest: impl Send + 'static) {
        let Some((call, places)) = self.instance.take() else { return };
        if self.meter.is_large() && !self.meter.is_long() {
            let giving_back = async move {
                drop((call, guest));
                drop(places);
            };
            // In the request's span, where a line that has begun is logged.
            self.long.spawn(giving_back.in_current_span());
        } else {
            drop((call, guest));
            drop(places);
        }
    }
}

/// A panic of the host's own code, as an error of this call alone.
fn panicked(panic: &(dyn Any + Send)) -> HostFault {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    HostFault::Panicked(text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Duration = Duration::from_millis(9);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn an_export_is_long_when_it_takes_more_than_its_share_of_the_serving_threads() {
        let pace = Pace::default();
        for second in 0..100 {
            let now = ms(1000 * second);
            pace.took(HELD, now);
            assert!(!pace.is_long(now), "one long call a second");
            (0..1000).for_each(|_| pace.took(LONG_AFTER, now));
            assert!(!pace.is_long(now), "any number of short ones");
        }
        let now = ms(200_000);
        (0..3).for_each(|_| pace.took(HELD, now));
        assert!(pace.is_long(now + ms(600)) && !pace.is_long(now + ms(700)));
        (0..1000).for_each(|_| pace.took(HELD, now));
        assert!(pace.is_long(now + ms(9_999)) && !pace.is_long(now + ms(10_000)));
    }

    #[test]
    fn an_export_is_short_again_soon_after_its_calls_are() {
        let (pace, now) = (Pace::default(), ms(1));
        (0..3).for_each(|_| pace.took(HELD, now));
        (0..1000).for_each(|_| pace.would_take(ms(250), now));
        assert!(pace.is_long(now + ms(600)) && !pace.is_long(now + ms(700)));
        (0..1000).for_each(|_| pace.would_take(ms(250), now + ms(700)));
        assert!(pace.is_long(now + ms(1_199)) && !pace.is_long(now + ms(1_200)));
    }
}
