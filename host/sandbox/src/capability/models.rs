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
        self.meter.take_turns().await?;
        if runs.len() > RUNS_AT_ONCE_MAX {
            let (limit, runs) = (RUNS_AT_ONCE_MAX, runs.len());
            return Err(Limited::Call(CallLimit::RunsAtOnce { limit, runs }).into());
        }
        let Some(models) = &self.models else {
            let why = "only a handler runs models: this call is not that of `handle`";
            let refused = || Err(wit::InferError::NotGranted(why.into()));
            return Ok(runs.iter().map(|_| refused()).collect());
        };
        if models.runs.count(runs.len()) > RUNS_MAX {
            return Err(Limited::Call(CallLimit::Runs(RUNS_MAX)).into());
        }
        let inputs = runs.iter().flat_map(|run| &run.inputs);
        let bytes: usize = inputs.map(|(name, _)| INPUT_BYTES + name.len()).sum();
        self.before_looking_at(bytes).await?;
        self.hold(runs.len() * RUN_BYTES + bytes)?;
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
        let mut ran = self.run(wanted).await?.into_iter();
        let outcomes = outcomes.into_iter().filter_map(|outcome| outcome.or_else(|| ran.next()));
        outcomes.map(|outcome| self.outputs(outcome)).collect()
    }
}

impl<S: Send> CallState<S> {
    /// The run that the guest wants, with the tensors that it lends.
    fn wanted(&self, run: wit::Run) -> wasmtime::Result<Result<WantedRun, RunFault>> {
        let wit::Run { model, inputs } = run;
        if model.len() > MODEL_NAME_MAX {
            let text = format!(
                "the pipeline has no model with a name of {} bytes: names have at most \
                 {MODEL_NAME_MAX}",
                model.len()
            );
            return Ok(Err(RunFault::new(RunFaultKind::NotGranted, text)));
        }
        let invalid = |text: String| {
            let text = format!("model {model:?}: {text}");
            Ok(Err(RunFault::new(RunFaultKind::InvalidInput, text)))
        };
        if inputs.len() > INPUTS_MAX {
            return invalid(format!("{} inputs are over the limit of {INPUTS_MAX}", inputs.len()));
        }
        if let Some(bytes) =
            inputs.iter().map(|(name, _)| name.len()).find(|bytes| *bytes > INPUT_NAME_MAX)
        {
            return invalid(format!(
                "an input's name of {bytes} bytes is over the limit of {INPUT_NAME_MAX}"
            ));
        }
        let inputs = inputs.into_iter().map(|(name, tensor)| {
            let tensor = self.table.get(&tensor)?.clone();
            Ok(NamedTensor { name: name.into(), tensor })
        });
        let inputs = inputs.collect::<wasmtime::Result<_>>()?;
        Ok(Ok(WantedRun { model, inputs }))
    }

    /// Wait for the runs, without permits.
    async fn run(&mut self, wanted: Vec<WantedRun>) -> wasmtime::Result<Vec<RunOutcome>> {
        let Some(models) = self.models.as_ref().filter(|_| !wanted.is_empty()) else {
            return Ok(Vec::new());
        };
        models.permits.pause();
        let outcomes = models.runs.ask(wanted).await;
        models.permits.resume(&self.meter).await?;
        outcomes.map_err(|_| wasmtime::Error::msg("the request is over"))
    }

    /// The outcome of a run, as the contract has it.
    fn outputs(&mut self, outcome: RunOutcome) -> wasmtime::Result<Outputs> {
        let RunOutputs { outputs, held } = match outcome {
            Ok(outputs) => outputs,
            Err(fault) => return Ok(Err(error_of(fault))),
        };
        let bytes = outputs.iter().map(|output| output.tensor.as_bytes().len()).sum();
        self.take_over(bytes, &held)?;
        Ok(Ok(self.named_tensors(outputs)?))
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
