//! The runs of models that a call asks for, on their way between the guest and whoever runs models.
//!
//! Refuses to know how models are run. A call asks for runs and waits for their outcomes, so there
//! is at most one [`ModelCall`] of a call at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use gristmill_core::{HeldBytes, NamedTensor};
use tokio::sync::{mpsc, oneshot};

/// Maximum inputs that a plugin may give a model.
pub(crate) const INPUTS_MAX: usize = 1024;

/// Maximum bytes of an input's name.
pub(crate) const INPUT_NAME_MAX: usize = 1024;

/// A run that a call asks for.
#[derive(Debug)]
pub struct WantedRun {
    /// The name that the plugin's code has for the model.
    pub model: String,
    /// A tensor for each of the model's inputs, if the plugin does it right.
    pub inputs: Vec<NamedTensor>,
}

/// Why a run gave no outputs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct RunFault {
    /// What a plugin may do about it.
    pub kind: RunFaultKind,
    /// What is wrong, for the plugin's author.
    pub text: String,
}

/// The longest text of a fault, in bytes: no more of it comes back from the plugin.
pub(crate) const FAULT_TEXT_MAX: usize = 2 << 10;

impl RunFault {
    /// A fault with this text, at most 2 KiB of it.
    pub fn new(kind: RunFaultKind, mut text: String) -> Self {
        text.truncate(text.floor_char_boundary(FAULT_TEXT_MAX));
        Self { kind, text }
    }
}

/// The kinds of faults: the cases of the contract's `infer-error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFaultKind {
    /// The pipeline does not name the model.
    NotGranted,
    /// The inputs are not what the model takes.
    InvalidInput,
    /// The model or the tenant is too busy.
    Overloaded,
    /// The model cannot run now.
    Unavailable,
    /// The model failed.
    Failed,
}

/// The outputs of a run.
#[derive(Debug)]
pub struct RunOutputs {
    /// The outputs, in the model's order.
    pub outputs: Vec<NamedTensor>,
    /// Their bytes, of the owner's budget, until the call has counted them.
    pub held: HeldBytes,
}

/// The outputs of a run, or why there are none.
pub type RunOutcome = Result<RunOutputs, RunFault>;

/// What a call asks for.
#[derive(Debug)]
pub enum ModelCall {
    /// Runs.
    Runs(AskedRuns),
    /// Whether it may run a model.
    Model(AskedModel),
}

/// Asks whether a call may run a model.
#[derive(Debug)]
pub struct AskedModel {
    /// The name that the plugin's code has for it.
    pub model: String,
    /// Takes the answer: [`RunFaultKind::NotGranted`] if it may not.
    pub answer: oneshot::Sender<Result<(), RunFault>>,
}

/// Runs that a call asks for, to be run side by side.
#[derive(Debug)]
pub struct AskedRuns {
    /// The runs.
    pub runs: Vec<WantedRun>,
    /// Takes the outcome of each, in the same order.
    pub answer: oneshot::Sender<Vec<RunOutcome>>,
}

/// The number of runs that the calls of one request have asked for so far. It is made for the first
/// call that may ask.
#[derive(Debug, Default)]
pub struct RunCount(OnceLock<Arc<AtomicUsize>>);

/// The side of the call, which the grant of a handler has.
#[derive(Clone, Debug)]
pub struct ModelRuns {
    sender: mpsc::UnboundedSender<ModelCall>,
    count: Arc<AtomicUsize>,
}

impl ModelRuns {
    /// Both sides, for one call, whose runs count in `count`.
    pub fn new(count: &RunCount) -> (Self, mpsc::UnboundedReceiver<ModelCall>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let count = count.0.get_or_init(Arc::default).clone();
        (Self { sender, count }, receiver)
    }

    /// Count so many runs. Returns all of the request so far.
    pub(crate) fn count(&self, runs: usize) -> usize {
        self.count.fetch_add(runs, Ordering::Relaxed) + runs
    }

    /// Ask for runs. The receiver gets nothing if the request is over.
    pub(crate) fn ask(&self, runs: Vec<WantedRun>) -> oneshot::Receiver<Vec<RunOutcome>> {
        let (answer, outcomes) = oneshot::channel();
        // If it cannot be sent, `answer` is dropped, which says that the request is over.
        let _ = self.sender.send(ModelCall::Runs(AskedRuns { runs, answer }));
        outcomes
    }

    /// Ask whether the call may run a model. The receiver gets nothing if the request is over.
    pub(crate) fn ask_for(&self, model: String) -> oneshot::Receiver<Result<(), RunFault>> {
        let (answer, granted) = oneshot::channel();
        let _ = self.sender.send(ModelCall::Model(AskedModel { model, answer }));
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_a_request_count_together() {
        let count = RunCount::default();
        let ((one, _), (other, _)) = (ModelRuns::new(&count), ModelRuns::new(&count));
        assert_eq!([one.count(3), other.count(4), one.count(0)], [3, 7, 7]);
    }
}
