//! Accepting connections and letting them finish: the same for both planes.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Bounds on a connection.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// From a connection's opening, or the end of its last response, to the end of the next
    /// request's headers.
    pub header_read_timeout: Duration,
    /// Bytes of a request's line and headers.
    pub header_bytes_max: usize,
    /// How long a shutdown waits for what is under way.
    pub drain_timeout: Duration,
}

impl Default for ListenerConfig {
    fn default() -> Self {
        Self {
            header_read_timeout: Duration::from_secs(30),
            header_bytes_max: 32 << 10,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

/// Tells listeners to stop accepting and to drain.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    pub fn new() -> Self {
        Self::default()
    }

    /// Begin the shutdown.
    pub fn begin(&self) {
        self.0.cancel();
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Wait until it begins.
    pub async fn begun(&self) {
        self.0.cancelled().await;
    }
}

/// Serve HTTP/1.1 on `listener` with `handler` until the shutdown; then drain. Returns whether all
/// connections finished in time.
pub async fn serve<H, F>(
    listener: TcpListener,
    config: ListenerConfig,
    shutdown: Shutdown,
    handler: H,
) -> bool
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let graceful = GracefulShutdown::new();
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_read_timeout)
        .max_buf_size(config.header_bytes_max.max(8 << 10));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.begun() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: others must close before more can open.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        // Small answers must not wait for the client's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        let handler = handler.clone();
        let service = service_fn(move |request| {
            let answer = handler(request);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
        });
    }
    drop(listener);
    tokio::time::timeout(config.drain_timeout, graceful.shutdown()).await.is_ok()
}
