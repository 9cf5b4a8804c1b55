//! `models`: runs of models that a handler asks for.
//!
//! The guest's fiber waits for them. Meanwhile the call has no permit, holds no thread and uses no
//! CPU time. Its own tensors stay counted; those that come back are counted all the time.

mod bindings;

use gristmill_core::{NamedTensor, Tensor};
use wasmtime::component::{HasSelf, Linker, Resource};

pub use self::bindings::wit;
use super::tensors::wit as tensors;
use crate::call::CallState;
use crate::error::CallLimit;
use crate::limiter::Limited;
use crate::model_runs::{
    FAULT_TEXT_MAX, INPUT_NAME_MAX, INPUTS_MAX, RunFault, RunFaultKind, RunOutcome, RunOutputs,
    WantedRun,
};

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &["gristmill:plugin/models@0.3.0"];

/// Maximum runs of one request. If it has several rows, their calls share them: each run is in the
/// one record of the request.
const RUNS_MAX: usize = 4096;

/// Maximum runs side by side.
const RUNS_AT_ONCE_MAX: usize = 256;

/// The memory that the host has for each run beside its tensors: its way through the lane, its
/// record until the request has ended, and the text of its fault.
const RUN_BYTES: usize = 2048 + FAULT_TEXT_MAX;

/// The memory of an input beside its name and its tensor.
const INPUT_BYTES: usize = 128;

/// Maximum bytes of a model's name: a longer one names none.
const MODEL_NAME_MAX: usize = 64;

/// Why a call that waits for whoever runs models gets no answer.
pub(super) const OVER: &str = "the request is over";

type Outputs = Result<Vec<tensors::NamedTensor>, wit::InferError>;

pub(crate) fn link<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

impl<S: Send> wit::Host for CallState<S> {
    async fn infer(
        &mut self,
        model: String,
        inputs: Vec<(String, Resource<Tensor>)>,
    ) -> wasmtime::Result<Outputs> {
        let mut outputs = self.infer_all(vec![wit::Run { model, inputs }]).await?;
        outputs.pop().ok_or_else(|| wasmtime::Error::msg("a run has no outcome"))
    }

    async fn infer_all(&mut self, runs: Vec<wit::Run>) -> wasmtime::Result<Vec<Outputs>> {
        let inputs = runs.iter().flat_map(|run| &run.inputs);
        let bytes = input_bytes(inputs.map(|(name, _)| name.as_str()));
        if let Err(fault) = self.begin_runs(runs.len(), bytes).await? {
            return Ok(runs.iter().map(|_| Err(error_of(fault.clone()))).collect());
        }
        let mut wanted = Vec::with_capacity(runs.len());
        let mut outcomes = Vec::with_capacity(runs.len());
        for run in runs {
            outcomes.push(match self.wanted(run)? {
                Ok(run) => {
                    wanted.push(run);
                    None
                }
                Err(fault) => Some(Err(fault)),
            });
        }
        let mut ran = self.run_models(wanted).await?.into_iter();
        let outcomes = outcomes.into_iter().filter_map(|outcome| outcome.or_else(|| ran.next()));
        outcomes.map(|outcome| self.outputs(outcome)).collect()
    }
}

impl<S: Send> CallState<S> {
    /// Count runs that begin, and the memory for them beside their tensors.
    pub(super) async fn begin_runs(
        &mut self,
        runs: usize,
        input_bytes: usize,
    ) -> wasmtime::Result<Result<(), RunFault>> {
        self.meter.take_turns().await?;
        if runs > RUNS_AT_ONCE_MAX {
            let limit = RUNS_AT_ONCE_MAX;
            return Err(Limited::Call(CallLimit::RunsAtOnce { limit, runs }).into());
        }
        let Some(models) = &self.models else { return Ok(Err(no_models())) };
        if models.runs.count(runs) > RUNS_MAX {
            return Err(Limited::Call(CallLimit::Runs(RUNS_MAX)).into());
        }
        self.before_looking_at(input_bytes).await?;
        self.hold(runs * RUN_BYTES + input_bytes)?;
        Ok(Ok(()))
    }

    /// The run that the guest wants, with the tensors that it lends.
    fn wanted(&self, run: wit::Run) -> wasmtime::Result<Result<WantedRun, RunFault>> {
        let wit::Run { model, inputs } = run;
        or_tell!(check_names(&model, inputs.iter().map(|(name, _)| name.as_str())));
        let inputs = inputs.into_iter().map(|(name, tensor)| {
            let tensor = self.table.get(&tensor)?.clone();
            Ok(NamedTensor { name: name.into(), tensor })
        });
        let inputs = inputs.collect::<wasmtime::Result<_>>()?;
        Ok(Ok(WantedRun { model, inputs }))
    }

    /// Wait for the runs, without permits.
    pub(super) async fn run_models(
        &mut self,
        wanted: Vec<WantedRun>,
    ) -> wasmtime::Result<Vec<RunOutcome>> {
        let Some(models) = self.models.as_ref().filter(|_| !wanted.is_empty()) else {
            return Ok(Vec::new());
        };
        models.permits.pause();
        let outcomes = models.runs.ask(wanted).await;
        models.permits.resume(&self.meter).await?;
        outcomes.map_err(|_| wasmtime::Error::msg(OVER))
    }

    /// The outcome of a run, as the contract has it.
    fn outputs(&mut self, outcome: RunOutcome) -> wasmtime::Result<Outputs> {
        let outputs = match outcome {
            Ok(outputs) => self.counted(outputs)?,
            Err(fault) => return Ok(Err(error_of(fault))),
        };
        Ok(Ok(self.named_tensors(outputs)?))
    }

    /// The outputs of a run, which count for the call from now on.
    pub(super) fn counted(&mut self, run: RunOutputs) -> Result<Vec<NamedTensor>, Limited> {
        let RunOutputs { outputs, held } = run;
        let bytes = outputs.iter().map(|output| output.tensor.as_bytes().len()).sum();
        self.take_over(bytes, &held)?;
        Ok(outputs)
    }
}

/// The memory of inputs with these names, beside their tensors.
pub(super) fn input_bytes<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|name| INPUT_BYTES + name.len()).sum()
}

/// The fault of a run in a call that runs no models.
pub(super) fn no_models() -> RunFault {
    let why = "only a handler runs models: this call is not that of `handle`";
    RunFault::new(RunFaultKind::NotGranted, why.into())
}

/// Check a model's name, before anything shows it.
pub(super) fn check_model(model: &str) -> Result<(), RunFault> {
    if model.len() <= MODEL_NAME_MAX {
        return Ok(());
    }
    let text = format!(
        "the pipeline has no model with a name of {} bytes: names have at most {MODEL_NAME_MAX}",
        model.len()
    );
    Err(RunFault::new(RunFaultKind::NotGranted, text))
}

/// Check the names of a run, before anything shows them.
pub(super) fn check_names<'a>(
    model: &str,
    inputs: impl ExactSizeIterator<Item = &'a str>,
) -> Result<(), RunFault> {
    check_model(model)?;
    let invalid = |text: String| {
        let text = format!("model {model:?}: {text}");
        Err(RunFault::new(RunFaultKind::InvalidInput, text))
    };
    if inputs.len() > INPUTS_MAX {
        return invalid(format!("{} inputs are over the limit of {INPUTS_MAX}", inputs.len()));
    }
    match inputs.map(str::len).find(|bytes| *bytes > INPUT_NAME_MAX) {
        Some(bytes) => invalid(format!(
            "an input's name of {bytes} bytes is over the limit of {INPUT_NAME_MAX}"
        )),
        None => Ok(()),
    }
}

fn error_of(RunFault { kind, text }: RunFault) -> wit::InferError {
    match kind {
        RunFaultKind::NotGranted => wit::InferError::NotGranted(text),
        RunFaultKind::InvalidInput => wit::InferError::InvalidInput(text),
        RunFaultKind::Overloaded => wit::InferError::Overloaded(text),
        RunFaultKind::Unavailable => wit::InferError::Unavailable(text),
        RunFaultKind::Failed => wit::InferError::Failed(text),
    }
}
