//! One of the two servers of a job, with the requests that clients send to it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use gristmill_client::http::Request;
use gristmill_client::{Client, block_on};
use serde_json::Value;

use super::scenario::Scenario;
use crate::bench::clients::Round;
use crate::bench::rounds::Measured;
use crate::shell::target;

pub(super) struct Side {
    /// Where it answers.
    url: String,
    content_type: &'static str,
    /// The files of the requests' bodies.
    pub(super) bodies: Vec<PathBuf>,
    /// The file of the requests, as `gristmill bench --targets` reads it.
    targets: PathBuf,
}

impl Side {
    /// The requests of a job to `url`. `name` tells its file from others.
    pub(super) fn new(scenario: &Scenario, url: &str, name: &str) -> Result<Self> {
        let folder = folder();
        let bodies = bodies(&folder.join(scenario.bodies))?;
        let mut text = String::new();
        for body in &bodies {
            // A file of targets names bodies beside it, whose names say their types. The texts have
            // no characters that TOML and Rust escape differently.
            let body = body.strip_prefix(&folder)?;
            text.push_str(&format!("[[target]]\nurl = {url:?}\nbody = {body:?}\n"));
        }
        let targets = folder.join(format!("{}-{name}.toml", scenario.job));
        fs::write(&targets, text).with_context(|| targets.display().to_string())?;
        Ok(Self { url: url.to_owned(), content_type: scenario.content_type, bodies, targets })
    }

    /// Send the request with the body `at` once. Returns the JSON of the answer.
    pub(super) fn answer(&self, at: usize) -> Result<Value> {
        let body = fs::read(&self.bodies[at])?;
        let address = self.url.trim_start_matches("http://");
        let (host, path) = address.split_once('/').context("a URL without a path")?;
        let request = Request::post(format!("/{path}")).header("content-type", self.content_type);
        let client = Client::new(format!("http://{host}").parse()?);
        let answer = block_on(client.send(request.body(body.into())?))?.ok()?;
        Ok(serde_json::from_slice(&answer.body)?)
    }

    /// Measure it under load.
    pub(super) fn measure(&self, gristmill: &Path, round: Round) -> Result<Measured> {
        round.measure_targets(gristmill, &self.targets)
    }
}

/// The folder of the requests.
pub(super) fn folder() -> PathBuf {
    target().join("jobs")
}

/// The file, or the files in the folder, in the order of their names.
fn bodies(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).with_context(|| path.display().to_string())?;
    let files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>();
    let mut files = files?;
    files.sort();
    ensure!(!files.is_empty(), "{} has no files", path.display());
    Ok(files)
}
