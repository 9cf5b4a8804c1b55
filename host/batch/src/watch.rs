//! The thread of a lane that watches for runs that do not end, and gives them up.
//!
//! While nothing runs, it waits. While something runs, it checks ten times a second, so that the
//! begin and the end of a run need not wake it.
//!
//! Invariant: a run that was told to end and goes on for
//! [`LaneConfig::lost_after`](crate::LaneConfig) more is lost: its instance and its thread are
//! replaced. With more than [`LOST_RUNS_MAX`] lost runs at the same time, or if the last instance
//! cannot be replaced, the model is refused until enough of them have ended or its file changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::running::Lost;
use crate::state::{LaneShared, LockedState};
use crate::sync::{self, now};
use crate::upkeep::{LOST_RUNS_MAX, Refusal};
use crate::worker;

/// The time between two checks while a batch runs.
const INTERVAL: Duration = Duration::from_millis(100);

/// Start the watching thread.
///
/// # Errors
/// The operating system cannot start a thread.
pub(crate) fn spawn(shared: &Arc<LaneShared>) -> std::io::Result<()> {
    sync::spawn(format!("watch-{}", shared.name), shared.clone(), watch)
}

/// Watch until the lane is closed and none of its batches runs.
fn watch(shared: &Arc<LaneShared>) {
    let mut state = shared.lock();
    loop {
        if state.is_idle() {
            if state.is_drained() {
                return;
            }
            state = state.wait_to_watch(INTERVAL);
            continue;
        }
        state = state.wait_to_watch(INTERVAL);
        let now = now();
        let overdue = state.tell_overdue(now);
        if overdue > 0 {
            let model = &*shared.name;
            tracing::warn!(
                model,
                runs = overdue,
                "a run continues after its deadline and was told to end"
            );
        }
        let Some(told_before) = now.checked_sub(shared.lost_after) else { continue };
        while let Some(lost) = state.lose(told_before) {
            give_up(shared, &mut state, lost);
        }
    }
}

/// Go on without the thread and the instance of a lost run.
fn give_up(shared: &Arc<LaneShared>, state: &mut LockedState<'_>, lost: Lost) {
    let model = &*shared.name;
    let count = shared.upkeep.lost_runs.fetch_add(1, Ordering::Relaxed) + 1;
    tracing::error!(
        model,
        count,
        "a run did not end although it was told to: its instance will be replaced"
    );
    if !lost.led
        && let Err(error) = worker::spawn(shared)
    {
        tracing::error!(model, %error, "cannot start a worker thread");
    }
    if count > LOST_RUNS_MAX {
        return state.refuse_for_lost(Refusal::LostRuns(count));
    }
    let name = format!("replace-{model}");
    if let Err(error) = sync::spawn(name, shared.clone(), |shared| replace(shared)) {
        tracing::error!(model, %error, "cannot start a thread to replace an instance");
        state.not_replaced(Refusal::NotReplaced(Arc::new(error)));
    }
}

/// Make an instance in place of a lost one.
fn replace(shared: &LaneShared) {
    let Some(replace) = &shared.upkeep.replace else { return };
    let made = replace();
    let mut state = shared.lock();
    match made {
        Ok(model) => {
            tracing::info!(model = &*shared.name, "an instance was replaced");
            let surplus = state.add_instance(model);
            drop(state);
            drop(surplus);
        }
        Err(error) => {
            tracing::error!(model = &*shared.name, ?error, "an instance cannot be replaced");
            state.not_replaced(Refusal::NotReplaced(error.into()));
        }
    }
}
