//! One HTTP/2 connection, which carries the calls of gRPC, or requests of clients that chose it
//! with TLS.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use crate::answering::Answering;
use crate::coalesce::{Calls, Coalesced};
use crate::connections::Connections;
use crate::frames::{HTTP2_PREFACE_BYTES, Paced};
use crate::listener::ListenerConfig;
use crate::requests::{Close, Requests};
use crate::stream::Stream;
use crate::turns::TurnExecutor;

/// Streams that one HTTP/2 connection may have at the same time.
const STREAMS_MAX: u32 = 1024;

/// Maximum streams that a client may reset before they are answered. More of them close the
/// connection.
const RESET_STREAMS_MAX: usize = 64;

/// Maximum bytes that are read of one HTTP/2 stream, and of all streams of a connection, before
/// their handlers take them.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// An HTTP/2 connection that does not answer a ping within the timeout is closed.
const PING_INTERVAL: Duration = Duration::from_secs(60);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// The settings of one connection.
pub(crate) struct Rules {
    builder: Builder<TurnExecutor>,
    /// The longest time for the client's preface, and for each head.
    header_timeout: Duration,
    write_timeout: Duration,
    connections: Connections,
    stopping: CancellationToken,
}

impl Rules {
    pub(crate) fn new(
        config: &ListenerConfig,
        executor: TurnExecutor,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            builder: builder(config, executor),
            header_timeout: config.header_read_timeout,
            write_timeout: config.write_timeout,
            connections: config.connections.clone(),
            stopping,
        }
    }
}

/// Serve one connection until it ends, until its client stops reading its answers, or until nothing
/// is under way and another connection needs the permit. After the signal to stop, answer the calls
/// under way.
pub(crate) async fn drive<H, F, B>(rules: Rules, mut stream: Stream, handler: H)
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    // hyper waits for the first bytes of a connection without a limit.
    let mut preface = [0; HTTP2_PREFACE_BYTES];
    let begun = {
        let waiting = rules.connections.wait(Instant::now());
        let reading = stream.read_exact(&mut preface);
        tokio::select! {
            begun = tokio::time::timeout(rules.header_timeout, reading) => begun,
            () = waiting.closes() => return,
            () = rules.stopping.cancelled() => return,
        }
    };
    if matches!(begun, Ok(Ok(_))) {
        let stream = Paced::new(stream, preface, rules.header_timeout);
        // Boxed, because a connection that only waits should take no memory for this.
        Box::pin(drive_begun(rules, stream, handler)).await;
    }
}

async fn drive_begun<H, F, B>(rules: Rules, stream: Paced, handler: H)
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    let (calls, requests) = (Calls::default(), Arc::new(Requests::default()));
    let io = Coalesced::new(TokioIo::new(stream), calls.clone());
    let service = service_fn(|mut request: Request<Incoming>| {
        let (call, ongoing) = (calls.begin(), requests.begin());
        request.extensions_mut().insert(requests.clone());
        let answer = handler(request);
        async move {
            let answer = answer.await;
            drop(call);
            Ok::<_, Infallible>(Answering::of(answer, ongoing))
        }
    });
    let mut connection = pin!(rules.builder.serve_connection(io, service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = rules.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        close = requests.closes(&rules.connections, rules.write_timeout) => match close {
            Close::Stalled => {
                tracing::debug!("a client does not take its answers");
                Ok(())
            }
            Close::Evicted => {
                connection.as_mut().graceful_shutdown();
                // Answer the calls that the client sent before it knew.
                tokio::select! {
                    ended = connection => ended,
                    _ = requests.wait_idle(rules.write_timeout) => Ok(()),
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

/// hyper's settings for a connection.
fn builder(config: &ListenerConfig, executor: TurnExecutor) -> Builder<TurnExecutor> {
    let mut builder = Builder::new(executor);
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(config.header_bytes_max.try_into().unwrap_or(u32::MAX))
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESET_STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}
