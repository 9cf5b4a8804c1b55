//! Answering one request on the admin plane.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_control::{Control, ControlError};
use gristmill_core::{Digest, ErrorCode};
use gristmill_snapshot::same_key;
use gristmill_telemetry::Log;
use gristmill_transport::{Checked, Problem, REQUEST_ID, RequestIds, Tls, credentials, status_of};
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response};
use hyper::body::{Body as _, Incoming};

use crate::answer::Noted;
use crate::audit::{AdminCall, Audit};
use crate::body::AdminBody;
use crate::receive::{Received, drop_some};
use crate::routes::resource_at;
use crate::state::{State, UploadLimits};
use crate::terms::{HOLDER, terms};

/// The admin plane's handler; clones share everything.
#[derive(Clone)]
pub struct AdminPlane {
    state: Arc<State>,
    request_ids: Arc<RequestIds>,
    audit: Arc<Audit>,
}

/// The parts that the admin plane is made of.
pub struct AdminParts {
    /// Makes the changes.
    pub control: Arc<Control>,
    /// The digest of the admin token.
    pub token: Digest,
    /// The bounds on uploads.
    pub limits: UploadLimits,
    /// The status shows its figures.
    pub log: Log,
    /// The TLS of each plane that has it, by the plane's name. The status shows it.
    pub tls: Vec<(&'static str, Tls)>,
}

/// The answer to a request, and the parts of it that the log names.
struct Answered {
    response: Response<AdminBody>,
    noted: Noted,
}

impl AdminPlane {
    /// The handler.
    pub fn new(parts: AdminParts) -> Self {
        let AdminParts { control, token, limits, log, tls } = parts;
        let state = Arc::new(State { control, token, limits, log, tls });
        Self { state, request_ids: Arc::default(), audit: Arc::default() }
    }

    /// Answer one request.
    pub async fn handle(self, request: Request<Incoming>) -> Response<AdminBody> {
        let id = self.request_ids.of(request.headers());
        let has_body = !request.body().is_end_stream();
        let (head, body) = request.into_parts();
        let outcome = self.answer(&head, body).await;
        let (status, code, noted) = match &outcome {
            Ok(answered) => (answered.response.status(), None, answered.noted.clone()),
            Err(problem) => (status_of(problem.code), Some(problem.code), Noted::default()),
        };
        let path = head.uri.path_and_query().map_or("", |path| path.as_str());
        let method = head.method.as_str();
        self.audit.write(&AdminCall { method, path, id: &id, status, code, noted });
        let mut answer = match outcome {
            Ok(answered) => answered.response,
            Err(problem) => problem.into_response(&id).map(ended),
        };
        if let Ok(id) = HeaderValue::try_from(id) {
            answer.headers_mut().insert(REQUEST_ID, id);
        }
        // The rest of a body may be unread. On an open connection it would be read as a request.
        let unread =
            matches!(answer.status().as_u16(), 400 | 401 | 403..=405 | 408 | 409 | 412 | 413);
        if has_body && unread {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }

    async fn answer(&self, head: &Parts, body: Incoming) -> Result<Answered, Problem> {
        self.authorise(head)?;
        let resource = resource_at(head.uri.path())?;
        let allowed = resource.allowed();
        if let Checked::Options = allowed.check(&head.method)? {
            let response = allowed.options().map(Bytes::into);
            return Ok(Answered { response, noted: Noted::default() });
        }
        let terms = match terms(&head.headers, HOLDER) {
            Ok(terms) => terms,
            Err(problem) => {
                drop_some(body).await;
                return Err(problem);
            }
        };
        let conditions = terms.conditions.clone();
        let (query, headers) = (head.uri.query(), &head.headers);
        let received = Received { query, headers, terms, body };
        let answer = resource.answer(&self.state, &head.method, received).await?;
        let noted = answer.noted.clone();
        let reads = [Method::GET, Method::HEAD].contains(&head.method);
        let is_known = match answer.tag.filter(|_| reads) {
            Some(tag) => conditions.check_read(head.uri.path(), tag).map_err(ControlError::from)?,
            None => false,
        };
        let response = match is_known {
            true => answer.into_not_modified(),
            false => answer.into_response(),
        };
        Ok(Answered { response, noted })
    }

    fn authorise(&self, head: &Parts) -> Result<(), Problem> {
        let token = credentials::bearer(&head.headers).filter(|token| !token.is_empty());
        let Some(token) = token else {
            let detail = "the admin token is needed: Authorization: Bearer <token>";
            return Err(Problem::new(ErrorCode::Unauthenticated, detail));
        };
        if !same_key(self.state.token, credentials::digest(token)) {
            return Err(Problem::new(ErrorCode::Forbidden, "this is not the admin token"));
        }
        Ok(())
    }
}

/// The body of a problem with a newline at its end, so that it reads well in a terminal.
fn ended(body: Bytes) -> AdminBody {
    let mut text = Vec::from(body);
    text.push(b'\n');
    Bytes::from(text).into()
}
