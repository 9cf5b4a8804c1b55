//! The handshake of one connection, with a client that may be hostile.
//!
//! Until the client sends its first byte, the connection holds only its socket. A first byte that
//! does not begin a handshake closes it. Until the handshake ends, the connection counts as one
//! that waits for a request: it can be closed to make room for another one. A client whose
//! handshake fails has a moment to read why. The time in which a handshake must end is the
//! client's: that in which it waits for a thread does not count.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::session::HTTP2;
use super::{Tls, TlsState};
use crate::listener::{ListenerConfig, Protocol};
use crate::stream::linger;

/// The first byte of a handshake.
const HANDSHAKE: u8 = 22;

/// A connection before its handshake.
pub(crate) struct Newcomer {
    pub(crate) socket: TcpStream,
    pub(crate) client: IpAddr,
    /// The protocol of its listener.
    pub(crate) protocol: Protocol,
    pub(crate) stopping: CancellationToken,
}

/// A connection after its handshake.
pub(crate) struct Secured {
    pub(crate) stream: Box<TlsStream<TcpStream>>,
    /// The protocol that the client chose.
    pub(crate) protocol: Protocol,
}

/// Why a handshake ended without a session.
enum HandshakeEnd {
    /// The client left without a word.
    Silent,
    /// The client does not speak TLS.
    NoTls,
    /// With the socket, if the client was told why.
    Failed(io::Error, Option<TcpStream>),
}

impl Tls {
    /// Make the session of a connection. None if there is none, after which the connection must be
    /// dropped.
    pub(crate) async fn handshake(
        &self,
        newcomer: Newcomer,
        config: &ListenerConfig,
    ) -> Option<Secured> {
        let Newcomer { socket, client, protocol, stopping } = newcomer;
        let waiting = config.connections.wait(Instant::now());
        let making = async {
            match self.session(socket, protocol, config.header_read_timeout).await {
                Ok(stream) => Some(stream),
                Err(ended) => {
                    // Boxed, because a connection that is served takes no memory for it.
                    Box::pin(self.end(client, ended)).await;
                    None
                }
            }
        };
        let stream = tokio::select! {
            made = making => made?,
            () = waiting.closes() => return None,
            () = stopping.cancelled() => return None,
        };
        self.0.counts.handshakes.fetch_add(1, Ordering::Relaxed);
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(HTTP2) => Protocol::Http2,
            Some(_) => Protocol::Http1,
            None => protocol,
        };
        Some(Secured { stream, protocol })
    }

    /// Count a handshake that made no session, and say so in the log.
    async fn end(&self, client: IpAddr, ended: HandshakeEnd) {
        let TlsState { counts, current, refusals, .. } = &*self.0;
        match ended {
            HandshakeEnd::Silent => {}
            HandshakeEnd::NoTls => {
                counts.without_tls.fetch_add(1, Ordering::Relaxed);
                let listener = current.listener;
                let line = refusals.lock().take(Instant::now());
                if let Some(left_out) = line {
                    tracing::warn!(
                        %client,
                        listener,
                        left_out,
                        "a client speaks without TLS to a plane that has TLS"
                    );
                }
            }
            HandshakeEnd::Failed(error, socket) => {
                counts.failed.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%client, %error, "a handshake of TLS failed");
                if let Some(mut socket) = socket {
                    let _ = socket.shutdown().await;
                    linger(&mut socket).await;
                }
            }
        }
    }

    async fn session(
        &self,
        socket: TcpStream,
        protocol: Protocol,
        patience: Duration,
    ) -> Result<Box<TlsStream<TcpStream>>, HandshakeEnd> {
        let late = |late: Elapsed| HandshakeEnd::Failed(late.into(), None);
        let mut first = [0];
        match timeout(patience, socket.peek(&mut first)).await.map_err(late)? {
            Ok(0) | Err(_) => return Err(HandshakeEnd::Silent),
            Ok(_) if first != [HANDSHAKE] => return Err(HandshakeEnd::NoTls),
            Ok(_) => {}
        }
        // Settings of now: those of a later change are for later handshakes.
        let config = self.0.current.sessions().of(protocol).clone();
        let accepting = TlsAcceptor::from(config).accept(socket).into_fallible();
        // The time begins when a thread has read what the client sent: a prompt client is not given
        // up because the threads are late.
        let accepting = async move {
            let accepted = timeout(patience, accepting).await.map_err(late)?;
            let failed = |(error, socket)| HandshakeEnd::Failed(error, Some(socket));
            accepted.map(Box::new).map_err(failed)
        };
        match AbortOnDropHandle::new(self.0.threads.spawn(accepting)).await {
            Ok(made) => made,
            Err(error) => Err(HandshakeEnd::Failed(error.into(), None)),
        }
    }
}
