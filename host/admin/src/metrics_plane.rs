//! The metrics alone, on a listener of their own that needs no token.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::ErrorCode;
use gristmill_metrics::CONTENT_TYPE;
use gristmill_transport::body;
use gristmill_transport::{Allowed, Checked, Problem, RequestIds};
use http::header::CONTENT_TYPE as CONTENT_TYPE_HEADER;
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;

use crate::body::AdminBody;
use crate::observe::Scrapes;

/// The handler of the listener for metrics; clones share everything.
#[derive(Clone)]
pub struct MetricsPlane {
    scrapes: Scrapes,
    request_ids: Arc<RequestIds>,
}

impl MetricsPlane {
    /// The handler.
    pub fn new(scrapes: Scrapes) -> Self {
        Self { scrapes, request_ids: Arc::default() }
    }

    /// Answer one request.
    pub async fn handle(self, request: Request<Incoming>) -> Response<AdminBody> {
        let (head, mut body) = request.into_parts();
        let id = self.request_ids.of(&head.headers);
        let mut answer = match self.answer(&head).await {
            Ok(answer) => answer,
            Err(problem) => problem.into_response(&id).map(AdminBody::from),
        };
        body::finish(&head, Some(&mut body), &mut answer).await;
        answer
    }

    async fn answer(&self, head: &Parts) -> Result<Response<AdminBody>, Problem> {
        if head.uri.path() != "/metrics" {
            let detail = "nothing is served at this path: the metrics are at /metrics";
            return Err(Problem::new(ErrorCode::NotFound, detail));
        }
        if let Checked::Options = Allowed::Get.check(&head.method)? {
            return Ok(Allowed::Get.options::<Bytes>().map(AdminBody::from));
        }
        let failed = || Problem::new(ErrorCode::Internal, "the metrics cannot be collected");
        let text = self.scrapes.text().await.ok_or_else(failed)?;
        let mut answer = Response::new(AdminBody::from(text));
        let media_type = HeaderValue::from_static(CONTENT_TYPE);
        answer.headers_mut().insert(CONTENT_TYPE_HEADER, media_type);
        Ok(answer)
    }
}
