//! Unary calls of gRPC, of which a test reads the headers.

use bytes::Bytes;
use gristmill_client::http::{HeaderMap, Request};
use gristmill_client::{ClientError, block_on};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// The answer to a call.
#[derive(Debug)]
pub(crate) struct GrpcAnswer {
    /// The headers, with the trailers among them.
    pub(crate) headers: HeaderMap,
    /// The message, without its length; empty if there is none.
    pub(crate) message: Bytes,
}

impl GrpcAnswer {
    /// The header's value. It is empty if the header is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The number of its status; 0 is success.
    pub(crate) fn status(&self) -> u32 {
        self.header("grpc-status").parse().unwrap()
    }
}

/// Call a method of the protocol's service with `message`, with a key or without.
pub(crate) fn call(address: &str, method: &str, key: Option<&str>, message: &[u8]) -> GrpcAnswer {
    let len = (message.len() as u32).to_be_bytes();
    let body = Bytes::from([&[0], &len[..], message].concat());
    let path = format!("http://{address}/inference.GRPCInferenceService/{method}");
    let mut request = Request::post(path).header("content-type", "application/grpc");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let request = request.body(Full::new(body)).unwrap();
    let exchange = async {
        let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        let driver = tokio::spawn(connection);
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap();
        driver.abort();
        let mut headers = head.headers;
        headers.extend(body.trailers().cloned().unwrap_or_default());
        let framed = body.to_bytes();
        let message = framed.slice(framed.len().min(5)..);
        Ok::<_, ClientError>(GrpcAnswer { headers, message })
    };
    block_on(exchange).unwrap()
}
