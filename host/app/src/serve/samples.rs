//! Running the samples of pipelines for the control plane, and the requests that people try for the
//! admin plane, on the data plane.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use gristmill_admin::{Trial, Trials, Tried};
use gristmill_cli::request_run::{Ran, RequestRun, failure_of, head};
use gristmill_client::http::request::Parts;
use gristmill_control::{SampleRun, SampleRunner};
use gristmill_core::{Charge, ErrorCode, Stages};
use gristmill_sandbox::Line;
use gristmill_serve::request_span;
use gristmill_snapshot::Route;
use gristmill_state::{SampleAnswer, SampleFailure};
use gristmill_transport::Problem;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, Level};

/// Runs samples and trials. Their memory and their plugin calls count against their tenant's quota,
/// like those of a client's request.
pub(super) struct DataPlaneSamples {
    /// The threads that run them. A sample may run batches with rows of clients, which must not
    /// wait until no other thread wants to serve.
    pub(super) data_plane: Handle,
}

/// A request for a pipeline.
struct SampleRequest {
    /// Its id in the log.
    id: String,
    head: Parts,
    body: Bytes,
    /// Those that people try are charged: otherwise a tenant's people could use them for their
    /// traffic.
    is_charged: bool,
}

#[async_trait]
impl SampleRunner for DataPlaneSamples {
    async fn run(&self, run: SampleRun<'_>) -> SampleAnswer {
        self.answer(run).await.unwrap_or_else(|problem| SampleAnswer::Failed(failure_of(problem)))
    }
}

#[async_trait]
impl Trials for DataPlaneSamples {
    async fn try_out(&self, trial: Trial) -> Tried {
        self.tried(trial).await.unwrap_or_else(|problem| Tried {
            answer: SampleAnswer::Failed(failure_of(problem)),
            took: Duration::ZERO,
            stages: Stages::default(),
            charge: Charge::default(),
            batch_rows: 0,
            batch_tenants: 0,
            lines: Vec::new(),
        })
    }
}

impl DataPlaneSamples {
    async fn answer(&self, run: SampleRun<'_>) -> Result<SampleAnswer, Problem> {
        let SampleRun { route, name, request } = run;
        let (body, usual_type) = request.content();
        let content_type = request.content_type.as_deref().or(usual_type);
        let headers: Vec<_> = request.headers.clone().into_iter().collect();
        let query = request.query.as_deref().unwrap_or_default();
        let head = head(content_type, &headers, query).map_err(invalid)?;
        let held = route.quota.bytes.hold(0);
        held.try_add(body.len())?;
        let body = held.attach_to(body);
        let sample = SampleRequest { id: format!("sample-{name}"), head, body, is_charged: false };
        Ok(self.run_request(route, sample).await?.answer)
    }

    async fn tried(&self, trial: Trial) -> Result<Tried, Problem> {
        let Trial { route, content_type, query, body } = trial;
        let head = head(content_type.as_deref(), &[], &query).map_err(invalid)?;
        if route.quota.requests.take(1, Instant::now()).is_err() {
            route.quota.refused.fetch_add(1, Relaxed);
            let detail = "the tenant's quota of requests is used up";
            return Err(Problem::new(ErrorCode::QuotaExceeded, detail));
        }
        let asked =
            SampleRequest { id: format!("trial-{}", route.pipeline), head, body, is_charged: true };
        let Ran { answer, took, stages, charge, batch_rows, batch_tenants, lines, .. } =
            self.run_request(&route, asked).await?;
        Ok(Tried { answer, took, stages, charge, batch_rows, batch_tenants, lines })
    }

    /// Run a request, whose body counts against the tenant's budget.
    async fn run_request(&self, route: &Arc<Route>, asked: SampleRequest) -> Result<Ran, Problem> {
        let SampleRequest { id, head, body, is_charged } = asked;
        if route.quota.calls.cpu().check(Instant::now()).is_err() {
            let detail = "the tenant's quota of CPU time for plugins is used up";
            return Err(Problem::new(ErrorCode::QuotaExceeded, detail));
        }
        let (span, route) = (request_span(route, &id, None, None), route.clone());
        let running = async move {
            RequestRun { route: &route, id: &id, head: &head, body: &body, is_charged }.run().await
        };
        let running = self.data_plane.spawn(running.instrument(span));
        let mut ran = AbortOnDropHandle::new(running).await.map_err(|error| {
            tracing::error!(%error, "a request's run failed");
            Problem::new(ErrorCode::Internal, "the request's run failed")
        })?;
        if let SampleAnswer::Failed(failure) = &mut ran.answer {
            add_last_words(failure, &ran.lines);
        }
        Ok(ran)
    }
}

fn invalid(error: anyhow::Error) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, format!("{error:#}"))
}

/// If the plugin gave no reason, its last warning or error is one: a panic's message, for example.
fn add_last_words(failure: &mut SampleFailure, lines: &[Line]) {
    let last = lines.iter().rev().find(|line| line.level <= Level::WARN);
    failure.internal = failure.internal.take().or_else(|| last.map(|line| line.message.clone()));
}
