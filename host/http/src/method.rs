//! Which methods a path takes, and refusals that say so.

use gristmill_core::ErrorCode;
use http::header::ALLOW;
use http::{HeaderValue, Method, Response, StatusCode};

use crate::body::{Answer, ResponseBody};
use crate::problem::Problem;

/// What a path is asked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// `HEAD`, too: hyper sends the answer without its body.
    Get,
    Post,
}

impl Allowed {
    pub(crate) fn by(method: &Method) -> Self {
        if *method == Method::GET { Self::Get } else { Self::Post }
    }

    /// Whether the method may be used; the answer itself to `OPTIONS`.
    pub(crate) fn check(self, method: &Method) -> Result<Option<Answer>, Refusal> {
        let fits = match self {
            Self::Get => *method == Method::GET || *method == Method::HEAD,
            Self::Post => *method == Method::POST,
        };
        if fits {
            return Ok(None);
        }
        if *method == Method::OPTIONS {
            let mut answer = Response::new(ResponseBody::default());
            *answer.status_mut() = StatusCode::NO_CONTENT;
            answer.headers_mut().insert(ALLOW, self.header());
            return Ok(Some(answer));
        }
        let allowed = match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
        };
        let detail = format!("{method} is not allowed here, {allowed} is");
        let problem = Problem::new(ErrorCode::MethodNotAllowed, detail);
        Err(Refusal { problem, allow: Some(self.header()) })
    }

    fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Get => "GET, HEAD, OPTIONS",
            Self::Post => "POST, OPTIONS",
        })
    }
}

/// A problem, and the methods that are allowed where another was used.
pub(crate) struct Refusal {
    pub(crate) problem: Problem,
    allow: Option<HeaderValue>,
}

impl Refusal {
    /// The answer that `write` makes of the problem.
    pub(crate) fn answer(self, request_id: &str, write: impl FnOnce(Problem) -> Answer) -> Answer {
        let Self { problem, allow } = self;
        if problem.code == ErrorCode::Internal {
            tracing::error!(request_id, detail = problem.detail, "internal error");
        }
        let mut answer = write(problem);
        answer.headers_mut().extend(allow.map(|allow| (ALLOW, allow)));
        answer
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { problem, allow: None }
    }
}
