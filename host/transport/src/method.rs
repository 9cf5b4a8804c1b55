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
    /// `PUT`.
    Put,
    /// `PUT` and `DELETE`.
    PutAndDelete,
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
        let fits = match self {
            Self::Get => [&Method::GET, &Method::HEAD].contains(&method),
            Self::Post => *method == Method::POST,
            Self::Put => *method == Method::PUT,
            Self::PutAndDelete => [&Method::PUT, &Method::DELETE].contains(&method),
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
            Self::Put => "PUT, OPTIONS",
            Self::PutAndDelete => "PUT, DELETE, OPTIONS",
        })
    }

    fn words(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::PutAndDelete => "PUT or DELETE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_which_methods_it_takes() {
        assert!(matches!(Allowed::Get.check(&Method::HEAD), Ok(Checked::Taken)));
        assert!(matches!(Allowed::PutAndDelete.check(&Method::DELETE), Ok(Checked::Taken)));
        assert!(matches!(Allowed::Post.check(&Method::OPTIONS), Ok(Checked::Options)));
        let problem = Allowed::Put.check(&Method::DELETE).unwrap_err();
        assert_eq!(problem.detail, "DELETE is not allowed here, PUT is");
        assert_eq!(problem.into_response("").headers()[ALLOW], "PUT, OPTIONS");
    }
}
