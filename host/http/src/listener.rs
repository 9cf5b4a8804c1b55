//! Accepting connections and letting them finish: the same for every plane.

mod answering;
mod calls;
mod connections;
mod frames;
mod http1;
mod requests;

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::answering::Answering;
use self::calls::{Calls, WrittenTogether};
pub use self::connections::Connections;
use self::frames::Paced;
use self::requests::Close;
pub(crate) use self::requests::{Ongoing, Requests, StaysOpen};
use crate::line_rate::LineRate;

/// Bounds on a connection.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// From a connection's opening, or the end of its last response, to the beginning of the next
    /// request, and from there to the end of its headers.
    pub header_read_timeout: Duration,
    /// Bytes of a request's line and headers.
    pub header_bytes_max: usize,
    /// For how long a client may take next to nothing of what it is sent.
    pub write_timeout: Duration,
    /// How long a shutdown waits for what is under way.
    pub drain_timeout: Duration,
    /// The places that connections have.
    pub connections: Connections,
}

impl Default for ListenerConfig {
    fn default() -> Self {
        Self {
            header_read_timeout: Duration::from_secs(30),
            header_bytes_max: 32 << 10,
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(30),
            connections: Connections::default(),
        }
    }
}

/// Tells that the server is about to end, and listeners to stop accepting and to drain.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    announced: CancellationToken,
    begun: CancellationToken,
}

impl Shutdown {
    pub fn new() -> Self {
        Self::default()
    }

    /// Say that the server is about to end, while it serves on: it is no longer ready.
    pub fn announce(&self) {
        self.announced.cancel();
    }

    /// Begin the shutdown.
    pub fn begin(&self) {
        self.announce();
        self.begun.cancel();
    }

    /// Whether it was announced.
    pub fn is_announced(&self) -> bool {
        self.announced.is_cancelled()
    }

    /// Wait until it begins.
    pub async fn begun(&self) {
        self.begun.cancelled().await;
    }
}

type Stream = Pin<Box<TimeoutStream<TcpStream>>>;

/// What a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    /// Without TLS, for gRPC.
    Http2,
}

/// What an HTTP/2 client sends first, and how often it is looked for where only some of it came.
const HTTP2_PREFACE_BYTES: usize = 24;
const PREFACE_INTERVAL: Duration = Duration::from_millis(50);

/// Streams that one HTTP/2 connection may have at the same time.
const STREAMS_MAX: u32 = 1024;

/// Streams that a client reset before they were answered; more closes the connection.
const RESET_STREAMS_MAX: usize = 64;

/// How much of one HTTP/2 stream, and of all of a connection's, is read ahead of whoever takes it.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// What hyper reads at a time of an HTTP/1.1 body.
const READ_BYTES_MAX: usize = 256 << 10;

/// An HTTP/2 connection that leaves a ping unanswered for as long is closed.
const PING_INTERVAL: Duration = Duration::from_secs(60);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Serve `protocol` on `listener` with `handler` until the shutdown; then drain. Returns whether
/// all connections finished in time.
pub async fn serve<H, F, B>(
    listener: TcpListener,
    protocol: Protocol,
    config: ListenerConfig,
    shutdown: Shutdown,
    handler: H,
) -> bool
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    let connections = TaskTracker::new();
    let mut refusals = LineRate::default();
    let http1 = http1_builder(&config);
    let http2 = http2_builder(&config);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.begun() => break,
        };
        let (stream, client) = match accepted {
            Ok((stream, address)) => (stream, address.ip()),
            Err(error) => {
                // Out of file descriptors, most likely: others must close before more can open.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        // Whoever is in the way is closed first; whoever comes now waits.
        let place = tokio::select! {
            place = config.connections.place(client) => place,
            () = shutdown.begun() => break,
        };
        let Some(place) = place else {
            if let Some(left_out) = refusals.take(Instant::now()) {
                tracing::warn!(%client, left_out, "a client has as many connections as it may");
            }
            continue;
        };
        // Small answers must not wait for the client's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        let handler = handler.clone();
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(config.write_timeout));
        let stream = Box::pin(stream);
        // One of its own: whoever waits for a token locks it, whenever it is polled.
        let stopping = shutdown.begun.child_token();
        match protocol {
            Protocol::Http1 => {
                let rules = http1::Rules {
                    builder: http1.clone(),
                    header_bytes_max: config.header_bytes_max,
                    wait_timeout: config.header_read_timeout,
                    write_timeout: config.write_timeout,
                    connections: config.connections.clone(),
                    stopping,
                };
                connections.spawn(async move {
                    http1::drive(rules, stream, handler).await;
                    drop(place);
                });
            }
            Protocol::Http2 => {
                let (http2, timeout) = (http2.clone(), config.header_read_timeout);
                let rules = Http2Rules {
                    write_timeout: config.write_timeout,
                    connections: config.connections.clone(),
                    stopping,
                };
                connections.spawn(async move {
                    // hyper itself waits for a connection's first bytes for as long as that takes.
                    let begun = {
                        let waiting = rules.connections.wait(Instant::now());
                        tokio::select! {
                            begun = tokio::time::timeout(timeout, begins(stream.get_ref())) => begun,
                            () = waiting.closes() => return,
                            () = rules.stopping.cancelled() => return,
                        }
                    };
                    if matches!(begun, Ok(Ok(()))) {
                        let stream = Paced::new(stream, timeout);
                        // Boxed: until here it takes no memory.
                        Box::pin(drive_http2(http2, stream, handler, rules)).await;
                    }
                    drop(place);
                });
            }
        }
    }
    drop(listener);
    connections.close();
    tokio::time::timeout(config.drain_timeout, connections.wait()).await.is_ok()
}

/// What an HTTP/2 connection is served with.
struct Http2Rules {
    write_timeout: Duration,
    connections: Connections,
    stopping: CancellationToken,
}

/// Serve one HTTP/2 connection until it ends, its client does not take its answers, or nothing is under way and others
/// need its place. Once it is to stop, what is under way is answered.
async fn drive_http2<H, F, B>(
    builder: conn::http2::Builder<TokioExecutor>,
    stream: Paced,
    handler: H,
    rules: Http2Rules,
) where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    let (calls, requests) = (Calls::default(), Arc::new(Requests::default()));
    let io = WrittenTogether::new(TokioIo::new(stream), calls.clone());
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
    let mut connection = pin!(builder.serve_connection(io, service));
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
                // Calls that came before the client knew are answered.
                tokio::select! {
                    ended = connection => ended,
                    _ = requests.rests(rules.write_timeout) => Ok(()),
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

/// Wait until all of the preface is there that an HTTP/2 connection begins with.
async fn begins(stream: &TcpStream) -> io::Result<()> {
    let mut preface = [0; HTTP2_PREFACE_BYTES];
    stream.readable().await?;
    while (1..preface.len()).contains(&stream.peek(&mut preface).await?) {
        // In one piece, but for clients that mean no good.
        tokio::time::sleep(PREFACE_INTERVAL).await;
    }
    Ok(())
}

fn http1_builder(config: &ListenerConfig) -> conn::http1::Builder {
    let mut builder = conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_read_timeout)
        .max_header_size(config.header_bytes_max)
        .max_buf_size(READ_BYTES_MAX.max(config.header_bytes_max));
    builder
}

fn http2_builder(config: &ListenerConfig) -> conn::http2::Builder<TokioExecutor> {
    let mut builder = conn::http2::Builder::new(TokioExecutor::new());
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
