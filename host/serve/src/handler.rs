//! Running one request through a handler: one call of a plugin, which runs models while it lasts.
//!
//! The guest's call and this task hand each other runs and their outcomes (`ModelRuns` of the
//! sandbox). So the receipt has one owner, and the sandbox knows no lane.
//!
//! Invariant: each run that has ended is in the receipt, however the request ends.

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
    CallError, Context, Failure, Grant, Lines, ModelRuns, Request, Response, RunFault,
    RunFaultKind, RunOutcome, WantedRun,
};
use gristmill_snapshot::{Handler, HandlerModel, Route};
use tracing::{Instrument, debug_span};

use crate::pipeline::{InferError, PipelineRun, Queueing, failed, submission};
use crate::quota::held_rows;
use crate::submit::{rows_of, run_model};

impl PipelineRun<'_> {
    /// Call the handler, and run the models that it asks for.
    pub(crate) async fn handler(
        self,
        handler: &Handler,
        request: Request,
    ) -> Result<Response, InferError> {
        let Self { route, context, queueing, own, receipt, .. } = self;
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
            let (models, mut asked) = ModelRuns::new();
            let lines = Lines {
                source: &handler.source,
                request_id: &context.request_id,
                own_lines: own.as_ref(),
            };
            let grant = Grant {
                limits: &route.limits.plugin,
                account: &route.quota.calls,
                lines: Some(lines),
                usage: Some(&noted.used),
                models: Some(&models),
            };
            let runner = Runner { handler, route, context, queueing, noted: &noted };
            let call = handler.plugin.handle(context.clone(), request, grant);
            let mut call = pin!(call.instrument(debug_span!("handle")));
            loop {
                tokio::select! {
                    // The call goes on only when its runs are answered.
                    biased;
                    answer = &mut call => break answer,
                    Some(asked) = asked.recv() => {
                        let outcomes = runner.all(asked.runs).await;
                        // It may have ended meanwhile.
                        let _ = asked.answer.send(outcomes);
                    }
                }
            }
        };
        noted.took = Some(began.elapsed());
        let last = noted.with_runs(|runs| runs.failed.take());
        drop(noted);
        answer.map_err(|error| match error {
            CallError::Model(fault) => failed_run(fault, last),
            error => failed(Stage::Handle)(error),
        })
    }
}

/// The error of a request whose handler passed on the fault of a run: that of the run itself, if
/// there was one.
fn failed_run(fault: RunFault, last: Option<(RunFaultKind, InferError)>) -> InferError {
    match last {
        Some((kind, error)) if kind == fault.kind => error,
        _ => {
            let error = CallError::Failure(Failure::Internal(fault.text));
            InferError::Plugin { stage: Stage::Handle, error }
        }
    }
}

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
    /// The last one that failed.
    failed: Option<(RunFaultKind, InferError)>,
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
        record.spans.extend(runs.ended.drain(..).map(Span::Run));
        record.note_call(PluginCall {
            began: Some(self.began),
            waited: runs.waited + waiting,
            took: self.took,
            used: self.used.get().copied(),
            ..PluginCall::new(Stage::Handle)
        });
    }
}

/// Runs the models that one call asks for.
struct Runner<'a> {
    handler: &'a Handler,
    route: &'a Route,
    context: &'a Context,
    queueing: Queueing,
    noted: &'a HandlerNoted<'a>,
}

impl Runner<'_> {
    /// Run models side by side.
    async fn all(&self, wanted: Vec<WantedRun>) -> Vec<RunOutcome> {
        self.noted.with_runs(|runs| runs.since = Some(Instant::now()));
        let count = wanted.len();
        let runs = wanted.into_iter().zip(1..);
        let outcomes = join_all(runs.map(|(wanted, at)| self.one(wanted, at < count))).await;
        self.noted.with_runs(|runs| {
            runs.waited += runs.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        });
        self.noted.receipt.enters(Stage::Handle);
        outcomes
    }

    async fn one(&self, WantedRun { model, inputs }: WantedRun, more_follow: bool) -> RunOutcome {
        let granted = self.handler.models.get(model.as_str());
        let granted = granted.ok_or_else(|| self.not_granted(&model))?;
        let outputs = self.submit(granted, inputs, more_follow).await;
        outputs.map_err(|error| {
            let (kind, text) = (kind_of(&error), format!("model {model:?}: {error}"));
            self.noted.with_runs(|runs| runs.failed = Some((kind, error)));
            RunFault { kind, text }
        })
    }

    async fn submit(
        &self,
        HandlerModel { model, lane }: &HandlerModel,
        inputs: Vec<NamedTensor>,
        more_follow: bool,
    ) -> Result<Vec<NamedTensor>, InferError> {
        // The call holds the tensors. A backend holds more beside some of them.
        let bytes: usize = inputs.iter().map(|input| input.tensor.as_bytes().len()).sum();
        let held = self.route.quota.bytes.hold(0);
        held.try_add(NamedTensor::bytes_of(&inputs).saturating_sub(bytes))?;
        let mut submission = submission(self.route, self.context, self.queueing, inputs);
        submission.more_follow = more_follow;
        let _rows = held_rows(&self.route.quota, rows_of(lane, &submission))?;
        let began = Some(Instant::now());
        let running = run_model(model, lane, submission, self.noted.receipt);
        let (run, outputs) = running.instrument(debug_span!("infer")).await;
        self.noted.with_runs(|runs| runs.ended.push(ModelRun { began, ..run }));
        Ok(outputs?)
    }

    fn not_granted(&self, model: &str) -> RunFault {
        let granted = self.handler.models.keys().map(|name| format!("{:?}", name.as_str()));
        let granted: Vec<_> = granted.collect();
        let text = format!(
            "the pipeline {:?} has no model {model:?} under \"models\", but {}: name it in the \
             pipeline's document",
            self.route.pipeline.as_str(),
            granted.join(", "),
        );
        RunFault { kind: RunFaultKind::NotGranted, text }
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
