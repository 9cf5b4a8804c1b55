//! The changes that wait for the lock.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::change_request::ChangeRequest;
use crate::error::ControlError;
use crate::releases::step::{NextStep, Prepared};

/// Maximum changes that are made together. The first one waits until the last one is decided.
const TOGETHER_MAX: usize = 32;

/// The changes that wait for the lock, in the order in which they came.
#[derive(Default)]
pub(crate) struct Queue(Mutex<VecDeque<QueuedChange>>);

pub(super) struct QueuedChange {
    pub(super) request: Arc<ChangeRequest>,
    pub(super) prepared: Prepared,
    answer: oneshot::Sender<(StepResult, Prepared)>,
}

/// The next step.
pub(super) type StepResult = Result<NextStep, ControlError>;

impl Queue {
    /// Let a change wait. Returns where its outcome arrives.
    pub(super) fn push(
        &self,
        request: Arc<ChangeRequest>,
        prepared: Prepared,
    ) -> oneshot::Receiver<(StepResult, Prepared)> {
        let (answer, answered) = oneshot::channel();
        self.0.lock().push_back(QueuedChange { request, prepared, answer });
        answered
    }

    /// Take those that have waited longest.
    pub(super) fn take(&self) -> Vec<QueuedChange> {
        let mut all = self.0.lock();
        let count = all.len().min(TOGETHER_MAX);
        all.drain(..count).collect()
    }
}

#[cfg(test)]
impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

impl QueuedChange {
    /// The client may have left.
    pub(super) fn answer(self, outcome: StepResult) {
        let Self { answer, prepared, .. } = self;
        let _ = answer.send((outcome, prepared));
    }

    pub(super) fn refuse(self, error: &Arc<ControlError>) {
        self.answer(Err(ControlError::Common(error.clone())));
    }
}
