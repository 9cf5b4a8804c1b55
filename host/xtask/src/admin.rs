//! The calls of the admin API that the tasks make.

use std::path::Path;

use anyhow::{Context, Result};
use gristmill_client::{AdminClient, Client, block_on};
use serde_json::Value;

/// A client of one server's admin plane.
pub(crate) struct Admin {
    pub(crate) url: String,
    pub(crate) token: String,
    client: AdminClient,
}

impl Admin {
    /// The admin plane at this URL.
    pub(crate) fn new(url: String, token: &str) -> Result<Self> {
        let client = AdminClient::new(Client::new(url.parse()?).with_token(token)?);
        Ok(Self { url, token: token.to_owned(), client })
    }

    /// Upload a file.
    pub(crate) fn put_file(&self, path: &str, file: &Path) -> Result<()> {
        let body = std::fs::read(file).with_context(|| file.display().to_string())?;
        let answer = block_on(self.client.put(path, body));
        answer.with_context(|| format!("PUT {path}")).map(drop)
    }

    /// Put a JSON document.
    pub(crate) fn put_json(&self, path: &str, document: &Value) -> Result<()> {
        let answer = block_on(self.client.put_json(path, document));
        answer.with_context(|| format!("PUT {path}")).map(drop)
    }

    /// Get a document.
    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        block_on(self.client.get(path)).with_context(|| format!("GET {path}"))
    }
}
