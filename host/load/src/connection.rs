//! One connection: it sends one request at a time and reads its answer.

use std::error::Error as _;
use std::io;
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
use crate::target::{Destination, LoadTarget};

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a single call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection, which is opened when it is needed.
#[derive(Default)]
pub(crate) struct Connection(Option<Opened>);

/// An open connection.
struct Opened {
    leads_to: Destination,
    sender: Sender,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Why a request has no answer.
pub(crate) enum Failure {
    /// No connection can be opened.
    NoConnection(io::Error),
    /// The connection or the stream has ended before the answer, or the answer cannot be read.
    NoAnswer(hyper::Error),
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoConnection(error) => error,
            Failure::NoAnswer(error) => Self::other(error),
        }
    }
}

impl Connection {
    /// Open the connection to a target, if it does not lead there already. Returns the sender, and
    /// whether it was opened now. Call this on a runtime.
    async fn lead_to(&mut self, target: &LoadTarget) -> io::Result<(&mut Sender, bool)> {
        let Destination { address, host, is_grpc, tls } = &target.destination;
        let leads_there = self.0.as_ref().is_some_and(|opened| {
            opened.leads_to.is_same(&target.destination) && !opened.sender.is_closed()
        });
        if !leads_there {
            self.0 = None;
            let opening = async {
                let stream = TcpStream::connect(*address).await?;
                stream.set_nodelay(true)?;
                match tls {
                    None => handshake(stream, *is_grpc).await,
                    Some(tls) => handshake(tls.connect(host, stream).await?, *is_grpc).await,
                }
            };
            let opened = timeout(CONNECT_TIMEOUT, opening).await;
            let sender = opened.map_err(|_| io::ErrorKind::TimedOut)??;
            self.0 = Some(Opened { leads_to: target.destination.clone(), sender });
        }
        let opened = self.0.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        Ok((&mut opened.sender, !leads_there))
    }

    /// Open the connection to a target, if it does not lead there already. Call this on a runtime.
    pub(crate) async fn open(&mut self, target: &LoadTarget) -> io::Result<()> {
        self.lead_to(target).await.map(drop)
    }

    /// Send the target's request and read its answer, on a connection that is opened if it must be.
    /// Returns the answer's status; its body is shown in pieces. After a failure the next request
    /// opens another connection.
    pub(crate) async fn exchange(
        &mut self,
        target: &LoadTarget,
        show: impl FnMut(&[u8]),
    ) -> Result<Status, Failure> {
        let answer = match self.send(target).await {
            Ok(answer) => read(answer, target.destination.is_grpc, show).await,
            Err(failure) => Err(failure),
        };
        if answer.is_err() {
            self.0 = None;
        }
        answer
    }

    /// Send the target's request. Returns the head of the answer.
    async fn send(&mut self, target: &LoadTarget) -> Result<Response<Incoming>, Failure> {
        loop {
            let (sender, is_new) = self.lead_to(target).await.map_err(Failure::NoConnection)?;
            match sender.send(target).await {
                // A server may close a connection that is not used: the request takes another one.
                Err(error) if !is_new && is_lost(&error) => self.0 = None,
                answered => return answered.map_err(Failure::NoAnswer),
            }
        }
    }
}

/// Whether the connection was closed before any part of an answer came.
fn is_lost(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    let is_reset = cause.is_some_and(|cause| {
        matches!(cause.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
    });
    is_reset || error.is_canceled() || error.is_closed() || error.is_incomplete_message()
}

impl Sender {
    fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }

    async fn send(&mut self, target: &LoadTarget) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(target.request.clone()).await
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(target.request.clone()).await
            }
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

/// Read an answer to its end. Returns its status.
async fn read(
    answer: Response<Incoming>,
    is_grpc: bool,
    mut show: impl FnMut(&[u8]),
) -> Result<Status, Failure> {
    let (head, mut body) = answer.into_parts();
    let mut status = is_grpc.then(|| grpc_status(&head.headers)).flatten();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(Failure::NoAnswer)?;
        if let Some(data) = frame.data_ref() {
            show(data);
        }
        if let Some(trailers) = frame.trailers_ref().filter(|_| is_grpc) {
            status = grpc_status(trailers).or(status);
        }
    }
    // A proxy may answer without a status of gRPC.
    Ok(status.unwrap_or(Status::Http(head.status.as_u16())))
}

/// The status of a call of gRPC, in its headers or its trailers.
fn grpc_status(headers: &HeaderMap) -> Option<Status> {
    let status = headers.get("grpc-status")?.to_str().ok()?.parse().ok()?;
    Some(Status::Grpc(status))
}

/// Send a call of gRPC once. Returns the message of the answer, which is encoded.
///
/// # Errors
/// The server cannot be reached or is silent, or the call fails: then its status is in the error.
pub fn call(target: &LoadTarget) -> io::Result<Vec<u8>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut answer = Vec::new();
    let mut connection = Connection::default();
    let exchange = connection.exchange(target, |piece| answer.extend_from_slice(piece));
    let answered = runtime.block_on(async { timeout(CALL_TIMEOUT, exchange).await });
    match answered.map_err(|_| io::ErrorKind::TimedOut)?? {
        // Before the message stand a flag and its length.
        status if status.is_ok() && answer.len() >= 5 => Ok(answer.split_off(5)),
        status => Err(io::Error::other(format!("the server answered with {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

    /// A server that answers one request on each connection and closes it, or gives no answer.
    fn serve(answers: &[&'static str]) -> LoadTarget {
        let answers = answers.to_vec();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        LoadTarget::new(&url, "GET", &[], b"").unwrap()
    }

    /// The statuses of as many requests; none of one without an answer.
    fn exchange<const N: usize>(target: &LoadTarget) -> [Option<Status>; N] {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let mut connection = Connection::default();
        let mut statuses = [None; N];
        for status in &mut statuses {
            *status = runtime.block_on(connection.exchange(target, |_| {})).ok();
        }
        statuses
    }

    #[test]
    fn a_connection_that_the_server_has_closed_is_opened_again() {
        assert_eq!(exchange(&serve(&[OK, OK, OK])), [Some(Status::Http(200)); 3]);
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_none() {
        let cut = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbo";
        let chunk = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n";
        for bad in ["SSH-2.0-OpenSSH\r\n\r\n", cut, chunk, ""] {
            assert_eq!(exchange(&serve(&[bad, OK])), [None, Some(Status::Http(200))], "{bad:?}");
        }
        let refused = "HTTP/1.1 429 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let statuses = exchange(&serve(&[refused, OK]));
        assert_eq!(statuses, [429, 200].map(|status| Some(Status::Http(status))));
    }
}
