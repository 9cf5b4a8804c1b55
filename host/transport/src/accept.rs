//! Accepting connections, and draining them at shutdown. All planes use it.

use std::error::Error;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_core::HostTime;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use tokio::net::TcpListener;
use tokio_io_timeout::TimeoutStream;
use tokio_util::task::TaskTracker;

use crate::line_rate::LineRate;
use crate::listener::{ListenerConfig, Protocol};
use crate::shutdown::Shutdown;
use crate::stream::{Socket, Stream};
use crate::tls::{Newcomer, Secured, Tls};
use crate::turns::{InTurns, TurnExecutor};
use crate::{http1, http2};

/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A listener, and how its connections are served.
pub struct Listening<H> {
    /// Accepts the connections.
    pub listener: TcpListener,
    /// The protocol of all its connections. With TLS, clients of HTTP/1.1 may choose HTTP/2.
    pub protocol: Protocol,
    /// Its TLS. Without it, connections are not encrypted.
    pub tls: Option<Tls>,
    /// The bounds on its connections.
    pub config: ListenerConfig,
    /// No connection is accepted after it begins.
    pub shutdown: Shutdown,
    /// Answers one request of the client with this address.
    pub handler: H,
}

/// What serves each connection of a listener.
struct Server<H> {
    http1: hyper::server::conn::http1::Builder,
    config: ListenerConfig,
    shutdown: Shutdown,
    handler: H,
}

/// Serve a listener until the shutdown begins. Then drain: wait for the requests under way. Returns
/// whether all connections ended in time.
pub async fn serve<H, F, B>(listening: Listening<H>) -> bool
where
    H: Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    let Listening { listener, protocol, tls, config, shutdown, handler } = listening;
    let connections = TaskTracker::new();
    let mut refusals = LineRate::default();
    let server = Arc::new(Server {
        http1: http1::builder(&config),
        config: config.clone(),
        shutdown: shutdown.clone(),
        handler,
    });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.begun() => break,
        };
        let (socket, client) = match accepted {
            Ok((socket, address)) => (socket, address.ip()),
            Err(error) => {
                // Most likely all file descriptors are in use. Other connections must close first.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // A connection that waits for a request may be closed to make room for this one.
        let permit = tokio::select! {
            permit = config.connections.permit(client) => permit,
            () = shutdown.begun() => break,
        };
        let Some(permit) = permit else {
            if let Some(left_out) = refusals.take(Instant::now()) {
                tracing::warn!(%client, left_out, "a client has as many connections as it may");
            }
            continue;
        };
        // Small answers must not wait for the client's delayed acknowledgement.
        let _ = socket.set_nodelay(true);
        let (server, host) = (server.clone(), HostTime::default());
        // Each task has the size of what it may become, so they are not one.
        match (&tls, protocol) {
            (None, Protocol::Http1) => connections.spawn(InTurns::new(host, async move {
                server.http1(Socket::Plain(socket), client).await;
                drop(permit);
            })),
            (None, Protocol::Http2) => connections.spawn(InTurns::new(host.clone(), async move {
                server.http2(Socket::Plain(socket), client, host).await;
                drop(permit);
            })),
            (Some(tls), _) => {
                let tls = tls.clone();
                let stopping = shutdown.stopping();
                let newcomer = Newcomer { socket, client, protocol, stopping };
                connections.spawn(InTurns::new(host.clone(), async move {
                    server.with_tls(&tls, newcomer, host).await;
                    drop(permit);
                }))
            }
        };
    }
    drop(listener);
    connections.close();
    tokio::time::timeout(config.drain_timeout, connections.wait()).await.is_ok()
}

impl<H, F, B> Server<H>
where
    H: Fn(Request<Incoming>, IpAddr) -> F,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    async fn http1(&self, socket: Socket, client: IpAddr) {
        let stopping = self.shutdown.stopping();
        let rules = http1::Rules::new(self.http1.clone(), &self.config, stopping);
        let handler = |request| (self.handler)(request, client);
        http1::drive(rules, self.stream_of(socket), handler).await;
    }

    async fn http2(&self, socket: Socket, client: IpAddr, host: HostTime) {
        let stopping = self.shutdown.stopping();
        let rules = http2::Rules::new(&self.config, TurnExecutor(host), stopping);
        let handler = |request| (self.handler)(request, client);
        http2::drive(rules, self.stream_of(socket), handler).await;
    }

    async fn with_tls(&self, tls: &Tls, newcomer: Newcomer, host: HostTime) {
        let client = newcomer.client;
        let Some(Secured { stream, protocol }) = tls.handshake(newcomer, &self.config).await else {
            return;
        };
        match protocol {
            Protocol::Http1 => self.http1(Socket::Tls(stream), client).await,
            Protocol::Http2 => self.http2(Socket::Tls(stream), client, host).await,
        }
    }

    fn stream_of(&self, socket: Socket) -> Stream {
        let mut stream = TimeoutStream::new(socket);
        stream.set_write_timeout(Some(self.config.write_timeout));
        Box::pin(stream)
    }
}
