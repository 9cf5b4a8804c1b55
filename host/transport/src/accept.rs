//! Accepting connections, and draining them at shutdown. All planes use it.

use std::error::Error;
use std::future::Future;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;
use tokio_util::task::TaskTracker;

use crate::line_rate::LineRate;
use crate::listener::{ListenerConfig, Protocol};
use crate::shutdown::Shutdown;
use crate::{http1, http2};

/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A listener, and how its connections are served.
pub struct Listening<H> {
    /// Accepts the connections.
    pub listener: TcpListener,
    /// The protocol of all its connections.
    pub protocol: Protocol,
    /// The bounds on its connections.
    pub config: ListenerConfig,
    /// No connection is accepted after it begins.
    pub shutdown: Shutdown,
    /// Answers one request of the client with this address.
    pub handler: H,
}

/// Serve a listener until the shutdown begins. Then drain: wait for the requests under way. Returns
/// whether all connections ended in time.
pub async fn serve<H, F, B>(listening: Listening<H>) -> bool
where
    H: Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    let Listening { listener, protocol, config, shutdown, handler } = listening;
    let connections = TaskTracker::new();
    let mut refusals = LineRate::default();
    let (http1_builder, http2_builder) = (http1::builder(&config), http2::builder(&config));
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
        let stream = stream_of(socket, &config);
        let (answers, stopping) = (handler.clone(), shutdown.stopping());
        let handler = move |request: Request<Incoming>| answers(request, client);
        match protocol {
            Protocol::Http1 => {
                let rules = http1::Rules::new(http1_builder.clone(), &config, stopping);
                connections.spawn(async move {
                    http1::drive(rules, stream, handler).await;
                    drop(place);
                });
            }
            Protocol::Http2 => {
                let rules = http2::Rules::new(http2_builder.clone(), &config, stopping);
                connections.spawn(async move {
                    http2::drive(rules, stream, handler).await;
                    drop(place);
                });
            }
        }
    }
    drop(listener);
    connections.close();
    tokio::time::timeout(config.drain_timeout, connections.wait()).await.is_ok()
}

fn stream_of(socket: TcpStream, config: &ListenerConfig) -> crate::stream::Stream {
    // Small answers must not wait for the client's delayed acknowledgement.
    let _ = socket.set_nodelay(true);
    let mut stream = TimeoutStream::new(socket);
    stream.set_write_timeout(Some(config.write_timeout));
    Box::pin(stream)
}
