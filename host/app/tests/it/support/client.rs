//! Requests and answers. A connection that breaks fails the test.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_client::http::header::AUTHORIZATION;
use gristmill_client::http::{HeaderMap, HeaderValue, Request};
use gristmill_client::{ClientError, HEADER_LENGTH, InferBody, block_on};
use serde_json::Value;

use super::planes::{IN_MEMORY, PlaneInMemory};
use super::words::assert_names;

/// The longest wait for an answer. The compilation of a Python or JavaScript plugin gets a tenth of
/// a busy processor.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(900);

/// One of a server's planes, and the token that requests carry. Each request has a connection of
/// its own: a server may close one whose body it refused unread.
#[derive(Clone)]
pub(crate) struct Client {
    way: Way,
    address: String,
}

/// The way to a plane.
#[derive(Clone)]
enum Way {
    Network(gristmill_client::Client),
    /// To a plane of this process, with this token.
    Memory(Arc<PlaneInMemory>, Option<String>),
}

/// An answer.
#[derive(Debug)]
pub(crate) struct TestAnswer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Client {
    /// For the plane at `address`, which is a URL without a path.
    pub(crate) fn new(address: &str, token: Option<&str>) -> Self {
        let client = gristmill_client::Client::new(address.parse().unwrap());
        // A server that hangs fails the test.
        let way = Way::Network(client.with_answer_timeout(ANSWER_TIMEOUT));
        let without = Self { way, address: address.to_owned() };
        match token {
            Some(token) => without.with_token(token),
            None => without,
        }
    }

    /// For a plane of this process.
    pub(super) fn in_memory(plane: PlaneInMemory) -> Self {
        Self { way: Way::Memory(plane.into(), None), address: IN_MEMORY.to_owned() }
    }

    /// The same with these settings of TLS.
    pub(crate) fn with_tls(&self, tls: gristmill_client::Tls) -> Self {
        let Self { way, address } = self.clone();
        let Way::Network(client) = way else { panic!("there is no TLS in memory") };
        Self { way: Way::Network(client.with_tls(tls)), address }
    }

    /// The same with another token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        let Self { way, address } = self.clone();
        let way = match way {
            Way::Network(client) => Way::Network(client.with_token(token).unwrap()),
            Way::Memory(plane, _) => Way::Memory(plane, Some(token.to_owned())),
        };
        Self { way, address }
    }

    /// The same with no token.
    pub(crate) fn without_token(&self) -> Self {
        let Self { way, address } = self.clone();
        let way = match way {
            Way::Network(client) => Way::Network(client.without_token()),
            Way::Memory(plane, _) => Way::Memory(plane, None),
        };
        Self { way, address }
    }

    /// The plane's URL.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The plane's host and port.
    pub(crate) fn authority(&self) -> &str {
        self.address.split_once("://").unwrap().1
    }

    pub(crate) fn get(&self, path: &str) -> TestAnswer {
        self.send("GET", path, &[], None)
    }

    pub(crate) fn delete(&self, path: &str) -> TestAnswer {
        self.send("DELETE", path, &[], None)
    }

    pub(crate) fn post(&self, path: &str, body: &[u8]) -> TestAnswer {
        self.send("POST", path, &[], Some(body))
    }

    pub(crate) fn put(&self, path: &str, body: &[u8]) -> TestAnswer {
        self.send("PUT", path, &[], Some(body))
    }

    pub(crate) fn put_json(&self, path: &str, body: &Value) -> TestAnswer {
        let json = [("content-type", "application/json")];
        self.send("PUT", path, &json, Some(body.to_string().as_bytes()))
    }

    /// The answer to a request with these headers.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> TestAnswer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map(Bytes::copy_from_slice).unwrap_or_default();
        let answer = self.try_send(request.body(body).unwrap());
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error:?}"))
    }

    /// The answer to a request of the Open Inference Protocol with binary tensors.
    pub(crate) fn infer(&self, path: &str, body: &InferBody) -> TestAnswer {
        let headers = [(HEADER_LENGTH, body.header_length.as_str())];
        self.send("POST", path, &headers, Some(&body.bytes))
    }

    /// The answer, or the error if no whole answer comes.
    pub(crate) fn try_send(&self, mut request: Request<Bytes>) -> Result<TestAnswer, ClientError> {
        let answer = match &self.way {
            Way::Network(client) => block_on(client.send(request))?,
            Way::Memory(plane, token) => {
                if let Some(token) = token {
                    let bearer = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
                    request.headers_mut().insert(AUTHORIZATION, bearer);
                }
                plane.send(request)?
            }
        };
        let body = answer.body.into();
        Ok(TestAnswer { status: answer.status.as_u16(), headers: answer.headers, body })
    }
}

impl TestAnswer {
    /// The header's value. It is empty if the header is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The JSON document of a 200.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Fails unless this is a problem document of `status` and `code` whose detail holds every one
    /// of `named`. Returns the detail.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str, named: &[&str]) -> String {
        let text = self.text();
        assert_eq!(self.status, status, "{text}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{text}");
        let document: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(document["code"], code, "{text}");
        assert_eq!(document["status"], status, "{text}");
        assert_eq!(document["type"], format!("urn:gristmill:error:{code}"));
        let detail = document["detail"].as_str().unwrap();
        assert_names(detail, named);
        detail.to_owned()
    }

    /// Fails unless this is an error of the Open Inference Protocol, with `status` and every one of
    /// `named`.
    #[track_caller]
    pub(crate) fn refused_by_protocol(&self, status: u16, named: &[&str]) {
        let text = self.text();
        assert_eq!(self.status, status, "{text}");
        assert_eq!(self.header("content-type"), "application/json", "{text}");
        let document: Value = serde_json::from_slice(&self.body).unwrap();
        assert_names(document["error"].as_str().unwrap(), named);
    }
}
