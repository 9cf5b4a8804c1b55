//! The client of all servers: `gristmill bench`, a process of its own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gristmill_client::http::Request as HttpRequest;
use gristmill_client::{Answer, Client, block_on};

use super::interface::Request;
use crate::bench::own_client::{Measured, Round};
use crate::shell::target;

/// A request to a server, of which the client sends many.
pub(super) struct Target {
    /// The server, `http://host:port`.
    server: String,
    request: Request,
    /// The file of the request's body.
    body: PathBuf,
}

impl Target {
    /// `name` tells the target's files from others.
    pub(super) fn new(name: &str, server: String, request: Request) -> Result<Self> {
        let body = target().join("peers").join(format!("{name}.body"));
        fs::write(&body, &request.body).with_context(|| body.display().to_string())?;
        Ok(Self { server, request, body })
    }

    /// Send the request once.
    pub(super) fn send(&self) -> Result<Answer> {
        let mut request = HttpRequest::post(&self.request.path);
        for (name, value) in &self.request.headers {
            request = request.header(*name, value);
        }
        let request = request.body(self.request.body.clone().into())?;
        Ok(block_on(Client::new(self.server.parse()?).send(request))?)
    }

    /// Measure it under load.
    ///
    /// # Errors
    /// `gristmill bench` cannot be run, or an answer was not a success.
    pub(super) fn measure(&self, gristmill: &Path, round: Round) -> Result<Measured> {
        let url = format!("{}{}", self.server, self.request.path);
        let body = self.body.display().to_string();
        let headers: Vec<String> =
            self.request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let mut flags = vec!["--body", &*body];
        flags.extend(headers.iter().flat_map(|header| ["--header", header]));
        round.measure(gristmill, &url, &flags)
    }
}
