//! One request's way through the pipeline, with all that its author wants to know of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_client::http::header::CONTENT_TYPE;
use gristmill_core::{Calls, ClientError, Deadline, ErrorCode, Receipt, Stages};
use gristmill_http::{answer_from_plugin, request_for_plugin};
use gristmill_sandbox::{CallError, Failure, Line, Request, Response};
use gristmill_serve::{InferError, PipelineAnswer, Queueing, Work};
use gristmill_snapshot::Route;
use gristmill_transport::{Problem, status_of};

use super::requests::Sample;

/// A request that was run.
pub(super) struct Ran {
    pub(super) answer: Answer,
    pub(super) took: Duration,
    pub(super) stages: Stages,
    pub(super) calls: Calls,
    pub(super) lines: Vec<Line>,
}

/// The answer that a client would get.
pub(super) enum Answer {
    Response { status: u16, content_type: String, body: Bytes },
    Failed(Failed),
}

/// The reason for which a request got no answer.
pub(super) struct Failed {
    pub(super) code: ErrorCode,
    /// The text for the client.
    pub(super) detail: String,
    /// The text of the plugin's own failure, which a client does not get.
    pub(super) internal: Option<String>,
}

impl Answer {
    /// The status of the HTTP answer.
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Response { status, .. } => *status,
            Self::Failed(Failed { code, .. }) => status_of(*code).as_u16(),
        }
    }
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self { code: problem.code, detail: problem.detail, internal: None }
    }
}

impl From<InferError> for Failed {
    fn from(error: InferError) -> Self {
        let internal = match &error {
            InferError::Plugin { error: CallError::Failure(Failure::Internal(text)), .. } => {
                Some(text.clone())
            }
            _ => None,
        };
        Self { code: error.code(), detail: error.to_string(), internal }
    }
}

/// Run a request, as the server would.
pub(super) async fn run(route: &Arc<Route>, sample: &Sample) -> Ran {
    let arrived = Instant::now();
    let request = match sample.body.len() {
        bytes if bytes > route.limits.body_bytes => {
            let limit = route.limits.body_bytes;
            let detail = format!("the body of {bytes} bytes is over the limit of {limit}");
            Err(Problem::new(ErrorCode::BodyTooLarge, detail))
        }
        _ => request_for_plugin(&sample.head, sample.body.clone()).await,
    };
    let (mut receipt, mut lines) = (Receipt::open(arrived), Vec::new());
    let answer = match request {
        Ok(request) => {
            let answered = through(route, request, receipt).await;
            (receipt, lines) = (answered.receipt, answered.lines);
            match answered.outcome {
                Ok(response) => as_client_gets(response, route),
                Err(error) => Answer::Failed(error.into()),
            }
        }
        Err(problem) => Answer::Failed(problem.into()),
    };
    let took = arrived.elapsed();
    let record = match &answer {
        Answer::Response { body, .. } => receipt.answered(body.len()),
        Answer::Failed(Failed { code, .. }) => receipt.failed(*code),
    };
    let (stages, calls) = (record.stages, record.calls);
    Ran { answer, took, stages, calls, lines }
}

async fn through(route: &Arc<Route>, request: Request, receipt: Receipt) -> PipelineAnswer {
    let deadline = Deadline::at(receipt.record().arrived + route.limits.timeout);
    let work = Work {
        route: route.clone(),
        request,
        request_id: "plugin-test".into(),
        deadline,
        queueing: Queueing::default(),
        receipt,
    };
    work.run().await
}

/// The plugin's response as a client gets it, unless the server would refuse it.
fn as_client_gets(response: Response, route: &Route) -> Answer {
    let body = Bytes::from(response.body.clone());
    let bytes_max = route.limits.plugin.response_bytes;
    match answer_from_plugin(response, bytes_max, &route.quota.bytes) {
        Ok(answer) => {
            let content_type = answer.headers().get(CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok());
            Answer::Response {
                status: answer.status().as_u16(),
                content_type: content_type.unwrap_or_default().to_owned(),
                body,
            }
        }
        Err(problem) => Answer::Failed(problem.into()),
    }
}
