//! The changes that wait for the lock.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::change_request::ChangeRequest;
use crate::error::ControlError;
use crate::releases::step::{Ready, Step};

/// The most changes that are made together. The first one waits until the last one is decided.
const TOGETHER_MAX: usize = 32;

/// The changes that wait for the lock, in the order in which they came.
#[derive(Default)]
pub(crate) struct Queue(Mutex<VecDeque<Waiting>>);

pub(super) struct Waiting {
    pub(super) request: Arc<ChangeRequest>,
    pub(super) ready: Ready,
    answer: oneshot::Sender<(Outcome, Ready)>,
}

/// The next step.
pub(super) type Outcome = Result<Step, ControlError>;

impl Queue {
    /// Let a change wait. Returns where its outcome arrives.
    pub(super) fn push(
        &self,
        request: Arc<ChangeRequest>,
        ready: Ready,
    ) -> oneshot::Receiver<(Outcome, Ready)> {
        let (answer, answered) = oneshot::channel();
        self.0.lock().push_back(Waiting { request, ready, answer });
        answered
    }

    /// Take those that have waited longest.
    pub(super) fn take(&self) -> Vec<Waiting> {
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

impl Waiting {
    /// The client may have left.
    pub(super) fn answer(self, outcome: Outcome) {
        let Self { answer, ready, .. } = self;
        let _ = answer.send((outcome, ready));
    }

    pub(super) fn refuse(self, error: &Arc<ControlError>) {
        self.answer(Err(ControlError::Common(error.clone())));
    }
}
