//! Leading: a submitting task runs short batches itself, its own request among them.
//!
//! Handing a short batch to a worker and back would cost as much again as running it. A leader
//! stops after a few batches, so that its own client gets its answer.

use crate::state::{LaneShared, Runner};
use crate::sync::now;

/// Maximum batches that a submitting task runs before it leaves the rest to a worker.
pub const LED_BATCHES_MAX: usize = 4;

/// Run queued requests as long as batches are short, up to the maximum. A worker runs the rest.
pub(crate) fn lead(shared: &LaneShared) {
    let mut state = shared.lock();
    for _ in 0..LED_BATCHES_MAX {
        if !state.may_lead() {
            break;
        }
        let Some(assignment) = state.begin(Runner::Leader) else { break };
        drop(state);
        state = shared.answer(assignment.run(&shared.stager, &shared.sharing, &shared.tally));
    }
    state.wake_worker(now());
}
