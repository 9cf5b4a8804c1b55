//! A handler that sends the requests that its own request names, and tells what came back. Tests
//! let it ask services that misbehave, and send more than it may.

use std::time::Duration;

use gristmill_plugin::http::{HttpError, HttpRequest};
use gristmill_plugin::{Context, HandleError, Handler, Request, Response};
use serde::{Deserialize, Serialize};

/// What the handler shall do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deed {
    url: String,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// The bytes of the request's body.
    #[serde(default)]
    body_bytes: usize,
    timeout_ms: Option<u64>,
    /// How often the request is sent, one after the other.
    #[serde(default = "once")]
    times: usize,
}

fn get() -> String {
    "GET".to_owned()
}

fn once() -> usize {
    1
}

/// What came back.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    Status(u16, Vec<(String, String)>, usize, String),
    NotGranted(String),
    InvalidArgument(String),
    Unavailable(String),
    Unexpected(String),
}

/// The bytes of an answer that are told.
const TOLD_BYTES: usize = 1024;

struct Services;

impl Handler for Services {
    fn handle(_context: &Context, request: &Request) -> Result<Response, HandleError> {
        let deed: Deed = request.json()?;
        let mut asked = HttpRequest::new(&deed.method, &deed.url).body(vec![b'x'; deed.body_bytes]);
        for (name, value) in &deed.headers {
            asked = asked.header(name, value);
        }
        asked.timeout = deed.timeout_ms.map(Duration::from_millis);
        let outcomes: Vec<_> = (0..deed.times).map(|_| outcome(&asked)).collect();
        Ok(Response::json(&outcomes)?)
    }
}

fn outcome(asked: &HttpRequest) -> Outcome {
    match asked.send() {
        Ok(answer) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let headers = answer.headers.iter().map(|(name, value)| (name.clone(), text(value)));
            let told = &answer.body[..answer.body.len().min(TOLD_BYTES)];
            Outcome::Status(answer.status, headers.collect(), answer.body.len(), text(told))
        }
        Err(HttpError::NotGranted(text)) => Outcome::NotGranted(text),
        Err(HttpError::InvalidArgument(text)) => Outcome::InvalidArgument(text),
        Err(HttpError::Unavailable(text)) => Outcome::Unavailable(text),
        Err(HttpError::Unexpected(text)) => Outcome::Unexpected(text),
    }
}

gristmill_plugin::export_handler!(Services);
