//! The planes' answers while the state is loaded: `/livez` answers that the server is alive, and
//! all other paths answer that it is loading.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::ErrorCode;
use gristmill_snapshot::Cors;
use gristmill_transport::{Problem, REQUEST_ID, RequestIds};
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use tonic::Status;

use crate::cors;
use crate::grpc::MeteredAnswer;
use crate::path::{Path, path_of};
use crate::v1;

/// Answers in place of the planes until the state is loaded; clones share everything.
#[derive(Clone)]
pub struct Loading {
    request_ids: Arc<RequestIds>,
    /// The progress of the loading, as text.
    progress: Arc<dyn Fn() -> String + Send + Sync>,
    /// Which web pages may read answers of the data plane.
    cors: Arc<Cors>,
}

impl Loading {
    /// A handler whose answers contain the text of `progress`. `cors` says which web pages may read
    /// those of the data plane.
    pub fn new(progress: impl Fn() -> String + Send + Sync + 'static, cors: Cors) -> Self {
        Self { request_ids: Arc::default(), progress: Arc::new(progress), cors: Arc::new(cors) }
    }

    /// Answer one request of the data plane.
    pub fn answer_data<B: From<Bytes>>(&self, request: Request<Incoming>) -> Response<B> {
        let mut answer = self.answer(&request);
        let (head, _) = request.into_parts();
        cors::add(answer.headers_mut(), &head, || self.cors.as_ref());
        answer
    }

    /// Answer one request of another plane.
    pub fn answer<B: From<Bytes>>(&self, request: &Request<Incoming>) -> Response<B> {
        let id = self.request_ids.of(request.headers());
        let path = request.uri().path();
        let problem = || Problem::new(ErrorCode::Unavailable, self.said());
        let mut answer = match path_of(path) {
            Some(Path::V2(v2)) if v2.path == "/health/live" => {
                json(StatusCode::OK, r#"{"live":true}"#.into())
            }
            Some(Path::V2(v2)) if v2.path == "/health/ready" => {
                json(StatusCode::BAD_REQUEST, r#"{"ready":false}"#.into())
            }
            Some(Path::V2(_)) => {
                let problem = problem();
                let document = serde_json::json!({ "error": problem.detail });
                let mut answer = json(StatusCode::SERVICE_UNAVAILABLE, document.to_string());
                problem.add_headers(StatusCode::SERVICE_UNAVAILABLE, answer.headers_mut());
                answer
            }
            Some(Path::V1(v1::Path::Live)) => said(StatusCode::OK, "text/plain", "live".into()),
            Some(Path::V1(_)) => v1::error_answer(problem(), &id),
            None => problem().into_response(&id),
        };
        let headers = answer.headers_mut();
        if let Ok(id) = HeaderValue::try_from(&*id) {
            headers.insert(REQUEST_ID, id);
        }
        if !request.body().is_end_stream() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer.map(B::from)
    }

    /// Answer one call of the gRPC plane.
    pub fn answer_grpc(&self) -> Response<MeteredAnswer> {
        let answer = Status::unavailable(self.said()).into_http();
        answer.map(|body| MeteredAnswer::new(body, None))
    }

    fn said(&self) -> String {
        format!("loading: {}", (self.progress)())
    }
}

fn json(status: StatusCode, body: String) -> Response<Bytes> {
    said(status, "application/json", body)
}

fn said(status: StatusCode, content_type: &'static str, body: String) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}
