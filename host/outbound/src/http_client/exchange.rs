//! One request and its answer.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_sandbox::{OUTGOING_BODY_BYTES_MAX, OutgoingBody, OutgoingCall, OutgoingFault};
use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{timeout, timeout_at};

use super::connections::{Charging, Connection, Connections, HttpOrigin};
use super::connector::{Connector, charged};
use super::request_body::RequestBody;

/// How a request gets to its server.
pub(super) struct Way {
    /// Those of the tenant.
    pub(super) connections: Arc<Connections>,
    pub(super) connector: Arc<Connector>,
}

/// A request on its way.
pub(super) struct Exchange {
    pub(super) way: Way,
    pub(super) call: OutgoingCall,
    pub(super) request: Request<OutgoingBody>,
}

/// A part of an answer's body.
#[derive(Debug)]
pub(super) enum BodyEvent {
    Frame(Frame<Bytes>),
    /// The whole body was there.
    End,
    /// There is no more of it.
    Fault(OutgoingFault),
}

/// The parts of an answer's body, as they come.
pub(super) type Frames = mpsc::Receiver<BodyEvent>;

/// Send a request, and give the head of its answer to `answer`, then the body to its receiver. All
/// of it ends at the call's deadline. The call is dropped at the end.
pub(super) async fn exchange(
    Exchange { way, call, request }: Exchange,
    answer: oneshot::Sender<Result<Response<Frames>, OutgoingFault>>,
) {
    let place = HttpOrigin { scheme: call.scheme, host: call.host.clone(), port: call.port };
    let deadline = call.deadline.into();
    let beginning = begin(&way, &place, &call, request);
    let begun = timeout_at(deadline, beginning).await.unwrap_or(Err(OutgoingFault::TooLate));
    let (connection, response) = match begun {
        Ok(begun) => begun,
        Err(fault) => {
            let _ = answer.send(Err(fault));
            return;
        }
    };
    let charging = connection.charging(&call);
    let (head, body) = response.into_parts();
    if body.size_hint().lower() > OUTGOING_BODY_BYTES_MAX as u64 {
        let _ = answer.send(Err(OutgoingFault::BodyTooLarge));
        return;
    }
    let (sender, frames) = mpsc::channel(1);
    if answer.send(Ok(Response::from_parts(head, frames))).is_err() {
        return;
    }
    let passing = charged(&call, pass(body, &call, &charging, &sender));
    let passed = timeout_at(deadline, passing).await;
    let last = match passed.unwrap_or(Err(OutgoingFault::TooLate)) {
        Ok(()) => {
            // Before the plugin knows that it has all, so that its next request finds it.
            way.connections.keep(place, connection);
            BodyEvent::End
        }
        Err(fault) => BodyEvent::Fault(fault),
    };
    // Nobody waits for it any more after the deadline.
    let _ = timeout_at(deadline, sender.send(last)).await;
}

/// Send the request over a connection that waits, or over a new one. Returns the answer's head.
async fn begin(
    way: &Way,
    place: &HttpOrigin,
    call: &OutgoingCall,
    request: Request<OutgoingBody>,
) -> Result<(Connection, Response<Incoming>), OutgoingFault> {
    let mut request = in_origin_form(request).map(RequestBody::new);
    if let Some(mut connection) = way.connections.take(place, &call.addresses) {
        let _charging = connection.charging(call);
        let sent = within(call.first_byte_timeout, connection.sender.try_send_request(request));
        match sent.await? {
            Ok(response) => return Ok((connection, response)),
            // The server had closed it: nothing was sent.
            Err(mut error) => match error.take_message() {
                Some(unsent) => request = unsent,
                None => return Err(fault_of(error.error())),
            },
        }
    }
    let mut connection = way.connector.connect(&way.connections, call).await?;
    let _charging = connection.charging(call);
    let sent = within(call.first_byte_timeout, connection.sender.send_request(request));
    match sent.await? {
        Ok(response) => Ok((connection, response)),
        Err(error) => Err(fault_of(&error)),
    }
}

/// Pass on the body's frames, as fast as they are taken.
async fn pass(
    mut body: Incoming,
    call: &OutgoingCall,
    charging: &Charging<'_>,
    frames: &mpsc::Sender<BodyEvent>,
) -> Result<(), OutgoingFault> {
    let mut left = OUTGOING_BODY_BYTES_MAX;
    while let Some(frame) = within(call.between_bytes_timeout, body.frame()).await? {
        let frame = frame.map_err(|error| fault_of(&error))?;
        charging.charge();
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        left = left.checked_sub(bytes).ok_or(OutgoingFault::BodyTooLarge)?;
        // Without a receiver this task is about to be ended.
        frames.send(BodyEvent::Frame(frame)).await.map_err(|_| OutgoingFault::Ended)?;
    }
    Ok(())
}

/// Wait for an event, for so long if that is given.
async fn within<T>(
    time: Option<Duration>,
    event: impl Future<Output = T>,
) -> Result<T, OutgoingFault> {
    match time {
        Some(time) => timeout(time, event).await.map_err(|_| OutgoingFault::TooLate),
        None => Ok(event.await),
    }
}

/// The request as a server reads it: its path alone. The header `host` has the rest.
fn in_origin_form(mut request: Request<OutgoingBody>) -> Request<OutgoingBody> {
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    request
}

/// Why there is no answer, or not all of it.
fn fault_of(error: &hyper::Error) -> OutgoingFault {
    // A fault of the request's own body.
    if let Some(fault) = error.source().and_then(|source| source.downcast_ref::<OutgoingFault>()) {
        return fault.clone();
    }
    match error {
        error if error.is_parse_too_large() => OutgoingFault::HeadTooLarge,
        error if error.is_parse() => OutgoingFault::Garbage,
        _ => OutgoingFault::Ended,
    }
}
