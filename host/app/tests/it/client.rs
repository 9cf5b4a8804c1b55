//! Requests and answers. A connection that breaks fails the test.

use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::{HeaderMap, Request};

/// Longer than any answer takes, so that a server that hangs fails the test.
const PATIENCE: Duration = Duration::from_secs(120);

/// One of a server's planes, and the token that requests carry. Each request has a connection of its own.
#[derive(Clone)]
pub(crate) struct Client {
    agent: Agent,
    address: String,
    token: Option<String>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Client {
    /// For the plane at `address`, which is a URL without a path.
    pub(crate) fn new(address: String, token: Option<String>) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .timeout_global(Some(PATIENCE))
            // A server may close a connection whose body it refused unread, just as it is used again.
            .max_idle_connections(0)
            .proxy(None)
            .build();
        Self { agent: config.into(), address, token }
    }

    /// The same with another token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.into()), ..self.clone() }
    }

    /// The same with no token.
    pub(crate) fn without_token(&self) -> Self {
        Self { token: None, ..self.clone() }
    }

    /// The plane's URL.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None)
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], None)
    }

    pub(crate) fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.send("POST", path, &[], Some(body))
    }

    pub(crate) fn put(&self, path: &str, body: &[u8]) -> Answer {
        self.send("PUT", path, &[], Some(body))
    }

    pub(crate) fn put_json(&self, path: &str, body: &Value) -> Answer {
        let json = [("content-type", "application/json")];
        self.send("PUT", path, &json, Some(body.to_string().as_bytes()))
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = match body {
            Some(body) => self.agent.run(request.body(body).unwrap()),
            None => self.agent.run(request.body(()).unwrap()),
        };
        let response = response.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let (head, mut body) = response.into_parts();
        let body = body.read_to_vec().unwrap();
        Answer { status: head.status.as_u16(), headers: head.headers, body }
    }
}

impl Answer {
    /// The header's value; empty where it is missing.
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
        for name in named {
            assert!(detail.contains(name), "{name:?} is missing from: {detail}");
        }
        detail.to_owned()
    }
}
