//! The methods that a path takes.

use gristmill_core::ErrorCode;
use http::header::ALLOW;
use http::{HeaderValue, Method, Response, StatusCode};

use crate::problem::Problem;

/// The methods that a path takes, besides `OPTIONS`: every path takes that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// `GET` and `HEAD`: hyper sends the answer to `HEAD` without its body.
    Get,
    /// `POST`.
    Post,
    /// `POST` and `DELETE`.
    PostAndDelete,
    /// `GET`, `HEAD` and `POST`.
    GetAndPost,
    /// `GET`, `HEAD` and `PUT`.
    GetAndPut,
    /// `GET`, `HEAD`, `PUT` and `DELETE`.
    GetPutDelete,
    /// `GET`, `HEAD`, `PUT`, `PATCH` and `DELETE`.
    GetPutPatchDelete,
}

/// The result of checking a method.
#[derive(Debug)]
pub enum Checked {
    /// The path takes it.
    Taken,
    /// `OPTIONS`: the answer is [`Allowed::options`].
    Options,
}

impl Allowed {
    /// Check `method` against those that the path takes.
    ///
    /// # Errors
    /// The path does not take it. The error carries the methods that the path takes.
    pub fn check(self, method: &Method) -> Result<Checked, Problem> {
        let (get, put) = ([&Method::GET, &Method::HEAD].contains(&method), *method == Method::PUT);
        let fits = match self {
            Self::Get => get,
            Self::Post => *method == Method::POST,
            Self::PostAndDelete => [&Method::POST, &Method::DELETE].contains(&method),
            Self::GetAndPost => get || *method == Method::POST,
            Self::GetAndPut => get || put,
            Self::GetPutDelete => get || put || *method == Method::DELETE,
            Self::GetPutPatchDelete => {
                get || put || [&Method::PATCH, &Method::DELETE].contains(&method)
            }
        };
        if fits {
            return Ok(Checked::Taken);
        }
        if *method == Method::OPTIONS {
            return Ok(Checked::Options);
        }
        let detail = format!("{method} is not allowed here, {} is", self.words());
        let problem = Problem::new(ErrorCode::MethodNotAllowed, detail);
        Err(Problem { allowed: Some(self.header()), ..problem })
    }

    /// The answer to `OPTIONS`.
    pub fn options<B: Default>(self) -> Response<B> {
        let mut answer = Response::new(B::default());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        answer.headers_mut().insert(ALLOW, self.header());
        answer
    }

    /// The value of the header `Allow`.
    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Get => "GET, HEAD, OPTIONS",
            Self::Post => "POST, OPTIONS",
            Self::PostAndDelete => "POST, DELETE, OPTIONS",
            Self::GetAndPost => "GET, HEAD, POST, OPTIONS",
            Self::GetAndPut => "GET, HEAD, PUT, OPTIONS",
            Self::GetPutDelete => "GET, HEAD, PUT, DELETE, OPTIONS",
            Self::GetPutPatchDelete => "GET, HEAD, PUT, PATCH, DELETE, OPTIONS",
        })
    }

    fn words(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::PostAndDelete => "POST or DELETE",
            Self::GetAndPost => "GET or POST",
            Self::GetAndPut => "GET or PUT",
            Self::GetPutDelete => "GET, PUT or DELETE",
            Self::GetPutPatchDelete => "GET, PUT, PATCH or DELETE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_which_methods_it_takes() {
        assert!(matches!(Allowed::Get.check(&Method::HEAD), Ok(Checked::Taken)));
        assert!(matches!(Allowed::GetPutDelete.check(&Method::DELETE), Ok(Checked::Taken)));
        assert!(matches!(Allowed::GetAndPut.check(&Method::HEAD), Ok(Checked::Taken)));
        assert!(matches!(Allowed::Post.check(&Method::OPTIONS), Ok(Checked::Options)));
        let problem = Allowed::GetAndPut.check(&Method::DELETE).unwrap_err();
        assert_eq!(problem.detail, "DELETE is not allowed here, GET or PUT is");
        assert_eq!(problem.into_response("").headers()[ALLOW], "GET, HEAD, PUT, OPTIONS");
    }
}
