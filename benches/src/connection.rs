//! One keep-alive HTTP/1.1 connection; an answer other than 200 is an error with its text.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// How much of an answer an error shows.
const SHOWN_BYTES_MAX: usize = 1 << 10;

pub struct Connection(SendRequest<Full<Bytes>>);

impl Connection {
    /// To `address`, host and port.
    pub async fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| address.to_owned())?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends with its sender, which is told what went wrong.
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// The whole answer.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Bytes>> {
        self.0.ready().await?;
        let (head, body) = self.0.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        ensure!(head.status == StatusCode::OK, "{}: {}", head.status, shown(&body));
        Ok(Response::from_parts(head, body))
    }
}

/// The beginning of a body as text, for errors.
pub fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)]).into_owned()
}
