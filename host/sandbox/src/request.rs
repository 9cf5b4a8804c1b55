//! The requests and the answers of plugins, as plain data of the host.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{Deadline, Name, NamedTensor};

/// The circumstances of a request, which plugins may ask for in both calls.
#[derive(Clone, Debug)]
pub struct Context {
    /// The tenant's name.
    pub tenant: Name,
    /// The pipeline's name.
    pub pipeline: Name,
    /// The name of the pipeline's model.
    pub model: Name,
    /// The request's id, as in the log.
    pub request_id: Arc<str>,
    /// The pipeline's settings: a JSON document.
    pub settings: Arc<str>,
    /// The time at which the request is over.
    pub deadline: Deadline,
}

/// A context, as it is in the table of a call.
pub type SharedContext = Arc<Context>;

/// A request, as a plugin sees it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The media type in lower case, without its parameters.
    pub content_type: Option<String>,
    /// The headers that a plugin may see: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The parameters of the query string, in order: names and values, percent-decoded.
    pub query: Vec<(String, String)>,
    /// The whole body; empty for a multipart request.
    pub body: Bytes,
    /// The parts of a multipart request, in order.
    pub parts: Vec<FormPart>,
}

/// The headers that a plugin may see, besides those with [`OWN_PREFIX`].
const VISIBLE: [&str; 3] = ["accept", "accept-language", "user-agent"];
const OWN_PREFIX: &str = "x-";

impl Request {
    /// Whether a plugin may see the header of this name, which is in lower case.
    pub fn shows_header(name: &str) -> bool {
        VISIBLE.contains(&name) || name.starts_with(OWN_PREFIX)
    }

    /// The bytes of its bodies, its headers and its query.
    pub fn bytes(&self) -> usize {
        let pairs = self.headers.iter().chain(&self.query);
        let pairs: usize = pairs.map(|(name, value)| name.len() + value.len()).sum();
        let parts: usize = self.parts.iter().map(|part| part.body.len()).sum();
        self.body.len() + parts + pairs
    }
}

/// A part of a multipart request.
#[derive(Clone, Debug)]
pub struct FormPart {
    /// The form field's name; empty if the part has none.
    pub name: String,
    /// The file's name, if the part has one.
    pub filename: Option<String>,
    /// The part's own content type, if it has one.
    pub content_type: Option<String>,
    /// The part's bytes.
    pub body: Bytes,
}

impl FormPart {
    /// The bytes that its texts and its description take.
    pub(crate) fn head_bytes(&self) -> usize {
        let texts = [&self.filename, &self.content_type];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        size_of::<Self>() + self.name.len() + texts
    }
}

/// A postprocessor's parameters.
#[derive(Debug)]
pub struct Results {
    /// The model's outputs: this request's rows of each.
    pub outputs: Vec<NamedTensor>,
    /// The [`Prepared::state`] of the same request.
    pub state: Vec<u8>,
}

/// A preprocessor's answer.
#[derive(Debug)]
pub struct Prepared {
    /// The model's inputs, in the plugin's order.
    pub inputs: Vec<NamedTensor>,
    /// Opaque bytes for the postprocessor of the same request.
    pub state: Vec<u8>,
}

/// A postprocessor's answer, as the plugin gave it.
#[derive(Debug)]
pub struct Response {
    /// HTTP status, 200 to 599.
    pub status: u16,
    /// The body's media type; it may be empty.
    pub content_type: String,
    /// Further headers: names and values.
    pub headers: Vec<(String, String)>,
    /// The body, within the limit on responses.
    pub body: Vec<u8>,
}
