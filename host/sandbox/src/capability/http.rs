//! `http`: requests to other services by one function, which the shared runtimes of languages
//! import in place of all that `wasi:http` has.
//!
//! A request goes the same way as one of `wasi:http`: to the same destinations, with the same
//! limits, and waiting as that does. The answer's body is collected here. Its memory is counted
//! before it is taken, and it grows by doubling, so that a service which sends little by little
//! costs no more work than one that sends all at once.

mod bindings;
mod request;
pub(super) mod target;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use wasmtime::component::{HasSelf, Linker};

pub use self::bindings::wit;
use self::request::{CheckedRequest, head_bytes, is_of_connection};
use self::target::OutgoingTarget;
use super::{log, wasi};
use crate::call::CallState;
use crate::limiter::Limited;
use crate::outgoing::{OUTGOING_BODY_BYTES_MAX, OutgoingBody, OutgoingFault, Timeouts};

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &["gristmill:plugin/http@0.3.0"];

/// The memory of a header beside its name and its value.
const FIELD_BYTES: usize = 256;

pub(crate) fn link<S>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()>
where
    S: AsMut<wasi::CapabilityState> + AsMut<log::CapabilityState> + Send + 'static,
{
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

type HostResult<T> = wasmtime::Result<Result<T, wit::HttpError>>;

/// An answer whose body is whole.
struct Whole {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl<S> wit::Host for CallState<S>
where
    S: AsMut<wasi::CapabilityState> + AsMut<log::CapabilityState> + Send,
{
    async fn send(&mut self, request: wit::HttpRequest) -> HostResult<wit::HttpResponse> {
        let body = match &request.body {
            Some(body) => self.table.get(body)?.clone(),
            None => Bytes::new(),
        };
        let head_bytes = head_bytes(&request);
        self.before_looking_at(head_bytes).await?;
        let CheckedRequest { target, changes, time, request: asked } =
            or_tell!(CheckedRequest::of(&request, body));
        let permitted = self.permitted(&target, changes, time);
        let sending = or_tell!(permitted.map_err(|refused| refused_error(&refused, &target)));
        // The head's copy, which is sent.
        let held = head_bytes + (request.headers.len() + 1) * FIELD_BYTES;
        self.hold(held)?;
        let sent = self.waits().until(sending.send(asked, Timeouts::default())).await?;
        let answer = match sent {
            Ok(response) => self.whole(response).await?,
            Err(fault) => Err(fault),
        };
        self.give_back(held);
        let Whole { status, headers, body } = match answer {
            Ok(answer) => answer,
            Err(OutgoingFault::OverBudget(error)) => return Err(Limited::Owner(error).into()),
            Err(fault) => return Ok(Err(error_of(&fault, &target))),
        };
        let fields = || headers.iter().filter(|(name, _)| !is_of_connection(name));
        let bytes = fields().map(|(name, value)| {
            // A byte that is not UTF-8 becomes a character of three.
            FIELD_BYTES + name.as_str().len() + 3 * value.len()
        });
        self.hold(bytes.sum())?;
        let headers = fields().map(|(name, value)| wit::Field {
            name: name.as_str().to_owned(),
            value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
        });
        let headers = headers.collect();
        let body = self.table.push(Bytes::from(body))?;
        self.check_cpu()?;
        Ok(Ok(wit::HttpResponse { status: status.as_u16(), headers, body }))
    }
}

impl<S> CallState<S>
where
    S: AsMut<wasi::CapabilityState> + AsMut<log::CapabilityState> + Send,
{
    /// The answer with its whole body, which is counted.
    async fn whole(
        &mut self,
        response: Response<OutgoingBody>,
    ) -> wasmtime::Result<Result<Whole, OutgoingFault>> {
        let (head, mut frames) = response.into_parts();
        let mut body = Vec::<u8>::new();
        while let Some(frame) = self.waits().until(frames.frame()).await? {
            let part = match frame.map(|frame| frame.into_data()) {
                Ok(Ok(part)) => part,
                // Trailers, which nobody gets.
                Ok(Err(_)) => continue,
                Err(fault) => {
                    self.give_back(body.capacity());
                    return Ok(Err(fault));
                }
            };
            self.make_room(&mut body, part.len()).await?;
            body.extend_from_slice(&part);
            self.may_go_on()?;
        }
        let spare = body.capacity() - body.len();
        body.shrink_to_fit();
        self.give_back(spare);
        Ok(Ok(Whole { status: head.status, headers: head.headers, body }))
    }

    /// Let `body` take so many bytes more. Its capacity counts.
    async fn make_room(&mut self, body: &mut Vec<u8>, bytes: usize) -> wasmtime::Result<()> {
        let (needed, before) = (body.len() + bytes, body.capacity());
        if needed <= before {
            return Ok(self.before_looking_at(bytes).await?);
        }
        let capacity = needed.max((2 * before).min(OUTGOING_BODY_BYTES_MAX));
        self.before_looking_at(capacity).await?;
        self.hold(capacity)?;
        body.reserve_exact(capacity - body.len());
        self.give_back(before);
        Ok(())
    }
}

fn refused_error(refused: &wasi::Refused, target: &OutgoingTarget) -> wit::HttpError {
    let text = told(target, refused);
    match refused {
        wasi::Refused::TooMany => wit::HttpError::TooLarge(text),
        wasi::Refused::NotGranted(_) | wasi::Refused::Trial => wit::HttpError::NotGranted(text),
    }
}

fn error_of(fault: &OutgoingFault, target: &OutgoingTarget) -> wit::HttpError {
    let text = told(target, fault);
    match fault {
        OutgoingFault::Prohibited(_) => wit::HttpError::ProhibitedAddress(text),
        OutgoingFault::ConnectTimeout(_) | OutgoingFault::TooLate | OutgoingFault::TooMany => {
            wit::HttpError::TimedOut(text)
        }
        OutgoingFault::HeadTooLarge
        | OutgoingFault::BodyTooLarge
        | OutgoingFault::RequestTooLarge => wit::HttpError::TooLarge(text),
        OutgoingFault::NameNotFound
        | OutgoingFault::Refused
        | OutgoingFault::Unreachable
        | OutgoingFault::Certificate(_)
        | OutgoingFault::Tls(_)
        | OutgoingFault::Ended
        | OutgoingFault::Garbage
        | OutgoingFault::Unfinished
        | OutgoingFault::OverBudget(_)
        | OutgoingFault::Unavailable => wit::HttpError::Connection(text),
    }
}

fn told(target: &OutgoingTarget, why: impl std::fmt::Display) -> String {
    format!("the request to {target} failed: {why}")
}
