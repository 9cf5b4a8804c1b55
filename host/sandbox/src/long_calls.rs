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
use std::task::{Context, Poll};

use gristmill_core::Rate;
use gristmill_thread::Share;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Instrument;

use crate::account::{Account, BACKGROUND_CALLS_PER_CORE, Places};
use crate::error::{CallError, HostFault};
use crate::guest::Guest;
use crate::idle::Keep;
use crate::meter::Meter;
use crate::pace::{LONG_AFTER, StaysLong};

/// The threads for long calls.
pub(crate) struct LongCalls {
    runtime: Option<Runtime>,
    handle: Handle,
    started: Instant,
}

/// A call with its instance, to be polled to its end on one thread or another.
pub(crate) type CallFuture<T> = Pin<Box<dyn Future<Output = (Guest, Result<T, CallError>)> + Send>>;

/// A call to be run, and the data that decide on which threads.
pub(crate) struct NewCall<'a, T> {
    pub(crate) call: CallFuture<T>,
    pub(crate) meter: Arc<Meter>,
    /// Of the plugin's function in its pipeline.
    pub(crate) export: &'a StaysLong,
    pub(crate) account: &'a Account,
    pub(crate) places: Places,
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
        Ok(Self { runtime: Some(runtime), handle, started: Instant::now() })
    }

    /// The runtime of these threads.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Run a call to its end. Dropping the returned future abandons the call.
    pub(crate) async fn run<T: Send + 'static>(&self, new: NewCall<'_, T>) -> Result<T, CallError> {
        let NewCall { call, meter, export, account, places, keep } = new;
        let long = self.handle.clone();
        let instance = Some((call, places));
        let cpu = account.cpu().is_limited().then(|| account.cpu().clone());
        let mut call = MovableCall { instance, meter: meter.clone(), cpu, long, keep };
        let is_long = || {
            let now = self.started.elapsed();
            account.is_background || export.is_long(now) || account.pace.is_long(now)
        };
        let begins_long = is_long();
        if !begins_long {
            let begun = call.run_while_short(is_long).await;
            account.pace.took(meter.spent(), self.started.elapsed());
            if let Some(outcome) = begun {
                return outcome;
            }
        }
        let place = account.long_places.clone().acquire_owned().await;
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
            export.would_take(waiting.meter.before_move(), self.started.elapsed());
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
    /// The owner's rate of CPU time, if it has a limit.
    cpu: Option<Arc<Rate>>,
    long: Handle,
    keep: Keep,
}

impl<T: Send + 'static> MovableCall<T> {
    /// Poll the call until it ends or is to be moved. It is moved for its own CPU time, or because
    /// its export or its owner became long. Returns none if it must be moved.
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
        let spent = self.meter.pause();
        if let Some(cpu) = &self.cpu {
            cpu.spend(spent, Instant::now().into_std());
        }
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
