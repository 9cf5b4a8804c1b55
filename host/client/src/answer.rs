//! The answer of a server.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// Maximum bytes of a body that an error shows.
const SHOWN_BYTES_MAX: usize = 1 << 10;

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status, of any kind.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// An answer other than 200.
#[derive(Debug, thiserror::Error)]
#[error("{status}: {beginning}")]
pub struct StatusError {
    /// The answer's status.
    pub status: StatusCode,
    /// The beginning of its body as text.
    pub beginning: String,
}

impl Answer {
    /// The answer, if it is a 200.
    ///
    /// # Errors
    /// [`StatusError`] with the status and the beginning of the body.
    pub fn ok(self) -> Result<Self, StatusError> {
        match self.status {
            StatusCode::OK => Ok(self),
            status => Err(StatusError { status, beginning: self.beginning() }),
        }
    }

    /// The header's value. It is empty if the header is missing or is not text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The beginning of the body as text, for messages.
    pub fn beginning(&self) -> String {
        let shown = &self.body[..self.body.len().min(SHOWN_BYTES_MAX)];
        String::from_utf8_lossy(shown).into_owned()
    }
}
