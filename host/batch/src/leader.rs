//! Leading: a submitting task runs short batches itself, its own request among them.
//!
//! Handing a short batch to a worker and back would cost as much again as running it. A leader
//! leaves after a few batches, so that its own client has its answer.

use crate::state::{LaneShared, Runner};
use crate::sync::now;

/// How many batches a leader runs before it leaves the rest to a worker.
pub(crate) const LED_BATCHES_MAX: usize = 4;

/// Run the queued requests for as long as that is short; a worker runs what is left.
pub(crate) fn lead(shared: &LaneShared) {
    let mut state = shared.lock();
    for _ in 0..LED_BATCHES_MAX {
        if !state.may_lead() {
            break;
        }
        let Some(assignment) = state.begin(Runner::Leader) else { break };
        drop(state);
        state = shared.answer(assignment.run(&shared.pool, &shared.tally));
    }
    state.wake_worker(now());
}
