//! Calls of the admin API, which answer with a JSON document or a file each.
//!
//! A call fails if the server sends no answer, refuses the call, or sends an answer that the admin
//! API never sends. Callers decide what to say about it.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use http::{Request, StatusCode};
use serde_json::Value;

use crate::answer::Answer;
use crate::client::Client;
use crate::error::ClientError;

/// A client of one server's admin plane. The paths of its methods are relative to `/admin/v1/`.
#[derive(Clone, Debug)]
pub struct AdminClient {
    client: Client,
}

/// Why a call of the admin API failed.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The server sent no answer.
    #[error(transparent)]
    NoAnswer(#[from] ClientError),
    /// The server refused the call, with a problem document.
    #[error("{status}: {detail}")]
    Refused {
        /// The answer's status.
        status: StatusCode,
        /// The problem document's code.
        code: String,
        /// The problem document's text.
        detail: String,
    },
    /// The admin API sends no such answer: it is neither a success with a JSON object nor a problem
    /// document. The address may be that of another server.
    #[error("{status}, which is not an answer of the admin API: {beginning}")]
    Foreign {
        /// The answer's status.
        status: StatusCode,
        /// The beginning of its body.
        beginning: String,
    },
}

impl AdminClient {
    /// An admin client over `client`, which must have the admin token.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The client that was given to [`Self::new`].
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends `GET`. Returns the answer's document.
    ///
    /// # Errors
    /// [`AdminError`] where the call did not succeed with a JSON object.
    pub async fn get(&self, path: &str) -> Result<Value, AdminError> {
        self.call(Request::get(url(path)).body(Bytes::new())).await
    }

    /// Sends `GET`. Returns the answer's file.
    ///
    /// # Errors
    /// As [`Self::get`], and if the answer has another media type.
    pub async fn get_file(&self, path: &str, media_type: &str) -> Result<Bytes, AdminError> {
        let request = Request::get(url(path)).body(Bytes::new()).map_err(ClientError::from)?;
        let answer = self.client.send(request).await?;
        let content_type = answer.headers.get(CONTENT_TYPE);
        let is_file = content_type
            .is_some_and(|content_type| content_type.as_bytes() == media_type.as_bytes());
        if answer.status.is_success() && is_file { Ok(answer.body) } else { Err(refusal(&answer)) }
    }

    /// Sends `PUT` with a file. Returns the answer's document.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn put(&self, path: &str, file: impl Into<Bytes>) -> Result<Value, AdminError> {
        let request = Request::put(url(path)).header(CONTENT_TYPE, "application/octet-stream");
        self.call(request.body(file.into())).await
    }

    /// Sends `PUT` with a plugin's file and its signature, a JSON document. Returns the answer's
    /// document.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn put_signed(
        &self,
        path: &str,
        file: impl Into<Bytes>,
        signature: &Value,
    ) -> Result<Value, AdminError> {
        let request = Request::put(url(path)).header(CONTENT_TYPE, "application/octet-stream");
        let request = request.header("gristmill-plugin-signature", signature.to_string());
        self.call(request.body(file.into())).await
    }

    /// Sends `PUT` with a JSON document. Returns the answer's document.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn put_json(&self, path: &str, document: &Value) -> Result<Value, AdminError> {
        let request = Request::put(url(path)).header(CONTENT_TYPE, "application/json");
        self.call(request.body(document.to_string().into())).await
    }

    /// Sends `PUT` with the JSON document of something that must not exist yet. Returns the
    /// answer's document.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn put_new(&self, path: &str, document: &Value) -> Result<Value, AdminError> {
        let request = Request::put(url(path)).header(CONTENT_TYPE, "application/json");
        let request = request.header(IF_NONE_MATCH, "*");
        self.call(request.body(document.to_string().into())).await
    }

    /// Sends `DELETE`. Returns the answer's document.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn delete(&self, path: &str) -> Result<Value, AdminError> {
        self.call(Request::delete(url(path)).body(Bytes::new())).await
    }

    /// Sends `POST` with a JSON document. Returns the answer's document.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn post_json(&self, path: &str, document: &Value) -> Result<Value, AdminError> {
        let request = Request::post(url(path)).header(CONTENT_TYPE, "application/json");
        self.call(request.body(document.to_string().into())).await
    }

    /// Sends a request of the admin API. Returns the answer's document.
    pub(crate) async fn call(
        &self,
        request: http::Result<Request<Bytes>>,
    ) -> Result<Value, AdminError> {
        let answer = self.client.send(request.map_err(ClientError::from)?).await?;
        let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status.is_success() && document.is_object() {
            return Ok(document);
        }
        Err(refusal(&answer))
    }
}

/// Why a call did not succeed.
fn refusal(answer: &Answer) -> AdminError {
    let mut document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let status = answer.status;
    let Value::String(detail) = document["detail"].take() else {
        return AdminError::Foreign { status, beginning: answer.beginning() };
    };
    let code = document["code"].as_str().unwrap_or_default().to_owned();
    AdminError::Refused { status, code, detail }
}

/// The path of a request.
pub(crate) fn url(path: &str) -> String {
    format!("/admin/v1/{path}")
}

#[cfg(test)]
mod tests;
