//! One keep-alive HTTP/1.1 connection.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::HOST;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::answer::Answer;
use crate::error::ClientError;
use crate::tls::Tls;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest body of an answer that is read, unless another bound is set.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A connection that carries one request after the other.
pub struct Connection {
    address: String,
    host: HeaderValue,
    sender: SendRequest<Full<Bytes>>,
    /// The longest body of an answer that is read.
    answer_bytes_max: usize,
    driver: JoinHandle<()>,
}

impl Connection {
    /// Connects to `address`, host and port, within 10 s, without TLS.
    ///
    /// # Errors
    /// [`ClientError::Connect`], [`ClientError::ConnectTimeout`] and [`ClientError::Exchange`].
    pub async fn open(address: &str) -> Result<Self, ClientError> {
        let connecting = async { Self::over(address, tcp(address).await?).await };
        in_time(address, connecting).await
    }

    /// The same with TLS to the server `host`.
    ///
    /// # Errors
    /// As [`Self::open`], and [`ClientError::Tls`].
    pub(crate) async fn open_tls(
        address: &str,
        host: &str,
        tls: &Tls,
    ) -> Result<Self, ClientError> {
        let connecting = async {
            let stream = tls.connect(host, tcp(address).await?).await;
            let failed = |source| ClientError::Tls { address: address.to_owned(), source };
            Self::over(address, stream.map_err(failed)?).await
        };
        in_time(address, connecting).await
    }

    /// A connection over a stream that is open already. Messages name it by `address`, which is
    /// also the host of requests that name none.
    ///
    /// # Errors
    /// [`ClientError::Exchange`]
    pub async fn over<S>(address: &str, stream: S) -> Result<Self, ClientError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let host = HeaderValue::from_str(address).map_err(http::Error::from)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|source| ClientError::Exchange { address: address.to_owned(), source })?;
        let driver = tokio::spawn(async move {
            // The sender reports the error.
            let _ = connection.await;
        });
        let (address, answer_bytes_max) = (address.to_owned(), ANSWER_BYTES_MAX);
        Ok(Self { address, host, sender, answer_bytes_max, driver })
    }

    /// Reads no longer body of an answer than this.
    pub(crate) fn bound_answers(&mut self, bytes: usize) {
        self.answer_bytes_max = bytes;
    }

    /// Sends a request and returns the whole answer, of any status. A `host` header is added if the
    /// request has none.
    ///
    /// # Errors
    /// [`ClientError::Exchange`] and [`ClientError::AnswerTooLong`]. After an error the connection
    /// cannot be used again.
    pub async fn send(&mut self, mut request: Request<Bytes>) -> Result<Answer, ClientError> {
        request.headers_mut().entry(HOST).or_insert_with(|| self.host.clone());
        self.sender.ready().await.map_err(|source| self.failed(source))?;
        let sent = self.sender.send_request(request.map(Full::new)).await;
        let (head, body) = sent.map_err(|source| self.failed(source))?.into_parts();
        let body = self.collect(body).await?;
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    async fn collect(&self, mut body: Incoming) -> Result<Bytes, ClientError> {
        let mut collected = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|source| self.failed(source))?;
            let Ok(data) = frame.into_data() else { continue };
            let limit = self.answer_bytes_max;
            if collected.len() + data.len() > limit {
                let address = self.address.clone();
                return Err(ClientError::AnswerTooLong { address, limit });
            }
            collected.extend_from_slice(&data);
        }
        Ok(collected.freeze())
    }

    fn failed(&self, source: hyper::Error) -> ClientError {
        ClientError::Exchange { address: self.address.clone(), source }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn tcp(address: &str) -> Result<TcpStream, ClientError> {
    let failed = |source| ClientError::Connect { address: address.to_owned(), source };
    let stream = TcpStream::connect(address).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream)
}

async fn in_time(
    address: &str,
    connecting: impl Future<Output = Result<Connection, ClientError>>,
) -> Result<Connection, ClientError> {
    timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| {
        Err(ClientError::ConnectTimeout { address: address.to_owned(), after: CONNECT_TIMEOUT })
    })
}
