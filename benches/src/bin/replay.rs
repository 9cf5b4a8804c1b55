//! A bare hyper server that answers inferences with a recorded answer of the real server, and
//! forwards everything else to it. It shows the throughput that a client reaches if its server does
//! no work. One inference in a thousand goes to the real server as well, because clients look at
//! its statistics. `replay <http|grpc> <address> <the real server's address>`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::combinators::WithTrailers;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1 as client_http1, http2 as client_http2};
use hyper::header::{HOST, HeaderValue};
use hyper::http::response::Parts;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};

/// How the paths of inferences end, in both protocols.
const INFERENCES: [&str; 2] = ["/infer", "/ModelInfer"];

/// One of this number of inferences goes to the real server.
const FORWARDED: usize = 1000;

/// A whole answer, to be given again and again.
#[derive(Clone)]
struct Recorded {
    head: Parts,
    body: Bytes,
    trailers: Option<HeaderMap>,
}

type Trailers = std::future::Ready<Option<Result<HeaderMap, std::convert::Infallible>>>;
type Replayed = Either<Full<Bytes>, WithTrailers<Full<Bytes>, Trailers>>;

struct Replay {
    /// The real server's address: host and port.
    upstream: String,
    /// Whether clients and the real server speak HTTP/2.
    http2: bool,
    inferences: Mutex<HashMap<String, Recorded>>,
    count: AtomicUsize,
}

impl Replay {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Replayed>> {
        let path = request.uri().path().to_owned();
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        if !self.count.fetch_add(1, Ordering::Relaxed).is_multiple_of(FORWARDED) {
            let recorded = self.inferences.lock().get(&path).cloned();
            if let Some(recorded) = recorded {
                return Ok(recorded.into_response());
            }
        }
        let answer = self.forward(Request::from_parts(head, Full::new(body))).await?;
        if INFERENCES.iter().any(|end| path.ends_with(end)) && answer.head.status.is_success() {
            self.inferences.lock().insert(path, answer.clone());
        }
        Ok(answer.into_response())
    }

    /// The real server's answer. Each request has a connection of its own, because few requests are
    /// forwarded.
    async fn forward(&self, mut request: Request<Full<Bytes>>) -> Result<Recorded> {
        let stream = TcpStream::connect(&self.upstream).await?;
        stream.set_nodelay(true)?;
        let io = TokioIo::new(stream);
        // A task drives each connection until the answer is read. Its error is that of the request.
        let answer = if self.http2 {
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
            *request.uri_mut() = format!("http://{}{path}", self.upstream).parse()?;
            request.headers_mut().remove(HOST);
            let (mut sender, driver) = client_http2::handshake(TokioExecutor::new(), io).await?;
            tokio::spawn(driver);
            sender.send_request(request).await?
        } else {
            request.headers_mut().insert(HOST, HeaderValue::from_str(&self.upstream)?);
            let (mut sender, driver) = client_http1::handshake(io).await?;
            tokio::spawn(driver);
            sender.send_request(request).await?
        };
        let (head, body) = answer.into_parts();
        let body = body.collect().await?;
        Ok(Recorded { head, trailers: body.trailers().cloned(), body: body.to_bytes() })
    }
}

impl Recorded {
    fn into_response(self) -> Response<Replayed> {
        let body = Full::new(self.body);
        let body = match self.trailers {
            Some(trailers) => {
                Either::Right(body.with_trailers(std::future::ready(Some(Ok(trailers)))))
            }
            None => Either::Left(body),
        };
        Response::from_parts(self.head, body)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [protocol, address, upstream] = &arguments[..] else {
        bail!("usage: replay <http|grpc> <address> <the real server's address>");
    };
    let http2 = match protocol.as_str() {
        "http" => false,
        "grpc" => true,
        other => bail!("protocol {other:?}: there are http and grpc"),
    };
    let listener = TcpListener::bind(address).await.with_context(|| address.clone())?;
    let replay = Arc::new(Replay {
        upstream: upstream.clone(),
        http2,
        inferences: Mutex::default(),
        count: AtomicUsize::new(0),
    });
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let replay = Arc::clone(&replay);
        tokio::spawn(async move {
            let io = TokioIo::new(stream);
            let service = service_fn(|request| {
                let replay = Arc::clone(&replay);
                async move { replay.answer(request).await }
            });
            // A client that leaves is not an error.
            let _ = match http2 {
                true => {
                    http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await
                }
                false => http1::Builder::new().serve_connection(io, service).await,
            };
        });
    }
}
