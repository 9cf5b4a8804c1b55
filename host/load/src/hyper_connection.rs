//! One connection that hyper drives.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::score::Status;
use crate::target::{HyperRequest, Target, Way};

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// One connection, which is opened when it is needed.
#[derive(Default)]
pub(crate) struct HyperConnection {
    sender: Option<Sender>,
    leads_to: Option<Destination>,
}

/// Where a connection leads.
struct Destination {
    address: SocketAddr,
    is_grpc: bool,
    /// The host whose certificate was checked.
    host: Option<String>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl HyperConnection {
    /// Open the connection to a target, if it does not lead there already. Call this on a runtime.
    pub(crate) async fn open(&mut self, target: &Target) -> io::Result<()> {
        let Way::Hyper(request) = &target.way else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let (address, is_grpc) = (target.address, request.is_grpc);
        let host = request.tls.as_ref().map(|(_, host)| host);
        let leads_there = self.leads_to.as_ref().is_some_and(|own| {
            own.address == address && own.is_grpc == is_grpc && own.host.as_ref() == host
        });
        if leads_there && self.sender.as_ref().is_some_and(|own| !own.is_closed()) {
            return Ok(());
        }
        let opening = timeout(CONNECT_TIMEOUT, connect(address, request));
        self.sender = Some(opening.await.map_err(|_| io::ErrorKind::TimedOut)??);
        self.leads_to = Some(Destination { address, is_grpc, host: host.cloned() });
        Ok(())
    }

    /// Send the request over the open connection and read its answer. Returns the answer's status;
    /// its body is shown in pieces.
    pub(crate) async fn exchange(
        &mut self,
        target: &Target,
        mut show: impl FnMut(&[u8]),
    ) -> io::Result<Status> {
        let (Some(sender), Way::Hyper(own)) = (&mut self.sender, &target.way) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let sent = sender.send(own).await;
        let (head, mut body) = sent.map_err(io::Error::other)?.into_parts();
        let mut status = own.is_grpc.then(|| grpc_status(&head.headers)).flatten();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(io::Error::other)?;
            if let Some(data) = frame.data_ref() {
                show(data);
            }
            if let Some(trailers) = frame.trailers_ref().filter(|_| own.is_grpc) {
                status = grpc_status(trailers).or(status);
            }
        }
        // A proxy may answer without a status of gRPC.
        Ok(status.unwrap_or(Status::Http(head.status.as_u16())))
    }

    /// Close it. The next request opens another one.
    pub(crate) fn close(&mut self) {
        self.sender = None;
    }
}

impl Sender {
    fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }

    async fn send(&mut self, own: &HyperRequest) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(own.request.clone()).await
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(own.request.clone()).await
            }
        }
    }
}

async fn connect(address: SocketAddr, request: &HyperRequest) -> io::Result<Sender> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    match &request.tls {
        None => handshake(stream, request.is_grpc).await,
        Some((tls, host)) => {
            let stream = tls.connect(host, stream).await?;
            handshake(stream, request.is_grpc).await
        }
    }
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    is_grpc: bool,
) -> io::Result<Sender> {
    let stream = TokioIo::new(stream);
    if is_grpc {
        let opened = http2::handshake(TokioExecutor::new(), stream).await;
        let (sender, connection) = opened.map_err(io::Error::other)?;
        tokio::spawn(connection);
        return Ok(Sender::Http2(sender));
    }
    let (sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    Ok(Sender::Http1(sender))
}

/// How long a single call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Send a call of gRPC once. Returns the message of the answer, which is encoded.
///
/// # Errors
/// The server cannot be reached or is silent, or the call fails: then its status is in the error.
pub fn call(target: &Target) -> io::Result<Vec<u8>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut answer = Vec::new();
    let mut connection = HyperConnection::default();
    let exchange = async {
        connection.open(target).await?;
        connection.exchange(target, |piece| answer.extend_from_slice(piece)).await
    };
    let answered = runtime.block_on(async { timeout(CALL_TIMEOUT, exchange).await });
    match answered.map_err(|_| io::ErrorKind::TimedOut)?? {
        // Before the message stand a flag and its length.
        status if status.is_ok() && answer.len() >= 5 => Ok(answer.split_off(5)),
        status => Err(io::Error::other(format!("the server answered with {status}"))),
    }
}

/// The status of a call of gRPC, in its headers or its trailers.
fn grpc_status(headers: &HeaderMap) -> Option<Status> {
    let status = headers.get("grpc-status")?.to_str().ok()?.parse().ok()?;
    Some(Status::Grpc(status))
}
