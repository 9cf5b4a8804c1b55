//! The thread of a lane that gives up runs which do not end.
//!
//! While nothing runs it waits. While something runs it looks ten times a second, so that beginning
//! and ending a run wakes nobody.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::Model;

use crate::lane::{Shared, State};
use crate::running::{Instance, Lost};
use crate::worker;

/// How often runs are looked at while there are any.
const INTERVAL: Duration = Duration::from_millis(100);

/// Runs of one model's file that may be lost at the same time; with one more the model is refused.
pub const LOST_RUNS_MAX: usize = 2;

/// Makes an instance in place of a lost one. Blocks for as long as that takes.
pub type Replace = Box<dyn Fn() -> Result<Box<dyn Model>, String> + Send + Sync>;

/// What a lane needs to live with runs that do not end.
#[derive(Default)]
pub struct Upkeep {
    /// None: a lost instance is not replaced.
    pub replace: Option<Replace>,
    /// Runs of the model's file that are lost just now, over all of its lanes.
    pub lost_runs: Arc<AtomicUsize>,
}

impl Shared {
    /// Take nothing more, and answer all that is queued.
    pub(crate) fn refuse(&self, state: &mut State, why: &str) {
        if state.refused.is_none() {
            state.refused = Some(why.into());
        }
        worker::refuse_queued(self, state);
        self.freed.notify_all();
    }
}

/// Watch until the lane is closed and nothing of it runs.
pub(crate) fn watch(shared: &Arc<Shared>) {
    let mut state = shared.state();
    loop {
        if state.running.is_empty() {
            if state.closed && state.policy.queued_rows() == 0 {
                return;
            }
            state = if state.closed {
                // What is left may be given up without ever running.
                shared.begun.wait_timeout(state, INTERVAL).unwrap_or_else(PoisonError::into_inner).0
            } else {
                state.unwatched = true;
                shared.begun.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
            state.unwatched = false;
            continue;
        }
        let waited = shared.begun.wait_timeout(state, INTERVAL);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let now = Instant::now();
        let told = state.running.tell(now);
        if told > 0 {
            shared.statistics().given_up += told as u64;
            let model = &*shared.name;
            tracing::warn!(model, runs = told, "a run goes on after its deadline: told to end");
        }
        let Some(told_before) = now.checked_sub(shared.lost_after) else { continue };
        while let Some(lost) = state.running.lose(told_before) {
            state = give_up(shared, state, lost);
        }
    }
}

/// Live without a run's thread and instance.
fn give_up<'a>(
    shared: &'a Arc<Shared>,
    mut state: MutexGuard<'a, State>,
    lost: Lost,
) -> MutexGuard<'a, State> {
    let model = &*shared.name;
    shared.statistics().lost += 1;
    let count = shared.upkeep.lost_runs.fetch_add(1, Ordering::Relaxed) + 1;
    tracing::error!(model, count, "a run that was told to end goes on: its instance is given up");
    if !lost.led
        && let Err(error) = worker::spawn(shared)
    {
        tracing::error!(model, %error, "no thread for a worker");
    }
    if count > LOST_RUNS_MAX {
        state.has_lost_too_many = true;
        shared.refuse(&mut state, &refusal(count));
        return state;
    }
    let own = shared.clone();
    let replacing = std::thread::Builder::new().name(format!("replace-{model}"));
    if let Err(error) = replacing.spawn(move || replace(&own)) {
        tracing::error!(model, %error, "no thread to replace an instance");
    }
    state
}

/// Why a model with so many lost runs is refused.
pub fn refusal(lost_runs: usize) -> String {
    format!(
        "{lost_runs} of its runs do not end, although they were told to: upload another file, or \
         restart the server"
    )
}

fn replace(shared: &Arc<Shared>) {
    let Some(replace) = &shared.upkeep.replace else { return };
    let made = replace();
    let mut state = shared.state();
    let now = Instant::now();
    match made {
        Ok(model) => {
            state.idle.push(Instance::new(model));
            tracing::info!(model = &*shared.name, "an instance was replaced");
            shared.freed.notify_one();
            shared.wake_worker(&mut state, now);
        }
        Err(why) => {
            tracing::error!(model = &*shared.name, why, "an instance cannot be replaced");
            if state.idle.is_empty() && state.running.is_empty() {
                shared.refuse(&mut state, &format!("its instance cannot be replaced: {why}"));
            }
        }
    }
}
