//! One HTTP/1.1 connection: hyper serves it while it has a request.
//!
//! A connection that waits for a request is taken out of hyper and holds almost no memory. hyper
//! gets it back when its client sends something. If an answer leaves a part of its request's body
//! unread, the rest is read and dropped for a while before the connection is closed. Otherwise the
//! kernel would reset the connection, and the client could lose the answer.

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{Either, ready};
use gristmill_core::ErrorCode;
use http::header::{CONNECTION, HOST};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::answering::Answering;
use crate::connections::{Connections, IDLE_INTERVAL};
use crate::listener::ListenerConfig;
use crate::problem::Problem;
use crate::requests::Taking;
use crate::rewind::{ConnectionState, Rewind};
use crate::stream::Stream;

/// Maximum bytes that hyper reads at a time, and the maximum bytes of unwritten answers that it
/// keeps. No budget counts them: each connection with a request may hold about three times as many.
const READ_BYTES_MAX: usize = 64 << 10;

/// The settings of one connection.
pub(crate) struct Rules {
    builder: Builder,
    header_bytes_max: usize,
    /// The longest time for which a connection may wait for a request.
    wait_timeout: Duration,
    write_timeout: Duration,
    connections: Connections,
    stopping: CancellationToken,
}

/// Why a connection was taken out of hyper.
enum LeaveReason {
    Ended,
    /// The connection has no request.
    Idle,
    /// The client does not read its answers.
    Stalled,
}

/// Serve one connection until it ends. After the signal to stop, answer the requests under way.
pub(crate) async fn drive<H, F, B>(rules: Rules, stream: Stream, handler: H)
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin + 'static,
{
    let shared = Arc::new(ConnectionState::default());
    let mut io = Rewind::new(stream, shared.clone());
    let mut idle_since = Some(Instant::now());
    // When the connection last began to wait, and the number of events until then.
    let mut waited = (Instant::now(), shared.events());
    // The number of requests that had begun when hyper had read a part of the next head. hyper's
    // timeout for that head is running, so the connection must not leave hyper again.
    let mut in_part = None;
    loop {
        if let Some(since) = idle_since.take() {
            waited = (since, shared.events());
            if !rules.waits(&io, since).await {
                return;
            }
        }
        let service = service_fn(|request: Request<Incoming>| {
            let ongoing = shared.requests.begin();
            let refusal = refusal(&request, rules.header_bytes_max);
            let answer = match refusal {
                Some(refusal) => Either::Left(ready(Answering::of_listener(refusal, ongoing))),
                None => {
                    let answer = handler(request);
                    Either::Right(answer.map(|answer| Answering::of(answer, ongoing)))
                }
            };
            answer.map(|answer| {
                shared.note_close(answer.headers());
                Ok::<_, Infallible>(answer)
            })
        });
        let mut connection = rules.builder.serve_connection(io, service);
        let (mut stops, mut is_stopping) = (pin!(rules.stopping.cancelled()), false);
        let mut idle_checks = pin!(sleep(IDLE_INTERVAL));
        let mut events = None;
        let mut taking = Taking::new(&shared.requests);
        let left = poll_fn(|context| {
            loop {
                if let Poll::Ready(outcome) = connection.poll_unpin(context) {
                    return Poll::Ready(outcome.map(|()| LeaveReason::Ended));
                }
                if idle_checks.as_mut().poll(context).is_ready() {
                    if taking.has_stalled(&shared.requests, rules.write_timeout) {
                        return Poll::Ready(Ok(LeaveReason::Stalled));
                    }
                    let now = Some(shared.events());
                    let nothing_happened = std::mem::replace(&mut events, now) == now;
                    if nothing_happened
                        && shared.is_idle()
                        && in_part != Some(shared.requests.begun())
                    {
                        return Poll::Ready(Ok(LeaveReason::Idle));
                    }
                    idle_checks.as_mut().reset(tokio::time::Instant::now() + IDLE_INTERVAL);
                    continue;
                }
                if is_stopping || stops.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                is_stopping = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        });
        match left.await {
            Ok(LeaveReason::Ended) if shared.closes() => {
                // Only the socket is kept for this.
                let io = connection.into_parts().io;
                return Box::pin(rules.linger(io)).await;
            }
            Ok(LeaveReason::Ended | LeaveReason::Stalled) => return,
            Ok(LeaveReason::Idle) => {
                let parts = connection.into_parts();
                io = parts.io;
                if parts.read_buf.is_empty() {
                    // Over TLS a socket can be readable although nothing for hyper comes.
                    let (since, events) = waited;
                    let is_same = events == shared.events();
                    idle_since = Some(if is_same { since } else { Instant::now() });
                } else {
                    io.put_before(&parts.read_buf);
                    in_part = Some(shared.requests.begun());
                }
            }
            Err(error) => {
                tracing::debug!(%error, "connection ended");
                return;
            }
        }
    }
}

impl Rules {
    pub(crate) fn new(
        builder: Builder,
        config: &ListenerConfig,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            builder,
            header_bytes_max: config.header_bytes_max,
            wait_timeout: config.header_read_timeout,
            write_timeout: config.write_timeout,
            connections: config.connections.clone(),
            stopping,
        }
    }

    /// Give a client that is still sending some time to see its answer. The place may be given to
    /// another connection meanwhile.
    async fn linger(&self, io: Rewind) {
        let waiting = self.connections.wait(Instant::now());
        tokio::select! {
            () = io.linger() => {}
            () = waiting.closes() => {}
            () = self.stopping.cancelled() => {}
        }
    }

    /// Wait for a client that has been silent since `since`. Returns whether it sends something.
    async fn waits(&self, io: &Rewind, since: Instant) -> bool {
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

/// The refusal of a request, if its head is too long or it does not have exactly one `Host`.
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
    let detail = format!("{hosts} Host headers are given: exactly one is needed");
    refusal(Problem::new(ErrorCode::InvalidRequest, detail).into_response(""))
}

/// The bytes of a request's head, without optional blanks.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let line = request.method().as_str().len() + request.uri().path().len();
    let query = request.uri().query().map_or(0, |query| query.len() + 1);
    let headers = request.headers().iter();
    let headers: usize =
        headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum();
    line + query + "  HTTP/1.1\r\n\r\n".len() + headers
}

/// hyper's settings for every connection of a listener.
pub(crate) fn builder(config: &ListenerConfig) -> Builder {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_read_timeout)
        .max_header_size(config.header_bytes_max)
        .max_buf_size(READ_BYTES_MAX.max(config.header_bytes_max));
    builder
}
