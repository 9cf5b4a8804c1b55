//! Running one request through a pipeline, on one page. `handler` has the way through a handler.
//!
//! Invariant: the tensors and the state between the two calls count against the tenant's budget
//! until the request is answered.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use gristmill_batch::{Submission, SubmitError};
use gristmill_core::{
    CallUsage, ClientError, Deadline, ErrorCode, NamedTensor, OverBudget, PluginCall, Receipt,
    Record, Stage,
};
use gristmill_sandbox::{
    CallError, Context, Failure, Grant, GrantedSystems, Line, Lines, OwnLines, Request, Response,
    Results, RunCount,
};
use gristmill_snapshot::{Pair, Program, Route};
use tokio::time::timeout_at;
use tracing::{Instrument, Level, Span, debug_span, error_span};

use crate::quota::{QuotaError, held_rows};
use crate::submit::{code_of, retry_after, rows_of, submit, time_given};

/// The work on a request for a pipeline, or on its rows. It owns all that they need besides.
pub struct Work {
    /// The pipeline, resolved.
    pub route: Arc<Route>,
    /// What its plugins may ask for: its id as in the log, its deadline.
    pub context: Arc<Context>,
    /// The client's wishes for the queue.
    pub queueing: Queueing,
    /// Whether this is a trial of the pipeline, not a client's request: its lines are collected,
    /// and its plugins change nothing elsewhere.
    pub is_trial: bool,
    /// Whether its lines are collected for a trace.
    pub is_traced: bool,
}

/// A client's wishes for the queueing of its request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queueing {
    /// The model's priority level; level 1 is served first. If none, the pipeline's level applies.
    pub priority: Option<u32>,
    /// The longest time in the queue, if the level lets requests choose it.
    pub timeout: Option<Duration>,
}

/// A pipeline's answer.
pub struct PipelineAnswer {
    /// The postprocessor's response.
    pub outcome: Result<Response, InferError>,
    /// The lines of its plugin calls, if the pipeline has `debug`, or this is a trial or traced.
    pub lines: Vec<Line>,
}

/// The reason why a request was not answered. Its text is for the client.
#[derive(Debug)]
pub enum InferError {
    /// A plugin failed.
    Plugin {
        /// The stage in which it ran.
        stage: Stage,
        /// Why it failed.
        error: CallError,
    },
    /// The lane refused the request, or its batch failed.
    Model(SubmitError),
    /// The deadline passed; holds the time from the request's arrival to the deadline.
    DeadlineExceeded(Duration),
    /// The tenant's budget has no room for the tensors.
    TenantBusy(OverBudget),
    /// The tenant has too many rows under way.
    Quota(QuotaError),
}

impl fmt::Display for InferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The plugin's text is for those who see its lines.
            Self::Plugin { stage, error: CallError::Failure(Failure::Internal(_)) } => {
                write!(f, "{stage}: the plugin failed")
            }
            Self::Plugin { error: CallError::Failure(failure), .. } => f.write_str(failure.text()),
            Self::Plugin { error: CallError::TooBusy(busy), .. } => busy.fmt(f),
            Self::Plugin { stage, error } => write!(f, "{stage}: {error}"),
            Self::Model(error) => error.fmt(f),
            Self::DeadlineExceeded(within) => {
                write!(f, "no answer within {} ms", within.as_millis())
            }
            Self::TenantBusy(error) => error.fmt(f),
            Self::Quota(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InferError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Plugin { error, .. } => Some(error),
            Self::Model(error) => Some(error),
            Self::TenantBusy(error) => Some(error),
            Self::Quota(error) => Some(error),
            Self::DeadlineExceeded(_) => None,
        }
    }
}

impl From<SubmitError> for InferError {
    fn from(error: SubmitError) -> Self {
        Self::Model(error)
    }
}

impl From<QuotaError> for InferError {
    fn from(error: QuotaError) -> Self {
        Self::Quota(error)
    }
}

impl From<OverBudget> for InferError {
    fn from(error: OverBudget) -> Self {
        Self::TenantBusy(error)
    }
}

impl ClientError for InferError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Plugin { error, .. } => error.code(),
            // The pipeline's plugin made the inputs.
            Self::Model(SubmitError::Input(_)) => ErrorCode::PluginInvalidOutput,
            Self::Model(error) => code_of(error),
            Self::DeadlineExceeded(_) => ErrorCode::DeadlineExceeded,
            Self::TenantBusy(_) => ErrorCode::TenantBusy,
            Self::Quota(error) => error.code(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Model(error) => retry_after(error),
            Self::Quota(error) => error.retry_after(),
            Self::Plugin { error: CallError::TooBusy(busy), .. } => Some(busy.retry_after()),
            _ => None,
        }
    }
}

/// The span of a request's log lines. It has the highest level, so that a filter that passes a line
/// also passes its request. `variant` is that of a pipeline with a candidate,
/// `trace_id` that of the request's trace, if it has one.
pub fn request_span(
    route: &Route,
    id: &str,
    variant: Option<&'static str>,
    trace_id: Option<&str>,
) -> Span {
    let (tenant, pipeline) = (route.tenant.as_str(), route.pipeline.as_str());
    error_span!("request", request_id = id, tenant, pipeline, variant, trace_id)
}

impl Work {
    /// The work on a client's request with this id. `deadline` is the earlier of the route's own
    /// and the client's.
    pub fn new(route: Arc<Route>, request_id: Arc<str>, deadline: Deadline) -> Self {
        let model = route.program.lanes().next().map_or(&route.pipeline, |(model, _)| model);
        let context = Arc::new(Context {
            tenant: route.tenant.clone(),
            pipeline: route.pipeline.clone(),
            model: model.clone(),
            request_id,
            settings: route.settings.clone(),
            deadline,
        });
        Self { route, context, queueing: Queueing::default(), is_trial: false, is_traced: false }
    }

    /// Run the request, or one of its rows, within its deadline, and note in `receipt` what it
    /// takes. `runs` counts the runs of models, those of all rows together. Log lines belong to the
    /// caller's span ([`request_span`]). The caller has charged the request, unless it is a trial.
    pub async fn run(
        &self,
        request: Request,
        runs: &RunCount,
        receipt: &mut Receipt,
    ) -> PipelineAnswer {
        let (route, request_id) = (&*self.route, &self.context.request_id);
        let deadline = self.context.deadline;
        let mut own_lines = None;
        let done = {
            let run =
                PipelineRun { work: self, own_lines: &mut own_lines, runs, receipt: &mut *receipt };
            // Pinned here, because the timeout would move it.
            let running = pin!(run.run(request));
            timeout_at(deadline.instant().into(), running).await
        };
        let outcome = match done {
            Ok(outcome) => outcome,
            Err(_) => {
                let within = time_given(receipt, deadline);
                keep_late(receipt.record(), route, request_id, within);
                Err(InferError::DeadlineExceeded(within))
            }
        };
        if let Err(error) = &outcome {
            log(error, route, request_id);
        }
        let lines = own_lines.map(|lines: Arc<OwnLines>| lines.take()).unwrap_or_default();
        PipelineAnswer { outcome, lines }
    }

    /// The other systems that its plugins may ask.
    pub(crate) fn systems(&self) -> GrantedSystems<'_> {
        let (stores, outgoing) = (self.route.stores.as_ref(), self.route.outgoing.as_ref());
        GrantedSystems { stores, outgoing, is_trial: self.is_trial }
    }

    /// A run of one of the pipeline's models for the request.
    pub(crate) fn submission(&self, inputs: Vec<NamedTensor>) -> Submission {
        let Self { route, context, queueing, .. } = self;
        Submission {
            tenant: route.tenant.clone(),
            weight: route.weight,
            priority: queueing.priority.or(route.priority),
            timeout: queueing.timeout,
            inputs,
            arrived: Instant::now(),
            deadline: context.deadline,
            keeps_apart: route.keeps_apart,
            more_follow: false,
        }
    }
}

/// Keep with the plugin's lines that its call was under way when the request's time was over.
fn keep_late(record: &Record, route: &Route, request_id: &Arc<str>, within: Duration) {
    for call in record.calls().filter(|call| call.took.is_none()) {
        let (stage, within) = (call.stage, within.as_millis());
        let used = call.used.unwrap_or_default().cpu.as_millis();
        let text = format!(
            "no answer within {within} ms: {stage} was under way, with {used} ms of CPU time so \
             far (limits.timeout_ms of the pipeline, or the request's own deadline)"
        );
        route.program.source_of(stage).keep(request_id, Level::WARN, &text);
    }
}

/// Log the details that the client does not get, and keep them with the plugin's lines, unless the
/// plugin has logged them. A plugin that refuses its input did not fail.
fn log(error: &InferError, route: &Route, request_id: &Arc<str>) {
    let InferError::Plugin { stage, error } = error else {
        return tracing::warn!(%error, "request failed");
    };
    let source = route.program.source_of(*stage);
    let plugin = source.plugin.as_str();
    match error {
        CallError::Failure(Failure::Internal(text)) => {
            // The plugin's own line has the place and the traceback.
            if !source.has_told(request_id) {
                tracing::warn!(plugin, stage = stage.name(), text, "plugin failed");
                source.keep(request_id, Level::ERROR, &format!("plugin failed: {text}"));
            }
        }
        // It is up to the load.
        CallError::TooBusy(_) => tracing::warn!(%error, "request failed"),
        CallError::Failure(_) => {}
        error => {
            let detail = error.detail();
            tracing::warn!(plugin, stage = stage.name(), error = detail, "plugin failed");
            source.keep(request_id, Level::ERROR, &detail);
        }
    }
}

/// One run of a pipeline, apart from its request.
pub(crate) struct PipelineRun<'a> {
    pub(crate) work: &'a Work,
    /// The request's own lines, if they are collected.
    pub(crate) own_lines: &'a mut Option<Arc<OwnLines>>,
    pub(crate) runs: &'a RunCount,
    pub(crate) receipt: &'a mut Receipt,
}

/// Notes what the calls of a request used when it has run, also if its client or its time is gone.
struct CallsNoted<'a> {
    receipt: &'a mut Receipt,
    pre: OnceLock<CallUsage>,
    post: OnceLock<CallUsage>,
}

impl Drop for CallsNoted<'_> {
    fn drop(&mut self) {
        let record = self.receipt.note();
        for (stage, usage) in [(Stage::Pre, &self.pre), (Stage::Post, &self.post)] {
            if let Some(used) = usage.get().copied() {
                record.note_call(PluginCall { used: Some(used), ..PluginCall::new(stage) });
            }
        }
    }
}

/// A call of a plugin that ended now.
fn ended(stage: Stage, started: Instant) -> PluginCall {
    PluginCall { began: Some(started), took: Some(started.elapsed()), ..PluginCall::new(stage) }
}

/// The error of a request whose plugin call failed in this stage.
pub(crate) fn failed(stage: Stage) -> impl FnOnce(CallError) -> InferError {
    move |error| match error {
        CallError::Busy(over) => InferError::TenantBusy(over),
        error => InferError::Plugin { stage, error },
    }
}

impl PipelineRun<'_> {
    async fn run(self, request: Request) -> Result<Response, InferError> {
        let Work { route, is_trial, is_traced, .. } = self.work;
        // The tenant's budget needs room for the lines.
        let hold = || OwnLines::hold(&route.quota.bytes);
        if *is_trial || route.debug {
            *self.own_lines = Some(hold()?);
        } else if *is_traced {
            // No request fails because it is traced.
            *self.own_lines = hold().ok();
        }
        match &route.program {
            Program::Pair(pair) => self.pair(pair, request).await,
            Program::Handler(handler) => self.handler(handler, request).await,
        }
    }

    async fn pair(self, pair: &Pair, request: Request) -> Result<Response, InferError> {
        let Self { work, own_lines, receipt, .. } = self;
        let (route, context, own_lines) = (&*work.route, &work.context, own_lines.as_ref());
        let (limits, account) = (&route.limits.plugin, &route.quota.calls);
        let calls = CallsNoted { receipt, pre: OnceLock::new(), post: OnceLock::new() };
        let (receipt, pre_usage, post_usage) = (&mut *calls.receipt, &calls.pre, &calls.post);
        let grant = |source, assets, usage| {
            let lines = Some(Lines { source, request_id: &context.request_id, own_lines });
            let (usage, systems, assets) = (Some(usage), Some(work.systems()), Some(assets));
            Grant { limits, account, lines, usage, models: None, systems, assets }
        };

        receipt.enters(Stage::Pre);
        let started = Instant::now();
        let prepared = pair
            .plugins
            .preprocess(context.clone(), request, grant(&pair.pre, &pair.pre_assets, pre_usage))
            .instrument(debug_span!("pre"))
            .await;
        receipt.note().note_call(ended(Stage::Pre, started));
        let (prepared, kept) = prepared.map_err(failed(Stage::Pre))?;
        let held = route.quota.bytes.hold(0);
        held.try_add(NamedTensor::bytes_of(&prepared.inputs) + prepared.state.len())?;

        let submission = work.submission(prepared.inputs);
        let rows = held_rows(&route.quota, rows_of(&pair.lane, &submission))?;
        let submitting = submit(&pair.model, &pair.lane, submission, receipt);
        let outputs = submitting.instrument(debug_span!("infer")).await?;
        let outputs = pair.lane.named(outputs);
        drop(rows);
        held.release();
        held.try_add(NamedTensor::bytes_of(&outputs) + prepared.state.len())?;

        receipt.enters(Stage::Post);
        let started = Instant::now();
        let results = Results { outputs, state: prepared.state };
        let grant = grant(&pair.post, &pair.post_assets, post_usage);
        let post = pair.plugins.postprocess(kept, context.clone(), results, grant);
        let response = post.instrument(debug_span!("post")).await;
        receipt.note().note_call(ended(Stage::Post, started));
        response.map_err(failed(Stage::Post))
    }
}
