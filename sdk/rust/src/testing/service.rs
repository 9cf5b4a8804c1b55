//! Services of tests.

use std::rc::Rc;

use crate::bindings::http as host;
use crate::http::{HttpRequest, HttpResponse};

/// Let this thread's requests to `origin`, such as `https://api.example.com`, get the answers of a
/// function, until the returned value is dropped. Of services of one origin, the last one counts.
/// Other requests end in [`HttpError::NotGranted`](crate::http::HttpError::NotGranted).
pub fn service(
    origin: &str,
    answers: impl Fn(&HttpRequest) -> HttpResponse + 'static,
) -> TestService {
    let service = Rc::new(host::Service { origin: origin.into(), answers: Box::new(answers) });
    host::register(Rc::clone(&service));
    TestService(service)
}

/// A service of a test. It is there until this is dropped.
#[must_use = "the service is there until this value is dropped"]
pub struct TestService(Rc<host::Service>);

impl Drop for TestService {
    fn drop(&mut self) {
        host::remove(&self.0);
    }
}
