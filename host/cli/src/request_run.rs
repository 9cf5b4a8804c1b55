//! One request's way through a pipeline, as that of a client, but without a connection: for `plugin
//! test` and for the samples of pipelines.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use gristmill_client::http::header::CONTENT_TYPE;
use gristmill_client::http::request::Parts;
use gristmill_client::http::{HeaderName, HeaderValue, Request, Uri};
use gristmill_core::{Charge, Deadline, ErrorCode, PluginCall, Receipt, Stages};
use gristmill_sandbox::{CallError, Failure, Line, Response, RunCount};
use gristmill_serve::edge::{answer_from_plugin, request_for_plugin};
use gristmill_serve::{InferError, PipelineAnswer, Work};
use gristmill_snapshot::Route;
use gristmill_state::{SampleAnswer, SampleFailure};
use gristmill_transport::{Problem, status_of};

/// A request to run.
#[derive(Clone, Copy)]
pub struct RequestRun<'a> {
    /// The pipeline.
    pub route: &'a Arc<Route>,
    /// Its id in the log.
    pub id: &'a str,
    /// Its method, its query and its headers.
    pub head: &'a Parts,
    /// Its body.
    pub body: &'a Bytes,
    /// Whether the pipeline counts it and its tenant is charged for it, as for a client's request.
    pub is_charged: bool,
}

/// A request that was run.
pub struct Ran {
    /// The answer as a client gets it.
    pub answer: SampleAnswer,
    /// The time from its arrival to its answer.
    pub took: Duration,
    /// The time of each stage.
    pub stages: Stages,
    /// What its calls of plugins used.
    pub calls: Vec<PluginCall>,
    /// What it is charged, or would be.
    pub charge: Charge,
    /// Rows of its largest batch, those of other requests included.
    pub batch_rows: usize,
    /// Peak number of tenants with requests in one of its batches.
    pub batch_tenants: usize,
    /// What its plugins logged.
    pub lines: Vec<Line>,
}

/// The head of a request.
///
/// # Errors
/// A part of it cannot be sent.
pub fn head(
    content_type: Option<&str>,
    headers: &[(String, String)],
    query: &str,
) -> Result<Parts> {
    let uri: Uri = format!("/?{query}")
        .parse()
        .with_context(|| format!("query is {query:?}: blanks and the like are written %20"))?;
    let (mut head, ()) = Request::post(uri).body(())?.into_parts();
    if let Some(content_type) = content_type {
        let value = HeaderValue::try_from(content_type)
            .with_context(|| format!("content_type is {content_type:?}"))?;
        head.headers.insert(CONTENT_TYPE, value);
    }
    for (name, value) in headers {
        let wrong = || format!("headers.{name} is {value:?}: it cannot be sent as a header");
        let name = HeaderName::try_from(name).with_context(wrong)?;
        head.headers.append(name, HeaderValue::try_from(value).with_context(wrong)?);
    }
    Ok(head)
}

/// Why a problem is the answer.
pub fn failure_of(problem: Problem) -> SampleFailure {
    let Problem { code, detail, .. } = problem;
    SampleFailure { status: status_of(code).as_u16(), code, detail, internal: None }
}

/// As [`failure_of`], with what only those who see the plugin's lines are told.
fn failure_of_error(error: InferError) -> SampleFailure {
    let internal = match &error {
        InferError::Plugin { error: error @ CallError::Failure(Failure::Internal(_)), .. } => {
            Some(error.detail())
        }
        InferError::Plugin {
            error:
                error @ (CallError::OutOfTime { functions, .. } | CallError::Trapped { functions, .. }),
            ..
        } if !functions.is_empty() => Some(error.detail()),
        _ => None,
    };
    SampleFailure { internal, ..failure_of(error.into()) }
}

impl RequestRun<'_> {
    /// Run the request, as the server would.
    pub async fn run(self) -> Ran {
        let Self { route, head, body, is_charged, .. } = self;
        let arrived = Instant::now();
        let mut receipt = Receipt::open(arrived);
        if is_charged {
            receipt.charge_to(route.clone());
        }
        receipt.note().request_bytes = body.len();
        let request = match body.len() {
            bytes if bytes > route.limits.body_bytes => {
                let limit = route.limits.body_bytes;
                let detail = format!("the body of {bytes} bytes is over the limit of {limit}");
                Err(Problem::new(ErrorCode::BodyTooLarge, detail))
            }
            _ => request_for_plugin(head, body.clone()).await,
        };
        let mut lines = Vec::new();
        let answer = match request {
            Ok(request) => {
                let answered = self.through(request, &mut receipt).await;
                lines = answered.lines;
                match answered.outcome {
                    Ok(response) => as_client_gets(response, route),
                    Err(error) => SampleAnswer::Failed(failure_of_error(error)),
                }
            }
            Err(problem) => SampleAnswer::Failed(failure_of(problem)),
        };
        let took = arrived.elapsed();
        let record = match &answer {
            SampleAnswer::Response { body, .. } => receipt.answered(body.len()),
            SampleAnswer::Failed(SampleFailure { code, .. }) => receipt.failed(*code, 0),
        };
        let (stages, calls) = (record.stages(), record.calls().cloned().collect());
        let (charge, batch_rows) = (record.charge(), record.batch_rows());
        let batch_tenants = record.batch_tenants();
        Ran { answer, took, stages, calls, charge, batch_rows, batch_tenants, lines }
    }

    async fn through(
        self,
        request: gristmill_sandbox::Request,
        receipt: &mut Receipt,
    ) -> PipelineAnswer {
        let Self { route, id, .. } = self;
        let deadline = Deadline::at(receipt.record().arrived + route.limits.timeout);
        let work = Work { is_trial: true, ..Work::new(route.clone(), id.into(), deadline) };
        work.run(request, &RunCount::default(), receipt).await
    }
}

/// The plugin's response as a client gets it, unless the server would refuse it.
fn as_client_gets(response: Response, route: &Route) -> SampleAnswer {
    let body = Bytes::from(response.body.clone());
    let bytes_max = route.limits.plugin.response_bytes;
    match answer_from_plugin(response, bytes_max, &route.quota.bytes, &route.redirects) {
        Ok(answer) => {
            let content_type = answer.headers().get(CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok());
            SampleAnswer::Response {
                status: answer.status().as_u16(),
                content_type: content_type.unwrap_or_default().to_owned(),
                body,
            }
        }
        Err(problem) => SampleAnswer::Failed(failure_of(problem)),
    }
}
