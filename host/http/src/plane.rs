//! The data plane over HTTP: one request, from its head to its answer's headers.
//!
//! The 15 forms of a request of `/v1`, by what holds its bytes:
//! 1. hyper's `Request`; 2. a `Call` (`call`); 3. `Bytes`, decoded (`Call::read`);
//! 4. `sandbox::Request` (`serve::edge`); 5. the guest's parameters, and 6. `Prepared`
//!    (`sandbox::worlds`);
//! 7. `batch::Submission` (`serve::pipeline`); 8. `RequestPart`, 9. `Entry`, and 10. a `Batch`; the
//!    answer of a lane, 11. `batch::Answered`;
//! 12. `Results`, for the second call, and 13. `sandbox::Response`;
//! 14. an `Answer` (`serve::edge`), and 15. the `Answering` that is sent.
//!
//! `v2::infer` has those of `/v2`.
//!
//! Beside it go a `RequestContext` (`observer`), for what is noted, and a `serve::Work`, for what
//! its calls need. The record of its receipt says how the request ended, and no other type does:
//! `observer::UnderWay` and `transport::body::AnswerEnd` only wait for it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use gristmill_core::{ErrorCode, Outcome, Receipt, Record};
use gristmill_metrics::Edge;
use gristmill_snapshot::{Cors, SnapshotCell};
use gristmill_transport::body::{self, Answer, ResponseBody};
use gristmill_transport::{Problem, REQUEST_ID, RequestIds};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use hyper::body::{Body as _, Incoming};

use crate::answers::number;
use crate::call::Call;
use crate::inference::Inference;
use crate::observer::{RequestContext, RequestNames, UnderWay};
use crate::path::{Path, served_path};
use crate::receipt_header::RECEIPT;
use crate::timing::{SERVER_TIMING, server_timing};
use crate::{cors, rate_limit, receipt_header, v1, v2};

const RELEASE: HeaderName = HeaderName::from_static("gristmill-release");
const PROVIDER: HeaderName = HeaderName::from_static("gristmill-provider");
const TRACERESPONSE: HeaderName = HeaderName::from_static("traceresponse");
const VARIANT: HeaderName = HeaderName::from_static("gristmill-variant");

/// The data plane's handler; clones share everything.
#[derive(Clone)]
pub struct DataPlane {
    shared: Arc<Shared>,
}

struct Shared {
    cell: Arc<SnapshotCell>,
    inference: Inference,
    /// Which web pages may call, where no tenant says it.
    cors: Cors,
    request_ids: RequestIds,
}

impl DataPlane {
    /// A handler that serves each request from the current snapshot of `cell`. `cors` says which
    /// web pages may call, where no tenant says it.
    pub fn new(cell: Arc<SnapshotCell>, inference: Inference, cors: Cors) -> Self {
        let shared = Shared { cell, inference, cors, request_ids: RequestIds::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Answer one request of the client with this address.
    pub async fn handle(self, request: Request<Incoming>, client: IpAddr) -> Answer {
        let receipt = Receipt::open(Instant::now());
        let (head, mut body) = request.into_parts();
        let id = self.shared.request_ids.of(&head.headers);
        let snapshot = self.shared.cell.load();
        let path = served_path(head.uri.path(), &snapshot);
        let is_protocol = matches!(path, Some(Path::V2(_)));
        let names = RequestNames {
            edge: if is_protocol { Edge::V2 } else { Edge::V1 },
            span: span_name(&head, path),
            method: head.method.as_str(),
            path: head.uri.path(),
            client: Some(client),
        };
        let header = |name: &str| head.headers.get(name)?.to_str().ok();
        let observer = self.shared.inference.observer();
        let context = RequestContext::new(id, receipt);
        let mut under_way = UnderWay::begin(observer, names, context, header);
        let context = &mut under_way.context;
        let call = Call { snapshot: &snapshot, head: &head, body: &mut body, context };
        let outcome = self.answer(path, call).await;
        let context = &mut under_way.context;
        let (mut answer, outcome) = match outcome {
            Ok(answer) => (answer, Outcome::Answered),
            Err(problem) => {
                log_internal(&problem, &context.id);
                if context.receipt.record().auth.is_none() {
                    self.shared.inference.log_wrong_key(&problem, &head.headers, client);
                }
                let code = problem.code;
                let answer = match is_protocol {
                    true => v2::error_answer(problem),
                    false => v1::error_answer(problem, &context.id).map(ResponseBody::from),
                };
                (answer, Outcome::Failed(code))
            }
        };
        let bytes = answer.body().size_hint().lower() as usize;
        context.receipt.close(outcome, bytes);
        add_headers(&mut answer, context, snapshot.release);
        if context.receipt.record().is_charged && receipt_header::is_wanted(&head.headers) {
            add_receipt(&mut answer, context.receipt.record());
        }
        let policy = || cors::policy(path, &snapshot, &self.shared.cors);
        cors::add(answer.headers_mut(), &head, policy);
        // Before the rest of a body is read, for which the client can take its time.
        let end = under_way.sends(answer.status());
        body::finish(&head, Some(&mut body), &mut answer).await;
        match has_body(&head.method, answer.status()) {
            true => answer.map(|body| body.ending(end)),
            false => {
                end.sent();
                answer
            }
        }
    }

    async fn answer(&self, path: Option<Path<'_>>, call: Call<'_>) -> Result<Answer, Problem> {
        let inference = &self.shared.inference;
        // Boxed, because they are large and this future is moved several times before it is polled.
        // Each by itself, because a box is filled by copying its whole size.
        match path {
            Some(Path::V2(path)) => Box::pin(v2::answer(inference, path, call)).await,
            Some(Path::V1(path)) => Box::pin(v1::answer(inference, path, call)).await,
            None => {
                let detail = format!("nothing is served at {:?}", call.head.uri.path());
                Err(Problem::new(ErrorCode::NotFound, detail))
            }
        }
    }
}

/// Add what was noted of a request whose receipt is closed.
fn add_headers(answer: &mut Answer, context: &RequestContext, release: u64) {
    let (headers, record) = (answer.headers_mut(), context.receipt.record());
    if let Ok(id) = HeaderValue::try_from(&*context.id) {
        headers.insert(REQUEST_ID, id);
    }
    // A caller that was not admitted must not learn when something is changed.
    if record.auth.is_some() {
        headers.extend(number(release).map(|release| (RELEASE, release)));
    }
    if let Some(provider) = record.provider() {
        headers.insert(PROVIDER, HeaderValue::from_static(provider));
    }
    if let Some(times) = server_timing(&record.stages()) {
        headers.insert(SERVER_TIMING, times);
    }
    if let Some(variant) = context.variant {
        headers.insert(VARIANT, HeaderValue::from_static(variant.as_str()));
    }
    if let Some(quota) = &context.quota {
        rate_limit::add(headers, quota);
    }
    if let Some(trace) = context.known_trace()
        && let Ok(value) = HeaderValue::try_from(trace.traceresponse())
    {
        headers.insert(TRACERESPONSE, value);
    }
}

/// Whether an answer has a body that is sent. hyper sends none otherwise, and does not ask for it.
fn has_body(method: &Method, status: StatusCode) -> bool {
    *method != Method::HEAD && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// The name of a request's span: its method and its route, of which there are few.
fn span_name(head: &Parts, path: Option<Path<'_>>) -> &'static str {
    match path {
        Some(Path::V1(v1::Path::Infer { pipeline: None, .. })) => "POST /v1/{tenant}/infer",
        Some(Path::V1(v1::Path::Infer { .. })) => "POST /v1/{tenant}/infer/{pipeline}",
        Some(Path::V2(path)) if head.method == Method::POST && path.path.ends_with("/infer") => {
            "POST /v2/models/{model}/infer"
        }
        Some(Path::V1(_)) => "/v1",
        Some(Path::V2(_)) => "/v2",
        None => "unknown path",
    }
}

fn add_receipt(answer: &mut Answer, record: &Record) {
    if let Ok(text) = HeaderValue::try_from(receipt_header::text(record)) {
        answer.headers_mut().insert(RECEIPT, text);
    }
}

/// Log an internal error. Errors of other kinds were logged where they happened.
fn log_internal(problem: &Problem, request_id: &str) {
    if problem.code == ErrorCode::Internal {
        tracing::error!(request_id, detail = problem.detail, "internal error");
    }
}
