//! Where a Redis server is, and how a connection to it is made: TCP, TLS, and Redis's greeting with
//! the user, the password and the database.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::Turn;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ConnectionAddr, RedisConnectionInfo, RedisResult};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::password::Password;
use crate::redis_url::RedisUrl;
use crate::stream::{Flow, Stream};
use crate::tls::{NoTls, trusting_the_system};

/// The time for making a connection, with TLS and the password.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum messages that wait to be written to the connection. Other calls wait for a place.
const WAITING_MAX: usize = 16;

/// A server.
pub(crate) struct Endpoint {
    /// For the log.
    pub(crate) url: String,
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    /// The user, the password and the database.
    settings: RedisConnectionInfo,
}

/// A server cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndpointError {
    /// The client refuses the URL.
    Refused,
    /// It needs TLS, but the system trusts no authority.
    NoAuthorities,
}

/// A connection that was made.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) connection: MultiplexedConnection,
    /// Writes and reads. It ends when the last clone is dropped.
    _driver: Arc<JoinSet<()>>,
}

impl Endpoint {
    /// A server.
    ///
    /// # Errors
    /// [`EndpointError`]
    pub(crate) fn new(url: &RedisUrl, password: Option<&Password>) -> Result<Self, EndpointError> {
        let info = url.connection_info().map_err(|_| EndpointError::Refused)?;
        let mut settings = info.redis_settings().clone();
        if let Some(password) = password {
            settings = settings.set_password(password.as_str());
        }
        let (host, port, tls) = match info.addr() {
            ConnectionAddr::Tcp(host, port) => (host.clone(), *port, None),
            ConnectionAddr::TcpTls { host, port, .. } => {
                let connector = trusting_the_system().map_err(|error| match error {
                    NoTls::Refused => EndpointError::Refused,
                    NoTls::NoAuthorities => EndpointError::NoAuthorities,
                })?;
                (host.clone(), *port, Some((connector, name_of(host)?)))
            }
            _ => return Err(EndpointError::Refused),
        };
        Ok(Self { url: url.to_string(), host, port, tls, settings })
    }

    /// Another server of the same cluster, with the same user and password, and over TLS if this
    /// one is.
    ///
    /// # Errors
    /// No certificate can be for this host.
    pub(crate) fn elsewhere(&self, host: &str, port: u16) -> Result<Self, EndpointError> {
        let (scheme, tls) = match &self.tls {
            None => ("redis", None),
            Some((connector, _)) => ("rediss", Some((connector.clone(), name_of(host)?))),
        };
        let (url, settings) = (format!("{scheme}://{host}:{port}"), self.settings.clone());
        Ok(Self { url, host: host.to_owned(), port, tls, settings })
    }

    /// Its host and port.
    pub(crate) fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Make a connection, whose state is in `flow`. This is called on the runtime on which the
    /// connection is to live.
    ///
    /// # Errors
    /// It cannot be made in time, or the server refuses it.
    pub(crate) async fn connect(&self, flow: &Arc<Flow>) -> RedisResult<Made> {
        let connecting = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            stream.set_nodelay(true)?;
            match &self.tls {
                None => self.greet(Stream::new(stream, flow.clone()), flow).await,
                Some((connector, name)) => {
                    let stream = connector.connect(name.clone(), stream).await?;
                    self.greet(Stream::new(stream, flow.clone()), flow).await
                }
            }
        };
        match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(made) => made,
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }

    async fn greet<S>(&self, stream: Stream<S>, flow: &Arc<Flow>) -> RedisResult<Made>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(WAITING_MAX);
        let made = MultiplexedConnection::new_with_config(&self.settings, stream, config).await?;
        let (connection, driver) = made;
        flow.answered();
        let flow = flow.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut driver = pin!(driver);
            poll_fn(|task| {
                let turn = Turn::begin();
                let polled = driver.as_mut().poll(task);
                flow.worked(turn.took());
                polled
            })
            .await;
            flow.close();
        });
        Ok(Made { connection, _driver: Arc::new(tasks) })
    }
}

/// The name in a server's certificate.
fn name_of(host: &str) -> Result<ServerName<'static>, EndpointError> {
    ServerName::try_from(host.to_owned()).map_err(|_| EndpointError::Refused)
}
