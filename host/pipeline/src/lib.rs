//! The data plane: one request's way through a pipeline, on one page.
//!
//! Refuses to know the store, the backends and the admin API; sees only what the snapshot resolved.
//!
//! Invariant: whatever happens to a request, it is over at its deadline: the whole way runs under
//! one timeout, and dropping it drops the guest and takes the request out of the batcher's queue.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use gristmill_batch::{Submission, SubmitError};
use gristmill_core::{Deadline, ErrorCode, NamedTensor, OverBudget};
use gristmill_sandbox::{CallError, Grant, Request, Response};
use gristmill_snapshot::Route;
use gristmill_telemetry::stage;
use tracing::{Instrument, debug_span};

/// How long each stage took, zero for those not reached, and what ran the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    pub pre: Duration,
    pub queue: Duration,
    pub infer: Duration,
    pub post: Duration,
    /// What ran the model.
    pub provider: Option<&'static str>,
}

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum InferError {
    #[error("{stage}: {error}")]
    Plugin { stage: &'static str, error: CallError },
    #[error("{0}")]
    Model(#[from] SubmitError),
    #[error("no answer within {} ms", .0.as_millis())]
    DeadlineExceeded(Duration),
    #[error(transparent)]
    TenantBusy(#[from] OverBudget),
}

/// What a client may say of how its request is queued.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queueing {
    /// The model's priority level, 1 being served first; none: the pipeline's.
    pub priority: Option<u32>,
    /// How long it may be queued, where the level lets requests say so.
    pub timeout: Option<Duration>,
}

impl InferError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Plugin { error, .. } => error.code(),
            // The pipeline's plugin made the inputs.
            Self::Model(SubmitError::Input(_)) => ErrorCode::PluginInvalidOutput,
            Self::Model(error) => error.code(),
            Self::DeadlineExceeded(_) => ErrorCode::DeadlineExceeded,
            Self::TenantBusy(_) => ErrorCode::TenantBusy,
        }
    }
}

/// Run `request` through `route`, to be done by `deadline`. `timings` tells how far it came even
/// where it fails.
pub async fn infer(
    route: &Route,
    request: Request,
    (deadline, queueing): (Deadline, Queueing),
    timings: &mut Timings,
) -> Result<Response, InferError> {
    let started = Instant::now();
    let way = stages(route, request, (deadline, queueing), timings);
    let outcome = match tokio::time::timeout_at(deadline.instant().into(), way).await {
        Ok(outcome) => outcome,
        Err(_) => Err(InferError::DeadlineExceeded(route.limits.timeout)),
    };
    let took = started.elapsed();
    route.statistics.count(|counters| {
        if outcome.is_err() {
            counters.fail += 1;
            counters.fail_time += took;
            return;
        }
        counters.success += 1;
        counters.success_time += took;
        counters.pre += timings.pre;
        counters.queue += timings.queue;
        counters.infer += timings.infer;
        counters.post += timings.post;
    });
    outcome
}

async fn stages(
    route: &Route,
    request: Request,
    (deadline, queueing): (Deadline, Queueing),
    timings: &mut Timings,
) -> Result<Response, InferError> {
    let (limits, account) = (&route.limits.plugin, &route.share.calls);
    let grant = |plugin| Grant { limits, account, plugin: Some(plugin) };
    let failed = |stage| {
        move |error| match error {
            CallError::Busy(over) => InferError::TenantBusy(over),
            error => InferError::Plugin { stage, error },
        }
    };

    let started = Instant::now();
    let prepared =
        route.pre.preprocess(request, grant(&route.pre_name)).instrument(debug_span!("pre")).await;
    timings.pre = started.elapsed();
    let prepared = prepared.map_err(failed(stage::PRE))?;
    let held = route.share.bytes.hold(0);
    held.try_add(NamedTensor::bytes_of(&prepared.inputs) + prepared.state.len())?;

    let started = Instant::now();
    let submission = Submission {
        tenant: route.tenant.clone(),
        weight: route.weight,
        priority: queueing.priority.or(route.priority),
        timeout: queueing.timeout,
        inputs: prepared.inputs,
        arrived: started,
        deadline,
    };
    let submitted = route.model.submit(submission).instrument(debug_span!("infer")).await;
    let waited = started.elapsed();
    timings.queue = submitted.as_ref().map_or(waited, |answered| answered.queued);
    timings.infer = waited.saturating_sub(timings.queue);
    let answered = submitted?;
    timings.provider = answered.provider;
    let outputs = answered.outputs;
    held.release();
    held.try_add(NamedTensor::bytes_of(&outputs) + prepared.state.len())?;

    let started = Instant::now();
    let post = route.post.postprocess(outputs, prepared.state, grant(&route.post_name));
    let response = post.instrument(debug_span!("post")).await;
    timings.post = started.elapsed();
    response.map_err(failed(stage::POST))
}
