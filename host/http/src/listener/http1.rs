//! One HTTP/1.1 connection. hyper reads heads and most bodies and writes answers; the large body of
//! a plain `POST` is read by whoever handles the request, straight into the memory where it is
//! used.
//!
//! hyper reads a body into buffers of its own, out of which it would have to be copied together. So
//! when the head of a large request is there, the connection is taken out of hyper, and what is
//! left of the body is read from the socket. Then a new hyper connection goes on: it is given a
//! request without a body to stand in for the one that was taken, and the answer to the one is the
//! answer to the other.
//!
//! A connection that waits for a request is taken out of hyper, too, and holds next to nothing:
//! hyper has it as soon as something comes.

mod io;
mod large_body;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use futures_util::future::{Either, ready, select};
use gristmill_core::ErrorCode;
use http::header::{CONNECTION, EXPECT, HOST, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use tokio::sync::oneshot;
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use self::io::{Io, Shared, lock};
pub use self::large_body::LargeBody;
use self::large_body::Returned;
use super::Stream;
use super::answering::Answering;
use super::connections::{Connections, IDLE_INTERVAL};
use super::requests::Taking;
use crate::body::RequestBody;
use crate::problem::Problem;

/// From here on a body is worth taking the connection out of hyper.
const LARGE_BODY_BYTES: u64 = 64 << 10;

/// What stands in for a request that was taken.
const STAND_IN: &[u8] = b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n";

/// What a connection is served with.
pub(super) struct Rules {
    pub(super) builder: Builder,
    pub(super) header_bytes_max: usize,
    /// For how long a connection may wait for a request.
    pub(super) wait_timeout: Duration,
    pub(super) write_timeout: Duration,
    pub(super) connections: Connections,
    pub(super) stopping: CancellationToken,
}

/// Why hyper no longer has a connection.
enum Left {
    Ended,
    /// It was taken for the large body of this request.
    Taken(Box<Request<Incoming>>),
    /// No request is on its way.
    Idle,
    /// The client does not take its answers.
    Stalled,
}

/// Serve one connection until it ends, or until what is under way is answered once it is to stop.
pub(super) async fn drive<H, F, B>(mut rules: Rules, stream: Stream, handler: H)
where
    H: Fn(Request<RequestBody>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin + 'static,
{
    let shared = Arc::new(Shared::default());
    let mut io = Io::new(stream, shared.clone());
    let (mut begun, mut is_sending) = (None, false);
    let mut idle_since = Some(Instant::now());
    // How many requests had begun when the head of the next one was found to have come in part. It
    // has hyper's own time, which must not begin again and again.
    let mut in_part = None;
    loop {
        if let Some(since) = idle_since.take()
            && !rules.waits(&io, since).await
        {
            return;
        }
        let first = Mutex::new(begun.take());
        let service = service_fn(|request: Request<Incoming>| {
            let ongoing = shared.requests.begin();
            let answer = match lock(&first).take() {
                Some(answer) => Either::Right(Either::Left(answer)),
                None => match refusal(&request, rules.header_bytes_max) {
                    Some(refusal) => {
                        let refusal = Answering::own(refusal, ongoing);
                        return Either::Left(ready(Ok::<_, Infallible>(refusal)));
                    }
                    None if is_large(&request) => {
                        shared.take(request);
                        // This hyper connection will see no answer.
                        Either::Right(Either::Right(pending()))
                    }
                    None => Either::Left(handler(request.map(RequestBody::Left))),
                },
            };
            Either::Right(answer.map(|answer| Ok(Answering::of(answer, ongoing))))
        });
        let mut connection = rules.builder.serve_connection(io, service);
        let (mut stops, mut is_stopping) = (pin!(rules.stopping.cancelled()), false);
        let mut looks = pin!(sleep(IDLE_INTERVAL));
        let (mut events, may_idle) = (None, !is_sending);
        let mut taking = Taking::new(&shared.requests);
        let left = poll_fn(|context| {
            loop {
                if let Poll::Ready(outcome) = connection.poll_unpin(context) {
                    return Poll::Ready(outcome.map(|()| Left::Ended));
                }
                if let Some(request) = shared.taken() {
                    return Poll::Ready(Ok(Left::Taken(Box::new(request))));
                }
                if looks.as_mut().poll(context).is_ready() {
                    if taking.has_stalled(&shared.requests, rules.write_timeout) {
                        return Poll::Ready(Ok(Left::Stalled));
                    }
                    let now = Some(shared.events());
                    let nothing_happened = std::mem::replace(&mut events, now) == now;
                    let has_waited = may_idle && nothing_happened && shared.is_idle();
                    if has_waited && in_part != Some(shared.requests.begun()) {
                        return Poll::Ready(Ok(Left::Idle));
                    }
                    looks.as_mut().reset(tokio::time::Instant::now() + IDLE_INTERVAL);
                    continue;
                }
                if is_stopping || stops.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                is_stopping = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        });
        let request = match left.await {
            Ok(Left::Taken(request)) => request,
            Ok(Left::Ended) if is_sending => {
                return Box::pin(connection.into_parts().io.linger()).await;
            }
            Ok(Left::Ended | Left::Stalled) => return,
            Ok(Left::Idle) => {
                let parts = connection.into_parts();
                io = parts.io;
                if parts.read_buf.is_empty() {
                    idle_since = Some(Instant::now());
                } else {
                    io.put_before(&parts.read_buf);
                    in_part = Some(shared.requests.begun());
                }
                continue;
            }
            Err(error) => {
                tracing::debug!(%error, "connection ended");
                return;
            }
        };
        let parts = connection.into_parts();
        let (request, returned) = take_out(*request, parts.io, &parts.read_buf);
        // Once the body is read, hyper has the connection again, and sees when the client leaves.
        // By then the answer is begun, if not done.
        let (returned, answer) = match select(Box::pin(handler(request)), returned).await {
            Either::Left((answer, returned)) => (returned.await, Either::Left(ready(answer))),
            Either::Right((returned, answer)) => (returned, Either::Right(answer)),
        };
        let Ok(Returned { io: again, is_read }) = returned else { return };
        if !is_read {
            // What is left of the body is not the next request, and its end not the end of the
            // client.
            rules.builder.keep_alive(false).half_close(true);
            is_sending = true;
        }
        if rules.stopping.is_cancelled() {
            rules.builder.keep_alive(false);
        }
        (io, begun) = (again, Some(answer));
        io.put_before(STAND_IN);
    }
}

impl Rules {
    /// Wait for a client that has sent nothing since `since`; whether it does.
    async fn waits(&self, io: &Io, since: Instant) -> bool {
        let waiting = self.connections.wait(since);
        tokio::select! {
            biased;
            readable = io.readable() => readable.is_ok(),
            () = waiting.closes() => false,
            () = self.stopping.cancelled() => false,
            () = sleep_until((since + self.wait_timeout).into()) => false,
        }
    }
}

/// What a request gets whose head is too long, or does not say once for which host it is.
fn refusal(request: &Request<Incoming>, header_bytes_max: usize) -> Option<Response<Bytes>> {
    let headers = request.headers();
    let refusal = |mut answer: Response<Bytes>| {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        Some(answer)
    };
    if head_bytes(request) > header_bytes_max {
        let mut answer = Response::new(Bytes::new());
        *answer.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return refusal(answer);
    }
    let hosts = headers.get_all(HOST).iter().count();
    if hosts == 1 || hosts == 0 && request.version() < Version::HTTP_11 {
        return None;
    }
    let detail = format!("{hosts} Host headers are given: must be one");
    refusal(Problem::new(ErrorCode::InvalidRequest, detail).into_response(""))
}

/// How many bytes a request's head has at least.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let line = request.method().as_str().len() + request.uri().path().len();
    let query = request.uri().query().map_or(0, |query| query.len() + 1);
    let headers = request.headers().iter();
    let headers: usize =
        headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum();
    line + query + "  HTTP/1.1\r\n\r\n".len() + headers
}

/// Whether a request's body is read outside hyper: it is large, of known length, and on its way.
fn is_large(request: &Request<Incoming>) -> bool {
    let headers = request.headers();
    let mut connection = headers.get_all(CONNECTION).iter().map(HeaderValue::as_bytes);
    request.body().size_hint().exact().is_some_and(|len| len >= LARGE_BODY_BYTES)
        && *request.method() == Method::POST
        && request.version() == Version::HTTP_11
        && connection.all(|option| option.eq_ignore_ascii_case(b"keep-alive"))
        && !headers.contains_key(EXPECT)
        && !headers.contains_key(UPGRADE)
}

/// A request whose connection was taken out of hyper, of whose body hyper had `read` the beginning;
/// and where the connection comes back.
fn take_out(
    request: Request<Incoming>,
    mut io: Io,
    read: &[u8],
) -> (Request<RequestBody>, oneshot::Receiver<Returned>) {
    let (head, mut body) = request.into_parts();
    let len = body.size_hint().exact().unwrap_or_default();
    let mut begun = BytesMut::new();
    // With its connection gone this body ends, after what hyper had passed on of it.
    while let Some(Some(Ok(frame))) = body.frame().now_or_never() {
        begun.extend(frame.into_data());
    }
    begun.extend_from_slice(read);
    io.put_before(&begun);
    let (body, returned) = LargeBody::new(len as usize, io);
    (Request::from_parts(head, RequestBody::Right(body)), returned)
}
