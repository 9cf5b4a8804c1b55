//! Running one request through a handler: one call of a plugin, which runs models while it lasts.
//!
//! The guest's call and this task hand each other runs and their outcomes (`ModelRuns` of the
//! sandbox). So the receipt has one owner, and the sandbox knows no lane.
//!
//! Invariant: each run that has ended is in the receipt, however the request ends.

use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use gristmill_batch::{RunError, SubmitError};
use gristmill_core::{
    CallUsage, ClientError, ErrorCode, ModelErrorKind, ModelRun, NamedTensor, PluginCall, Receipt,
    Span, Stage,
};
use gristmill_sandbox::{
    AskedModel, AskedRuns, CallError, Failure, Grant, Lines, ModelCall, ModelRuns, Request,
    Response, RunFault, RunFaultKind, RunOutcome, RunOutputs, WantedRun,
};
use gristmill_snapshot::{Handler, HandlerModel};
use tracing::{Instrument, debug_span};

use crate::pipeline::{InferError, PipelineRun, Work, failed};
use crate::quota::held_rows;
use crate::submit::{rows_of, run_model};

impl PipelineRun<'_> {
    /// Call the handler, and run the models that it asks for.
    pub(crate) async fn handler(
        self,
        handler: &Handler,
        request: Request,
    ) -> Result<Response, InferError> {
        let Self { work, own_lines, runs, receipt } = self;
        let (route, context) = (&*work.route, &work.context);
        let began = Instant::now();
        let mut noted = HandlerNoted {
            receipt,
            began,
            took: None,
            used: OnceLock::new(),
            runs: Mutex::default(),
        };
        noted.receipt.enters(Stage::Handle);
        let answer = {
            let (models, mut asked) = ModelRuns::new(runs);
            let lines = Lines {
                source: &handler.source,
                request_id: &context.request_id,
                own_lines: own_lines.as_ref(),
            };
            let grant = Grant {
                limits: &route.limits.plugin,
                account: &route.quota.calls,
                lines: Some(lines),
                usage: Some(&noted.used),
                models: Some(&models),
                systems: Some(work.systems()),
                assets: Some(&handler.assets),
            };
            let runner = Runner { handler, work, noted: &noted };
            let call = handler.plugin.handle(context.clone(), request, grant);
            let mut call = pin!(call.instrument(debug_span!("handle")));
            loop {
                tokio::select! {
                    // The call goes on only when its runs are answered.
                    biased;
                    answer = &mut call => break answer,
                    Some(asked) = asked.recv() => runner.answer(asked).await,
                }
            }
        };
        noted.took = Some(began.elapsed());
        let faults = noted.with_runs(|runs| std::mem::take(&mut runs.failed));
        drop(noted);
        answer.map_err(|error| match error {
            CallError::Model(fault) => failed_run(fault, faults),
            error => failed(Stage::Handle)(error),
        })
    }
}

/// The error of a request whose handler passed on the fault of a run: that of the run itself, if
/// there was one.
fn failed_run(fault: RunFault, faults: VecDeque<(RunFault, InferError)>) -> InferError {
    let mut faults = faults.into_iter().rev();
    // By the text alone: the errors of `wasi:nn` have fewer kinds.
    if let Some((_, error)) = faults.find(|(told_fault, _)| told_fault.text == fault.text) {
        return error;
    }
    let error = match fault.kind {
        // The sandbox itself tells of inputs that are too many, for example.
        RunFaultKind::InvalidInput => CallError::Model(fault),
        _ => CallError::Failure(Failure::Internal(fault.text)),
    };
    InferError::Plugin { stage: Stage::Handle, error }
}

/// Maximum faults of runs that are kept, to find the one that the handler passes on.
const FAULTS_MAX: usize = 64;

/// Notes what a handler's call and its runs used when the request has run, also if its client or
/// its time is gone.
struct HandlerNoted<'a> {
    receipt: &'a mut Receipt,
    began: Instant,
    took: Option<Duration>,
    used: OnceLock<CallUsage>,
    runs: Mutex<Runs>,
}

/// The runs of a call so far.
#[derive(Default)]
struct Runs {
    ended: Vec<ModelRun>,
    /// How long the call has waited for them.
    waited: Duration,
    /// Since when it waits now.
    since: Option<Instant>,
    /// The last ones that failed, and what the call was told of each.
    failed: VecDeque<(RunFault, InferError)>,
}

impl HandlerNoted<'_> {
    fn with_runs<T>(&self, work: impl FnOnce(&mut Runs) -> T) -> T {
        work(&mut self.runs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for HandlerNoted<'_> {
    fn drop(&mut self) {
        let runs = self.runs.get_mut().unwrap_or_else(PoisonError::into_inner);
        let waiting = runs.since.map_or(Duration::ZERO, |since| since.elapsed());
        let record = self.receipt.note();
        record.note_call(PluginCall {
            began: Some(self.began),
            waited: runs.waited + waiting,
            took: self.took,
            used: self.used.get().copied(),
            ..PluginCall::new(Stage::Handle)
        });
        record.spans.extend(runs.ended.drain(..).map(Span::Run));
    }
}

/// Runs the models that one call asks for.
struct Runner<'a> {
    handler: &'a Handler,
    work: &'a Work,
    noted: &'a HandlerNoted<'a>,
}

impl Runner<'_> {
    /// Give the call what it asks for. It may have ended meanwhile.
    async fn answer(&self, asked: ModelCall) {
        match asked {
            ModelCall::Runs(AskedRuns { runs, answer }) => {
                let _ = answer.send(self.all(runs).await);
            }
            ModelCall::Model(AskedModel { model, answer }) => {
                let _ = answer.send(self.granted(&model).map(|_| ()));
            }
        }
    }

    /// Run models side by side.
    async fn all(&self, wanted: Vec<WantedRun>) -> Vec<RunOutcome> {
        self.noted.with_runs(|runs| runs.since = Some(Instant::now()));
        // The last run of each model leads its batch.
        let mut models = BTreeSet::new();
        let more_follow: Vec<_> =
            wanted.iter().rev().map(|run| !models.insert(run.model.as_str())).collect();
        drop(models);
        let runs = wanted.into_iter().zip(more_follow.into_iter().rev());
        let outcomes = join_all(runs.map(|(run, more_follow)| self.one(run, more_follow))).await;
        self.noted.with_runs(|runs| {
            runs.waited += runs.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        });
        self.noted.receipt.enters(Stage::Handle);
        outcomes
    }

    async fn one(&self, WantedRun { model, inputs }: WantedRun, more_follow: bool) -> RunOutcome {
        let granted = self.granted(&model)?;
        let outputs = self.submit(granted, inputs, more_follow).await;
        outputs.map_err(|error| {
            let fault = RunFault::new(kind_of(&error), format!("model {model:?}: {error}"));
            let told_fault = fault.clone();
            self.noted.with_runs(|runs| {
                if runs.failed.len() == FAULTS_MAX {
                    runs.failed.pop_front();
                }
                runs.failed.push_back((told_fault, error));
            });
            fault
        })
    }

    async fn submit(
        &self,
        HandlerModel { model, lane }: &HandlerModel,
        inputs: Vec<NamedTensor>,
        more_follow: bool,
    ) -> Result<RunOutputs, InferError> {
        // The call holds the tensors. A backend holds more beside some of them.
        let bytes: usize = inputs.iter().map(|input| input.tensor.as_bytes().len()).sum();
        let held = self.work.route.quota.bytes.hold(0);
        held.try_add(NamedTensor::bytes_of(&inputs).saturating_sub(bytes))?;
        let mut submission = self.work.submission(inputs);
        submission.more_follow = more_follow;
        let _rows = held_rows(&self.work.route.quota, rows_of(lane, &submission))?;
        let running = run_model(model, lane, submission, self.noted.receipt);
        let (run, outputs) = running.instrument(debug_span!("infer")).await;
        self.noted.with_runs(|runs| runs.ended.push(run));
        let outputs = lane.named(outputs?);
        held.release();
        held.try_add(NamedTensor::bytes_of(&outputs))?;
        Ok(RunOutputs { outputs, held })
    }

    /// The model that the pipeline names so.
    fn granted(&self, model: &str) -> Result<&HandlerModel, RunFault> {
        self.handler.models.get(model).ok_or_else(|| self.not_granted(model))
    }

    fn not_granted(&self, model: &str) -> RunFault {
        let granted = self.handler.models.keys().map(|name| format!("{:?}", name.as_str()));
        let granted: Vec<_> = granted.collect();
        let text = format!(
            "the pipeline {:?} has no model {model:?} under \"models\", but {}: name it in the \
             pipeline's document, or in gristmill plugin test with --model NAME=MODEL",
            self.work.route.pipeline.as_str(),
            granted.join(", "),
        );
        RunFault::new(RunFaultKind::NotGranted, text)
    }
}

/// What a handler is told about a run that failed.
fn kind_of(error: &InferError) -> RunFaultKind {
    match error {
        InferError::Model(SubmitError::Input(_) | SubmitError::TooManyRows { .. }) => {
            RunFaultKind::InvalidInput
        }
        InferError::Model(SubmitError::Failed { source: RunError::Model(source), .. })
            if source.kind == ModelErrorKind::InvalidInput =>
        {
            RunFaultKind::InvalidInput
        }
        error => match error.code() {
            ErrorCode::ModelFailed => RunFaultKind::Failed,
            ErrorCode::Unavailable => RunFaultKind::Unavailable,
            _ => RunFaultKind::Overloaded,
        },
    }
}
