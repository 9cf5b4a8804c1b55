//! The worker threads of a lane. Each runs one batch after the other while there are any.
//!
//! There is one worker more than instances: while the instances are busy, it answers the batch
//! before and, if copying a batch takes long, stages the next one.
//!
//! Invariants: an instance runs on one thread at a time, and that thread puts it back, unless it
//! was given up meanwhile; one request's failure is not another's.

use std::sync::Arc;

use crate::assignment::Assignment;
use crate::state::{LaneShared, LockedState, Runner};
use crate::sync;

/// Start a worker.
///
/// # Errors
/// The operating system cannot start a thread.
pub(crate) fn spawn(shared: &Arc<LaneShared>) -> std::io::Result<()> {
    sync::spawn(format!("model-{}", shared.name), shared.clone(), |shared| run(shared))
}

/// Run, answer and stage batches until the lane is closed and its queue empty.
fn run(shared: &LaneShared) {
    let mut state = shared.lock();
    loop {
        if let Some(mut batch) = state.next_unanswered() {
            drop(state);
            batch.answer();
            state = shared.lock();
            state.recycle(batch);
        } else if state.leave_surplus() {
            return;
        } else if let Some(assignment) = state.begin(Runner::Worker) {
            drop(state);
            state = run_batches(shared, assignment);
        } else if state.may_stage() {
            state = stage_and_run(shared, state);
        } else if state.is_drained() {
            // Another worker may still be needed for the rest of the work.
            state.wake_all_workers();
            return;
        } else {
            state = state.wait_for_work();
        }
    }
}

/// Run a batch, and further ones while there are any and another worker can answer.
fn run_batches(shared: &LaneShared, mut assignment: Assignment) -> LockedState<'_> {
    loop {
        let mut finished = assignment.run(&shared.stager, &shared.sharing, &shared.tally);
        if finished.is_short() {
            return shared.answer(finished);
        }
        let mut state = shared.lock();
        state.learn(&mut finished);
        // If its clients may be back in time for the next batch, answering goes first. Else the
        // instance first goes to a worker that has a staged batch.
        let other_goes_on = state.has_staged() || state.has_waiting_worker();
        if finished.should_wait || !other_goes_on {
            drop(state);
            return shared.answer(finished);
        }
        state.hand_over(finished);
        match state.begin(Runner::Worker) {
            Some(next) => {
                drop(state);
                assignment = next;
            }
            None => return state,
        }
    }
}

/// Take and stage the next batch, wait for an instance, and run the batch.
fn stage_and_run<'a>(shared: &'a LaneShared, mut state: LockedState<'a>) -> LockedState<'a> {
    let Some(mut batch) = state.take_to_stage() else { return state };
    drop(state);
    batch.stage(&shared.stager);
    match shared.lock().begin_staged(batch) {
        (state, Some(assignment)) => {
            drop(state);
            run_batches(shared, assignment)
        }
        (state, None) => state,
    }
}
