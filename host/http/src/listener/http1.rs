//! One HTTP/1.1 connection. hyper reads heads and most bodies and writes answers; the large body of a plain `POST` is
//! read by whoever handles the request, straight into the memory where it is used.
//!
//! hyper reads a body into buffers of its own, out of which it would have to be copied together. So when the head of
//! a large request is there, the connection is taken out of hyper, and what is left of the body is read from the
//! socket. Then a new hyper connection goes on: it is given a request without a body to stand in for the
//! one that was taken, and the answer to the one is the answer to the other.

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

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use futures_util::future::{Either, ready, select};
use http::header::{CONNECTION, EXPECT, UPGRADE};
use http::{HeaderValue, Method, Request, Response, Version};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use self::io::{Io, Shared, lock};
pub use self::large_body::LargeBody;
use self::large_body::Returned;
use super::Stream;
use crate::body::RequestBody;

/// From here on a body is worth taking the connection out of hyper.
const LARGE_BODY_BYTES: u64 = 64 << 10;

/// What stands in for a request that was taken.
const STAND_IN: &[u8] = b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n";

/// Serve one connection until it ends, or until what is under way is answered once `stopping` comes.
pub(super) async fn drive<H, F, B>(
    mut builder: Builder,
    stream: Stream,
    handler: H,
    stopping: CancellationToken,
) where
    H: Fn(Request<RequestBody>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    let shared = Arc::new(Shared::default());
    let mut io = Io::new(stream, shared.clone());
    let (mut begun, mut is_sending) = (None, false);
    loop {
        let first = Mutex::new(begun.take());
        let service = service_fn(|request: Request<Incoming>| {
            let answer = match lock(&first).take() {
                Some(answer) => Either::Right(Either::Left(answer)),
                None if is_large(&request) => {
                    shared.take(request);
                    // This hyper connection will see no answer.
                    Either::Right(Either::Right(pending()))
                }
                None => Either::Left(handler(request.map(RequestBody::Left))),
            };
            answer.map(Ok::<_, Infallible>)
        });
        let mut connection = builder.serve_connection(io, service);
        let (mut stops, mut is_stopping) = (pin!(stopping.cancelled()), false);
        let taken = poll_fn(|context| {
            loop {
                if let Poll::Ready(outcome) = connection.poll_unpin(context) {
                    return Poll::Ready(outcome.map(|()| None));
                }
                if let Some(request) = shared.taken() {
                    return Poll::Ready(Ok(Some(request)));
                }
                if is_stopping || stops.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                is_stopping = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        });
        let request = match taken.await {
            Ok(Some(request)) => request,
            Ok(None) if is_sending => return connection.into_parts().io.linger().await,
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%error, "connection ended");
                return;
            }
        };
        let parts = connection.into_parts();
        let (request, returned) = take_out(request, parts.io, &parts.read_buf);
        // Once the body is read, hyper has the connection again, and sees when the client leaves. By then the
        // answer is begun, if not done.
        let (returned, answer) = match select(Box::pin(handler(request)), returned).await {
            Either::Left((answer, returned)) => (returned.await, Either::Left(ready(answer))),
            Either::Right((returned, answer)) => (returned, Either::Right(answer)),
        };
        let Ok(Returned { io: again, is_read }) = returned else { return };
        if !is_read {
            // What is left of the body is not the next request, and its end not the end of the client.
            builder.keep_alive(false).half_close(true);
            is_sending = true;
        }
        if stopping.is_cancelled() {
            builder.keep_alive(false);
        }
        (io, begun) = (again, Some(answer));
        io.put_before(STAND_IN);
    }
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

/// A request whose connection was taken out of hyper, of whose body hyper had `read` the beginning; and where the
/// connection comes back.
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
