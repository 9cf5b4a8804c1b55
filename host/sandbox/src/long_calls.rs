//! Where a call runs: short ones on the serving threads, long ones on threads of their own.
//!
//! A call begins on the thread of its request. When it has used [`LONG_AFTER`] of CPU time, when it
//! is about to do large native work, or when its memory has grown large, it moves to a runtime whose
//! threads have a lower priority, and the request only waits for it. There an owner runs
//! a bounded number of calls at a time, and running guests take turns each millisecond. So a
//! short request never queues behind a long call, whichever plugin made it.
//!
//! Invariants:
//! - a call's places are given back only when its instance is gone, although its request
//!   may have left long before;
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
use wasmtime::Store;

use crate::CallError;
use crate::account::Places;
use crate::call::CallState;
use crate::meter::Meter;

/// CPU time after which a call is long.
const LONG_AFTER: Duration = Duration::from_millis(3);

/// CPU time of one turn after which a plugin must not hold up a serving thread again for now: turns
/// are cut each millisecond, except in host functions and bulk instructions.
const LONG_TURN: Duration = Duration::from_millis(5);

/// For how long the calls of a plugin begin on the threads for long calls, after one was long.
const LONG_FOR: Duration = Duration::from_secs(5);

/// The threads for long calls.
pub(crate) struct LongCalls {
    runtime: Option<Runtime>,
    handle: Handle,
    started: Instant,
}

/// When an export of a plugin last made a long call, in milliseconds since the sandbox started, plus
/// one; 0 for never.
#[derive(Debug, Default)]
pub(crate) struct Pace(AtomicU64);

/// A call with its instance, to be polled to its end on one thread or another.
pub(crate) type CallFuture<T> =
    Pin<Box<dyn Future<Output = (Store<CallState>, Result<T, CallError>)> + Send>>;

/// A call to be run, and what decides where.
pub(crate) struct Work<'a, T> {
    pub(crate) call: CallFuture<T>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) pace: &'a Pace,
    pub(crate) places: Places,
    /// The owner's places on the threads for long calls.
    pub(crate) long_places: Arc<Semaphore>,
}

impl LongCalls {
    /// One thread more than there are cores, which is what one owner can have: native work of one
    /// leaves a thread to others.
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
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle, started: Instant::now() })
    }

    /// Run a call to its end. Dropping the returned future abandons the call.
    pub(crate) async fn run<T: Send + 'static>(&self, work: Work<'_, T>) -> Result<T, CallError> {
        let Work { call, meter, pace, places, long_places } = work;
        let long = self.handle.clone();
        let instance = Some((call, places));
        let mut call = Call { instance, meter: meter.clone(), long, longest_turn: Duration::ZERO };
        if !self.is_long(pace) {
            let begun = call.run_while_short().await;
            if call.longest_turn > LONG_TURN || meter.spent() > LONG_AFTER {
                pace.0.store(self.now_ms(), Ordering::Relaxed);
            }
            if let Some(outcome) = begun {
                return outcome;
            }
        }
        let place = long_places.acquire_owned().await;
        let place = place.map_err(|error| CallError::Host(error.to_string()))?;
        meter.set_long();
        let running = async move {
            let outcome = poll_fn(|task| call.turn(task)).await;
            drop((call, place));
            outcome
        };
        // In the request's span: what the guest logs is found there.
        let running = self.handle.spawn(running.in_current_span());
        let mut waiting = Waiting { running, meter };
        match (&mut waiting.running).await {
            Ok(outcome) => outcome,
            Err(error) => Err(CallError::Host(error.to_string())),
        }
    }

    fn is_long(&self, pace: &Pace) -> bool {
        let last = pace.0.load(Ordering::Relaxed);
        last != 0 && self.now_ms().saturating_sub(last) < LONG_FOR.as_millis() as u64
    }

    fn now_ms(&self) -> u64 {
        1 + self.started.elapsed().as_millis() as u64
    }
}

impl Drop for LongCalls {
    fn drop(&mut self) {
        // Nobody waits for a call that is still under way.
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
        // The one stops native work at its next check, the other the guest at its next yield.
        self.meter.abandon();
        self.running.abort();
    }
}

/// A call under way.
struct Call<T: 'static> {
    instance: Option<(CallFuture<T>, Places)>,
    meter: Arc<Meter>,
    long: Handle,
    longest_turn: Duration,
}

impl<T: Send + 'static> Call<T> {
    /// Poll the call until it ends or is long; then there is no outcome yet.
    async fn run_while_short(&mut self) -> Option<Result<T, CallError>> {
        poll_fn(|task| match self.turn(task) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if self.meter.wants_move() || self.meter.spent() > LONG_AFTER => {
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Poll the call once on the calling thread, and charge it for that time.
    fn turn(&mut self, task: &mut Context<'_>) -> Poll<Result<T, CallError>> {
        let Some((call, _)) = &mut self.instance else {
            return Poll::Ready(Err(CallError::Host("the call has ended already".into())));
        };
        self.meter.resume();
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(task)));
        self.longest_turn = self.longest_turn.max(self.meter.pause());
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready((store, outcome))) => {
                self.give_back(store);
                Poll::Ready(outcome)
            }
            Err(panic) => {
                self.give_back(());
                Poll::Ready(Err(CallError::Host(text_of(&*panic))))
            }
        }
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        self.give_back(());
    }
}

impl<T: 'static> Call<T> {
    /// Drop the instance and its `store`, then its places; off the serving threads where its
    /// memory is large.
    fn give_back(&mut self, store: impl Send + 'static) {
        let Some((call, places)) = self.instance.take() else { return };
        if self.meter.is_large() && !self.meter.is_long() {
            self.long.spawn(async move {
                drop((call, store));
                drop(places);
            });
        } else {
            drop((call, store));
            drop(places);
        }
    }
}

/// A panic of the host's own code, as an error of this call alone.
fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panicked: {}", text.unwrap_or_default())
}
