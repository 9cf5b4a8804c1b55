//! Running one request through a pipeline, on one page.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use gristmill_batch::{Submission, SubmitError};
use gristmill_core::{ClientError, Deadline, ErrorCode, NamedTensor, OverBudget, Receipt};
use gristmill_sandbox::{CallError, Context, Failure, Grant, Request, Response, Results};
use gristmill_snapshot::Route;
use gristmill_telemetry::stage;
use tokio::time::timeout_at;
use tracing::{Instrument, Span, debug_span, error_span};

use crate::submit::{retry_after, submit, time_given};

/// A request for a pipeline. It owns all that it needs.
pub struct Work {
    /// The pipeline, resolved.
    pub route: Arc<Route>,
    /// The request for the preprocessor.
    pub request: Request,
    /// Its id, as in the log.
    pub request_id: Arc<str>,
    /// The earlier of the route's own deadline and the client's.
    pub deadline: Deadline,
    /// The client's wishes for the queue.
    pub queueing: Queueing,
    /// The receipt of the request.
    pub receipt: Receipt,
}

/// A client's wishes for the queueing of its request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queueing {
    /// The model's priority level; level 1 is served first. If none, the pipeline's level applies.
    pub priority: Option<u32>,
    /// The longest time in the queue, if the level lets requests choose it.
    pub timeout: Option<Duration>,
}

/// A pipeline's answer, with the receipt that is still open.
pub struct PipelineAnswer {
    /// The postprocessor's response.
    pub outcome: Result<Response, InferError>,
    /// The receipt of the request.
    pub receipt: Receipt,
}

/// The reason why a request was not answered. Its text is for the client.
#[derive(Debug)]
pub enum InferError {
    /// A plugin failed.
    Plugin {
        /// The stage in which it ran.
        stage: &'static str,
        /// Why it failed.
        error: CallError,
    },
    /// The lane refused the request, or its batch failed.
    Model(SubmitError),
    /// The deadline passed; holds the time from the request's arrival to the deadline.
    DeadlineExceeded(Duration),
    /// The tenant's budget has no room for the tensors.
    TenantBusy(OverBudget),
}

impl fmt::Display for InferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin { stage, error: CallError::Failure(failure) } => match failure {
                Failure::InvalidInput(text)
                | Failure::UnsupportedMediaType(text)
                | Failure::Unprocessable(text) => f.write_str(text),
                // The plugin's text is for its tenant's log only.
                Failure::Internal(_) => write!(f, "{stage}: the plugin failed"),
            },
            Self::Plugin { stage, error } => write!(f, "{stage}: {error}"),
            Self::Model(error) => error.fmt(f),
            Self::DeadlineExceeded(within) => {
                write!(f, "no answer within {} ms", within.as_millis())
            }
            Self::TenantBusy(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InferError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Plugin { error, .. } => Some(error),
            Self::Model(error) => Some(error),
            Self::TenantBusy(error) => Some(error),
            Self::DeadlineExceeded(_) => None,
        }
    }
}

impl From<SubmitError> for InferError {
    fn from(error: SubmitError) -> Self {
        Self::Model(error)
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
            Self::Model(error) => error.code(),
            Self::DeadlineExceeded(_) => ErrorCode::DeadlineExceeded,
            Self::TenantBusy(_) => ErrorCode::TenantBusy,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Model(error) => retry_after(error),
            _ => None,
        }
    }
}

/// The span of a request's log lines. It has the highest level, so that a filter that passes a line
/// also passes its request.
pub fn request_span(route: &Route, id: &str) -> Span {
    let (tenant, pipeline) = (route.tenant.as_str(), route.pipeline.as_str());
    error_span!("request", request_id = id, tenant, pipeline)
}

impl Work {
    /// Run the request within its deadline. The pipeline counts it from here on, even if it fails
    /// or its client leaves. Log lines belong to the caller's span ([`request_span`]).
    pub async fn run(self) -> PipelineAnswer {
        let Self { route, request, request_id, deadline, queueing, mut receipt } = self;
        receipt.charge_to(route.statistics.clone());
        let done = {
            let context = Arc::new(Context {
                tenant: route.tenant.clone(),
                pipeline: route.pipeline.clone(),
                model: route.model_name.clone(),
                request_id,
                settings: route.settings.clone(),
                deadline,
            });
            let run = PipelineRun { route: &route, context, queueing, receipt: &mut receipt };
            // Pinned here, because the timeout would move it.
            let stages = pin!(run.stages(request));
            timeout_at(deadline.instant().into(), stages).await
        };
        let outcome = match done {
            Ok(outcome) => outcome,
            Err(_) => Err(InferError::DeadlineExceeded(time_given(&receipt, deadline))),
        };
        if let Err(error) = &outcome {
            log(error, &route);
        }
        PipelineAnswer { outcome, receipt }
    }
}

/// Log the details that the client does not get. A plugin that refuses its input did not fail.
fn log(error: &InferError, route: &Route) {
    match error {
        InferError::Plugin { error: CallError::Failure(failure), stage } => {
            if let Failure::Internal(text) = failure {
                let plugin = plugin_of(stage, route);
                tracing::warn!(plugin, stage, text, "plugin failed");
            }
        }
        InferError::Plugin { error, stage } => {
            let plugin = plugin_of(stage, route);
            tracing::warn!(plugin, stage, %error, "plugin failed");
        }
        other => tracing::warn!(error = %other, "request failed"),
    }
}

fn plugin_of<'a>(stage: &str, route: &'a Route) -> &'a str {
    if stage == stage::PRE { route.pre_name.as_str() } else { route.post_name.as_str() }
}

/// One run of a pipeline, apart from its request.
struct PipelineRun<'a> {
    route: &'a Route,
    context: Arc<Context>,
    queueing: Queueing,
    receipt: &'a mut Receipt,
}

impl PipelineRun<'_> {
    async fn stages(self, request: Request) -> Result<Response, InferError> {
        let Self { route, context, queueing, receipt } = self;
        let (limits, account) = (&route.limits.plugin, &route.quota.calls);
        let (pre_usage, post_usage) = (OnceLock::new(), OnceLock::new());
        let grant =
            |plugin, usage| Grant { limits, account, plugin: Some(plugin), usage: Some(usage) };
        let failed = |stage| {
            move |error| match error {
                CallError::Busy(over) => InferError::TenantBusy(over),
                error => InferError::Plugin { stage, error },
            }
        };

        let started = Instant::now();
        let prepared = route
            .plugins
            .preprocess(context.clone(), request, grant(&route.pre_name, &pre_usage))
            .instrument(debug_span!("pre"))
            .await;
        receipt.note().stages.pre = Some(started.elapsed());
        receipt.note().calls.pre = pre_usage.get().copied();
        let (prepared, kept) = prepared.map_err(failed(stage::PRE))?;
        let held = route.quota.bytes.hold(0);
        held.try_add(NamedTensor::bytes_of(&prepared.inputs) + prepared.state.len())?;

        let submission = Submission {
            tenant: route.tenant.clone(),
            weight: route.weight,
            priority: queueing.priority.or(route.priority),
            timeout: queueing.timeout,
            inputs: prepared.inputs,
            arrived: Instant::now(),
            deadline: context.deadline,
        };
        let submitting = submit(&route.model, submission, receipt);
        let outputs = submitting.instrument(debug_span!("infer")).await?;
        held.release();
        held.try_add(NamedTensor::bytes_of(&outputs) + prepared.state.len())?;

        let started = Instant::now();
        let results = Results { outputs, state: prepared.state };
        let grant = grant(&route.post_name, &post_usage);
        let post = route.plugins.postprocess(kept, context, results, grant);
        let response = post.instrument(debug_span!("post")).await;
        receipt.note().stages.post = Some(started.elapsed());
        receipt.note().calls.post = post_usage.get().copied();
        response.map_err(failed(stage::POST))
    }
}
