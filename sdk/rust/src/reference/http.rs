//! `wasi:http`: services are functions that the thread's test has made.

use std::cell::RefCell;
use std::rc::Rc;

use crate::http::{HttpError, HttpRequest, HttpResponse, UrlParts};

/// What a service answers.
pub(crate) type Answers = dyn Fn(&HttpRequest) -> HttpResponse;

/// A service of a test.
pub(crate) struct Service {
    /// The begin of its URLs, up to the host or the port.
    pub(crate) origin: String,
    pub(crate) answers: Box<Answers>,
}

thread_local! {
    /// In the order in which they were made.
    static SERVICES: RefCell<Vec<Rc<Service>>> = const { RefCell::new(Vec::new()) };
}

/// Let this thread's requests find the service, until [`remove`].
pub(crate) fn register(service: Rc<Service>) {
    SERVICES.with_borrow_mut(|services| services.push(service));
}

pub(crate) fn remove(service: &Rc<Service>) {
    SERVICES.with_borrow_mut(|services| services.retain(|other| !Rc::ptr_eq(other, service)));
}

pub(crate) fn send(
    request: &HttpRequest,
    target: &UrlParts<'_>,
) -> Result<HttpResponse, HttpError> {
    let scheme = if target.is_tls { "https" } else { "http" };
    let origin = format!("{scheme}://{}", target.authority);
    let named = |service: &&Rc<Service>| service.origin == origin;
    let found = SERVICES.with_borrow(|services| services.iter().rev().find(named).cloned());
    let service = found.ok_or_else(|| {
        HttpError::NotGranted(format!(
            "this test has no service {origin:?}: make one with testing::service"
        ))
    })?;
    Ok((service.answers)(request))
}
