//! Making connections: the name is looked up, each address is checked, and the connection is made
//! to one that may be asked.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{Scheme, Turn};
use gristmill_sandbox::{OUTGOING_BUFFER_BYTES, OutgoingCall, OutgoingFault};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::connections::{Connection, Connections};
use super::names::Names;
use crate::addresses::prohibited;
use crate::stream::{Flow, Stream};
use crate::tls::trusting_the_system;

/// The time for making a connection, unless the plugin sets a shorter one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum addresses that are tried, and the time for each.
const TRIED_MAX: usize = 4;
const TRY_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes connections.
pub(super) struct Connector {
    names: Arc<dyn Names>,
    /// Made for the first request that needs it.
    tls: OnceCell<TlsConnector>,
}

impl Connector {
    pub(super) fn new(names: Arc<dyn Names>) -> Self {
        Self { names, tls: OnceCell::new() }
    }

    /// A connection for this call, in time.
    pub(super) async fn connect(
        &self,
        connections: &Connections,
        call: &OutgoingCall,
    ) -> Result<Connection, OutgoingFault> {
        let within = call.connect_timeout.unwrap_or(CONNECT_TIMEOUT).min(CONNECT_TIMEOUT);
        let connecting = charged(call, self.connect_now(&connections.lookups, call));
        let connected = timeout(within, connecting).await;
        connected.unwrap_or(Err(OutgoingFault::ConnectTimeout(within)))
    }

    async fn connect_now(
        &self,
        lookups: &Arc<Semaphore>,
        call: &OutgoingCall,
    ) -> Result<Connection, OutgoingFault> {
        let host = unbracketed(&call.host);
        let mut kind = None;
        let mut allowed = Vec::new();
        for address in self.look_up(lookups, host, call.port).await? {
            match prohibited(address.ip(), &call.addresses) {
                None => allowed.push(address),
                found => kind = found,
            }
        }
        if allowed.is_empty() {
            return Err(kind.map_or(OutgoingFault::NameNotFound, OutgoingFault::Prohibited));
        }
        let mut fault = OutgoingFault::Unreachable;
        for address in allowed.into_iter().take(TRIED_MAX) {
            match timeout(TRY_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return self.greet(stream, address.ip(), call).await,
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    fault = OutgoingFault::Refused;
                }
                Ok(Err(_)) => {}
                Err(_) => fault = OutgoingFault::ConnectTimeout(TRY_TIMEOUT),
            }
        }
        Err(fault)
    }

    /// TLS if it is asked for, and HTTP.
    async fn greet(
        &self,
        stream: TcpStream,
        peer: IpAddr,
        call: &OutgoingCall,
    ) -> Result<Connection, OutgoingFault> {
        stream.set_nodelay(true).map_err(|_| OutgoingFault::Unreachable)?;
        match call.scheme {
            Scheme::Http => over(stream, peer).await,
            Scheme::Https => {
                let name = ServerName::try_from(unbracketed(&call.host).to_owned());
                let name = name.map_err(|error| OutgoingFault::Tls(error.to_string()))?;
                let stream = self.tls().await?.connect(name, stream).await;
                over(stream.map_err(|error| fault_of_tls(&error))?, peer).await
            }
        }
    }

    /// The addresses of a host: a name, or an address.
    async fn look_up(
        &self,
        lookups: &Arc<Semaphore>,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, OutgoingFault> {
        if let Ok(address) = host.parse() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let permit = lookups.clone().acquire_owned().await;
        let permit = permit.map_err(|_| OutgoingFault::Unavailable)?;
        let (names, host) = (self.names.clone(), host.to_owned());
        let looking = spawn_blocking(move || {
            // Nothing stops the system's resolver: the permit is given back when it has ended.
            let _permit = permit;
            names.look_up(&host, port)
        });
        match looking.await {
            Ok(Ok(addresses)) => Ok(addresses),
            _ => Err(OutgoingFault::NameNotFound),
        }
    }

    async fn tls(&self) -> Result<&TlsConnector, OutgoingFault> {
        let made = self.tls.get_or_try_init(|| async {
            // It reads files.
            let made = spawn_blocking(trusting_the_system).await;
            made.ok().and_then(Result::ok).ok_or_else(|| {
                let text = "the server's operating system has no certificates of authorities";
                OutgoingFault::Tls(text.to_owned())
            })
        });
        made.await
    }
}

/// Work for a request on this thread, such as TLS's handshake, which it is charged for.
pub(super) async fn charged<T>(call: &OutgoingCall, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|task| {
        let turn = Turn::begin();
        let polled = work.as_mut().poll(task);
        call.charge(Duration::from_nanos(turn.took()));
        polled
    })
    .await
}

/// An address of IPv6 without its brackets; any other host as it is.
fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

/// HTTP over a stream.
async fn over<S>(stream: S, peer: IpAddr) -> Result<Connection, OutgoingFault>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let flow = Arc::<Flow>::default();
    let made = http1::Builder::new()
        .max_buf_size(OUTGOING_BUFFER_BYTES)
        .handshake(TokioIo::new(Stream::new(stream, flow.clone())))
        .await;
    let (sender, driver) = made.map_err(|_| OutgoingFault::Garbage)?;
    let mut tasks = JoinSet::new();
    tasks.spawn({
        let flow = flow.clone();
        async move {
            let mut driver = pin!(driver);
            // What goes wrong is told to the request.
            let _ = poll_fn(|task| {
                let turn = Turn::begin();
                let polled = driver.as_mut().poll(task);
                flow.worked(turn.took());
                polled
            })
            .await;
        }
    });
    Ok(Connection { sender, peer, flow, _driver: tasks })
}

/// Why there is no TLS.
fn fault_of_tls(error: &io::Error) -> OutgoingFault {
    match error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(fault)) => {
            OutgoingFault::Certificate(fault.to_string())
        }
        Some(fault) => OutgoingFault::Tls(fault.to_string()),
        None => OutgoingFault::Tls("the connection ended".to_owned()),
    }
}
