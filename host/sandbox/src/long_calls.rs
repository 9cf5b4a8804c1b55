//! Chooses the threads of a call: short calls run on the serving threads, long calls on separate
//! ones.
//!
//! A call begins on the thread of its request, unless the earlier calls of its export or of its
//! owner say otherwise (`pace`). When it has used 3 ms of CPU time, when it is about to do large
//! native work, or when its memory has grown large, it moves to a runtime whose threads have a
//! lower priority, and the request only waits for it. There each owner runs a bounded number of
//! calls at a time (`queue`), and running guests take turns each millisecond. So a short request
//! never waits behind a long call of any plugin.
//!
//! Invariants:
//! - calls that are not tiny run on at most half of the serving threads at the same time, those of
//!   all owners together. On the others a request never waits for a guest of another one. An owner
//!   that is alone (`neighbours`) has all of them;
//! - a call's permits are given back only when its instance is gone, even if its request has left
//!   long before;
//! - memory of large guests is reset on the threads for long calls.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use gristmill_core::{CallUsage, Rate};
use gristmill_platform::Share;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Instrument;

use crate::account::{Account, BACKGROUND_CALLS_PER_CORE};
use crate::error::{CallError, HostFault};
use crate::guest::Guest;
use crate::idle::Keep;
use crate::meter::Meter;
use crate::pace::{Export, Moment};
use crate::pause::HeldPermits;
use crate::queue::Half;

/// The threads for long calls.
pub(crate) struct LongCalls {
    runtime: Option<Runtime>,
    handle: Handle,
    started: Instant,
    /// The serving threads.
    threads: u32,
    /// Those of them on which calls that are not tiny may run.
    turns: Semaphore,
}

/// A call with its instance, to be polled to its end on one thread or another.
pub(crate) type CallFuture<T> = Pin<Box<dyn Future<Output = (Guest, Result<T, CallError>)> + Send>>;

/// A call that may begin: it has its guest and its permits.
pub(crate) struct NewCall<'a, T> {
    pub(crate) call: CallFuture<T>,
    pub(crate) meter: Arc<Meter>,
    /// Gets the call's figures when it ends.
    pub(crate) usage: Option<&'a OnceLock<CallUsage>>,
    /// The plugin's function in its pipeline.
    pub(crate) export: &'a Export,
    pub(crate) account: &'a Account,
    /// The threads for long calls.
    pub(crate) threads: &'a LongCalls,
    /// Whether it begins on them.
    pub(crate) begins_long: bool,
    pub(crate) permits: HeldPermits,
    /// What becomes of the guest.
    pub(crate) keep: Keep,
}

impl LongCalls {
    /// The calls of one owner take at most one thread for each core, and two for its background
    /// calls. The background calls of all owners take at most two threads for each core. One more
    /// thread remains for others.
    pub(crate) fn new() -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads(cores * BACKGROUND_CALLS_PER_CORE + 1)
            .thread_name("long-calls")
            .on_thread_start(|| Share::Long.take("long plugin calls"))
            // For plugins that wait for a clock.
            .enable_time()
            .build()?;
        let handle = runtime.handle().clone();
        let turns = Semaphore::new((cores / 2).max(1));
        let (threads, started) = (cores as u32, Instant::now());
        Ok(Self { runtime: Some(runtime), handle, started, threads, turns })
    }

    /// The runtime of these threads.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    fn moment(&self, now: Instant) -> Moment {
        Moment { time: now.saturating_duration_since(self.started), threads: self.threads }
    }

    /// Whether a call of this export, which is still to get its permits, begins on these threads.
    pub(crate) fn begins(&self, export: &Export, account: &Account, half: Half) -> bool {
        let serving = Serving { calls: self, export, account };
        // Its request may have come long ago.
        account.note_request(Instant::now().into_std());
        // Calls of one export begin in their order. If those that come now went ahead as short ones
        // and turned out to be long, they would take all permits for long calls, and those that
        // wait would never begin.
        if account.queue.has_long_of(export.round(), half) {
            return true;
        }
        // A short call does not wait behind its owner's long ones.
        let may_wait = || self.turns.available_permits() == 0 && !account.queue.has_long(half);
        match serving.place(Duration::ZERO) {
            CallThread::Long => true,
            CallThread::Turn => may_wait(),
            CallThread::Anywhere => false,
        }
    }
}

impl<T: Send + 'static> NewCall<'_, T> {
    /// Run it to its end. Dropping the returned future abandons it.
    pub(crate) async fn run(self) -> Result<T, CallError> {
        let Self { call, meter, usage, export, account, threads, begins_long, mut permits, keep } =
            self;
        let long = threads.handle.clone();
        let (permit, pausable) = (permits.take_long(), permits.pausable());
        let instance = Some((call, permits));
        let cpu = account.cpu().is_limited().then(|| account.cpu().clone());
        let mut noted = Noted { export, usage, meter: meter.clone(), has_ended: false };
        let mut call = MovableCall { instance, meter: meter.clone(), cpu, long, keep };
        if !begins_long {
            let serving = Serving { calls: threads, export, account };
            if let Some(outcome) = call.run_while_short(&serving).await {
                noted.has_ended = true;
                return outcome;
            }
        }
        let permit = match (permit, &pausable) {
            (Some(permit), _) => Some(permit),
            // It gets one before it goes on.
            (None, Some(permits)) if permits.is_paused() => None,
            (None, _) => Some(account.queue.long_permit(export.round()).await?),
        };
        let permit = match (permit, pausable) {
            (Some(permit), Some(permits)) => {
                permits.hold_long(permit);
                None
            }
            (permit, _) => permit,
        };
        meter.set_long();
        let running = async move {
            let outcome = poll_fn(|task| call.turn(task)).await;
            drop((call, permit));
            outcome
        };
        // In the request's span, so that the guest's log lines have its fields.
        let running = threads.handle.spawn(running.in_current_span());
        let mut waiting = PendingCall { running, meter };
        let outcome = (&mut waiting.running).await;
        noted.has_ended = true;
        match outcome {
            Ok(outcome) => outcome,
            Err(error) => Err(CallError::Host(error.into())),
        }
    }
}

/// Where a call runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CallThread {
    /// On a serving thread.
    Anywhere,
    /// On a serving thread, if few others do.
    Turn,
    /// On the threads for long calls.
    Long,
}

/// The serving threads, for a call that may run there.
struct Serving<'a> {
    calls: &'a LongCalls,
    export: &'a Export,
    account: &'a Account,
}

impl<'a> Serving<'a> {
    /// Where a call that has used `spent` so far is to run.
    fn place(&self, spent: Duration) -> CallThread {
        let Self { calls, export, account } = self;
        let now = Instant::now();
        let moment = calls.moment(now);
        if account.is_background || account.pace.is_long(export, spent, moment) {
            return CallThread::Long;
        }
        if export.is_tiny(spent) || account.is_alone(now.into_std()) {
            return CallThread::Anywhere;
        }
        if account.pace.is_over_share(moment) { CallThread::Long } else { CallThread::Turn }
    }

    /// A turn of such a call on a serving thread. None if it is not to have one.
    fn turn(&self, spent: Duration) -> Option<Option<SemaphorePermit<'a>>> {
        match self.place(spent) {
            CallThread::Long => None,
            CallThread::Turn => self.calls.turns.try_acquire().ok().map(Some),
            CallThread::Anywhere => Some(None),
        }
    }

    /// A call that has used `spent` so far has had a turn.
    fn took(&self, turn: Duration, spent: Duration) {
        let Self { calls, export, account } = self;
        account.pace.took(turn, spent, export, calls.moment(Instant::now()));
    }
}

/// Notes how long a call took and what it used when it ends, also if its request leaves before.
struct Noted<'a> {
    export: &'a Export,
    usage: Option<&'a OnceLock<CallUsage>>,
    meter: Arc<Meter>,
    has_ended: bool,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        let spent = self.meter.before_move();
        if self.has_ended {
            self.export.note(spent)
        } else {
            self.export.note_at_least(spent)
        }
        if let Some(usage) = self.usage {
            // A grant is for one call, so nothing is set yet.
            let _ = usage.set(self.meter.usage());
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
struct PendingCall<T> {
    running: JoinHandle<Result<T, CallError>>,
    meter: Arc<Meter>,
}

impl<T> Drop for PendingCall<T> {
    fn drop(&mut self) {
        // Stops native work at its next check.
        self.meter.abandon();
        // Stops the guest at its next yield.
        self.running.abort();
    }
}

/// A call under way, which can move to another thread.
struct MovableCall<T: 'static> {
    instance: Option<(CallFuture<T>, HeldPermits)>,
    meter: Arc<Meter>,
    /// The owner's rate of CPU time, if it has a limit.
    cpu: Option<Arc<Rate>>,
    long: Handle,
    keep: Keep,
}

impl<T: Send + 'static> MovableCall<T> {
    /// Poll the call until it ends or is to be moved. Returns none if it must be moved.
    async fn run_while_short(&mut self, serving: &Serving<'_>) -> Option<Result<T, CallError>> {
        poll_fn(|task| {
            let before = self.meter.spent();
            let Some(_turn) = serving.turn(before) else { return Poll::Ready(None) };
            let polled = self.turn(task);
            let spent = self.meter.spent();
            serving.took(spent - before, spent);
            match polled {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending if self.meter.wants_move() => Poll::Ready(None),
                Poll::Pending if serving.place(spent) == CallThread::Long => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
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
        // To prepare a guest for its next call is work for its owner, too.
        let polled = polled.map(|polled| {
            polled.map(|(guest, outcome)| {
                let ended_well =
                    matches!(outcome, Ok(_) | Err(CallError::Failure(_) | CallError::Model(_)));
                (if ended_well { self.keep.put(guest) } else { Some(guest) }, outcome)
            })
        });
        let spent = self.meter.pause();
        if let Some(cpu) = &self.cpu {
            cpu.spend(spent, Instant::now().into_std());
        }
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready((guest, outcome))) => {
                match guest {
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
    /// Drop the call and its `guest`, then give its permits back. If its memory is large, this
    /// happens off the serving threads.
    fn give_back(&mut self, guest: impl Send + 'static) {
        let Some((call, permits)) = self.instance.take() else { return };
        if self.meter.is_large() && !self.meter.is_long() {
            let giving_back = async move {
                drop((call, guest));
                drop(permits);
            };
            // In the request's span, where a line that has begun is logged.
            self.long.spawn(giving_back.in_current_span());
        } else {
            drop((call, guest));
            drop(permits);
        }
    }
}

/// A panic of the host's own code, as an error of this call alone.
fn panicked(panic: &(dyn Any + Send)) -> HostFault {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    HostFault::Panicked(text.unwrap_or_default())
}
