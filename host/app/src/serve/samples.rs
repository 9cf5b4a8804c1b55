//! Running the samples of pipelines for the control plane, on the data plane.

use std::time::Instant;

use async_trait::async_trait;
use gristmill_cli::request_run::{Ran, RequestRun, failure_of, head};
use gristmill_control::{SampleRun, SampleRunner};
use gristmill_core::ErrorCode;
use gristmill_sandbox::Line;
use gristmill_serve::request_span;
use gristmill_state::{SampleAnswer, SampleFailure};
use gristmill_transport::Problem;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, Level};

/// Runs samples. Their memory and their plugin calls count against their tenant's quota, like those
/// of a client's request.
pub(super) struct DataPlaneSamples {
    /// The threads that run them. A sample may run batches with rows of clients, which must not
    /// wait until no other thread wants to serve.
    pub(super) data_plane: Handle,
}

#[async_trait]
impl SampleRunner for DataPlaneSamples {
    async fn run(&self, run: SampleRun<'_>) -> SampleAnswer {
        answer(run, &self.data_plane)
            .await
            .unwrap_or_else(|problem| SampleAnswer::Failed(failure_of(problem)))
    }
}

async fn answer(run: SampleRun<'_>, data_plane: &Handle) -> Result<SampleAnswer, Problem> {
    let SampleRun { route, name, request } = run;
    let (body, usual_type) = request.content();
    let content_type = request.content_type.as_deref().or(usual_type);
    let headers: Vec<_> = request.headers.clone().into_iter().collect();
    let head = head(content_type, &headers, request.query.as_deref().unwrap_or_default());
    let head =
        head.map_err(|error| Problem::new(ErrorCode::InvalidRequest, format!("{error:#}")))?;
    if route.quota.calls.cpu().check(Instant::now()).is_err() {
        let detail = "the tenant's quota of processor time for plugins is used up";
        return Err(Problem::new(ErrorCode::QuotaExceeded, detail));
    }
    let held = route.quota.bytes.hold(0);
    held.try_add(body.len())?;
    let body = held.attach_to(body);
    let id = format!("sample-{name}");
    let (span, route) = (request_span(route, &id, None, None), route.clone());
    let running =
        async move { RequestRun { route: &route, id: &id, head: &head, body: &body }.run().await };
    let running = data_plane.spawn(running.instrument(span));
    let Ran { mut answer, lines, .. } = AbortOnDropHandle::new(running).await.map_err(|error| {
        tracing::error!(%error, "a sample's run failed");
        Problem::new(ErrorCode::Internal, "the sample's run failed")
    })?;
    if let SampleAnswer::Failed(failure) = &mut answer {
        add_last_words(failure, &lines);
    }
    Ok(answer)
}

/// If the plugin gave no reason, its last warning or error is one: a panic's message, for example.
fn add_last_words(failure: &mut SampleFailure, lines: &[Line]) {
    let last = lines.iter().rev().find(|line| line.level <= Level::WARN);
    failure.internal = failure.internal.take().or_else(|| last.map(|line| line.message.clone()));
}
