//! The client of all servers: `gristmill bench`, a process of its own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use gristmill_client::http::Request as HttpRequest;
use gristmill_client::{Answer, Client, block_on};
use serde_json::Value;

use super::interface::Request;
use crate::shell::{program, target};

/// A request to a server, of which the client sends many.
pub(super) struct Target {
    /// The server, `http://host:port`.
    server: String,
    request: Request,
    /// The file of the request's body.
    body: PathBuf,
}

/// What a round measured.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    pub(super) per_second: f64,
    pub(super) p99_us: f64,
}

/// The size of a round.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub(super) concurrency: u32,
    pub(super) seconds: u32,
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
        let mut bench = program(gristmill);
        bench.args(["bench", &url, "--output", "json", "--warm-up", "1"]);
        bench.args(["--connections", &round.concurrency.to_string()]);
        bench.args(["--duration", &round.seconds.to_string()]).arg("--body").arg(&self.body);
        for (name, value) in &self.request.headers {
            bench.args(["--header", &format!("{name}: {value}")]);
        }
        let done = bench.output().context("gristmill bench cannot be run")?;
        let text = String::from_utf8_lossy(&done.stderr);
        let last = text.lines().last().unwrap_or_default();
        ensure!(done.status.success(), "gristmill bench of {url}: {last}");
        let saved: Value = serde_json::from_slice(&done.stdout)?;
        let measured = &saved["measured"][0];
        let errors = &measured["errors"];
        ensure!(errors.is_null(), "{url}: answers that were not a success: {errors}");
        let number = |value: &Value| {
            value.as_f64().with_context(|| format!("gristmill bench wrote {saved}"))
        };
        Ok(Measured {
            per_second: number(&measured["per_second"])?,
            p99_us: number(&measured["latency_us"]["p99"])?,
        })
    }
}
