//! Requests through a plugin and models of a server, whose state stays as it is.
//!
//! The plugin is uploaded. A dry run of a release with a pipeline of it, whose samples are the
//! requests, answers what each got.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::ArgMatches;
use gristmill_client::http::header::CONTENT_TYPE;
use gristmill_core::{Charge, ErrorCode, Name, Stages};
use gristmill_sandbox::{Reuse, is_archive};
use gristmill_state::{SampleAnswer, SampleFailure};
use serde_json::{Map, Value, json};

use super::requests::Sample;
use crate::admin::{self, Admin};
use crate::file_upload::HashedFile;
use crate::plugin::children;
use crate::plugin::named_models::{Given, by_name};
use crate::request_run::Ran;

/// The plugins and the pipeline of the dry run.
const PRE: &str = "plugin-test";
const POST: &str = "plugin-test-post";

/// The samples of a pipeline: their number, and their bytes as JSON, with room for the rest.
const SAMPLES_MAX: usize = 16;
const SAMPLES_BYTES_MAX: usize = 250_000;

/// Models on a server.
pub(super) struct ServerModels {
    admin: Admin,
    tenant: Name,
    models: Vec<Given<Name>>,
}

/// The parts of the pipeline.
pub(super) struct Uploaded<'a> {
    pub(super) pre: &'a Path,
    /// The postprocessor, if it is another plugin.
    pub(super) post: Option<&'a Path>,
    pub(super) settings: &'a Map<String, Value>,
    pub(super) reuse: &'a Reuse,
    /// Assets of the tenant, by the names under which plugins open them.
    pub(super) assets: BTreeMap<&'a str, &'a str>,
}

impl ServerModels {
    /// # Errors
    /// The tenant's name is not one, or no server is named.
    pub(super) fn of(models: Vec<Given<Name>>, tenant: &str, matches: &ArgMatches) -> Result<Self> {
        let tenant = admin::name("--tenant", tenant)?;
        // It says where files go, and asks nobody: nothing that serves changes.
        let admin = Admin::of(matches)?;
        admin.announce();
        Ok(Self { admin, tenant, models })
    }

    /// The models, for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let address = self.admin.address();
        let line = |given_model: &Given<Name>| {
            given_model.line(&format!("{} of {address}", given_model.model))
        };
        self.models.iter().map(line).collect()
    }

    /// Upload the plugins, and run the requests, a few at a time.
    ///
    /// # Errors
    /// A request is too large for a sample, or the server refuses the plugin or the pipeline.
    pub(super) fn run(&self, uploaded: &Uploaded<'_>, samples: &[Sample]) -> Result<Vec<Ran>> {
        let Uploaded { pre, post, settings, reuse, assets } = uploaded;
        let program = self.program(uploaded)?;
        let requests: Vec<_> = samples.iter().map(request).collect::<Result<_>>()?;
        let mut changes = vec![self.plugin(PRE, pre)?];
        if let Some(post) = post {
            changes.push(self.plugin(POST, post)?);
        }
        let reuse = match reuse {
            Reuse::None => "none",
            Reuse::Request => "request",
            Reuse::Tenant(_) => "tenant",
        };
        let mut ran = Vec::new();
        for group in groups(&requests) {
            let sample = |(at, request): (usize, &&Value)| json!({ "name": name_of(at), "request": request });
            let samples: Vec<_> = group.iter().enumerate().map(sample).collect();
            let mut document = program.clone();
            document["settings"] = json!(settings);
            document["assets"] = json!(assets);
            document["instance_reuse"] = reuse.into();
            document["samples"] = samples.into();
            let pipeline = json!({
                "kind": "put_pipeline", "tenant": self.tenant, "pipeline": PRE, "document": document,
            });
            let changes: Vec<_> = changes.iter().cloned().chain([pipeline]).collect();
            let tried = self
                .admin
                .post("releases?dry_run=true&show_answers=true", &json!({ "changes": changes }))
                .context("the server did not run the requests")?;
            for at in 0..group.len() {
                let name = name_of(at);
                let is_it = |shown: &&Value| shown["pipeline"] == PRE && shown["sample"] == *name;
                let shown = tried["samples"].as_array().and_then(|list| list.iter().find(is_it));
                let shown = shown.context("the server did not answer what a request got")?;
                ran.push(ran_of(answer(shown)?));
            }
        }
        Ok(ran)
    }

    /// The keys of the pipeline's document that name its plugins and models.
    fn program(&self, uploaded: &Uploaded<'_>) -> Result<Value> {
        let Uploaded { pre, post, .. } = uploaded;
        if let [Given { name: None, model }] = &self.models[..] {
            ensure!(
                !is_handler(pre),
                "{} is a handler: name each model as its code does, as in --model detect={model}",
                pre.display()
            );
            let post = if post.is_some() { POST } else { PRE };
            return Ok(json!({ "pre": PRE, "model": model, "post": post }));
        }
        ensure!(
            post.is_none(),
            "--model NAME=MODEL, or several times, is for a handler, and --pre and --post are for \
             other plugins: give --model MODEL once"
        );
        let models = by_name(&self.models, |model: &Name| Ok(model.clone()))?;
        Ok(json!({ "handler": PRE, "models": models }))
    }

    fn plugin(&self, name: &str, file: &Path) -> Result<Value> {
        let file = HashedFile::read(file)?;
        file.upload(&self.admin)?;
        let (tenant, digest) = (&self.tenant, file.digest);
        Ok(json!({ "kind": "put_plugin", "tenant": tenant, "plugin": name, "digest": digest }))
    }
}

/// Whether the file is a component with `handle`. Of other files only the server knows it.
fn is_handler(file: &Path) -> bool {
    let Ok(content) = std::fs::read(file) else { return false };
    !is_archive(&content)
        && children::check(content, file).is_ok_and(|checked| checked.roles.handle)
}

/// The name of a sample, by its place in its group.
fn name_of(at: usize) -> String {
    format!("request-{at}")
}

/// The request of a sample.
fn request(sample: &Sample) -> Result<Value> {
    let Sample { file, head, body, .. } = sample;
    let mut request = json!({});
    if !body.is_empty() {
        request["base64"] = STANDARD.encode(body).into();
    }
    if let Some(query) = head.uri.query().filter(|query| !query.is_empty()) {
        request["query"] = query.into();
    }
    for (name, value) in &head.headers {
        let value = value.to_str().with_context(|| format!("{file}: header {name} is no text"))?;
        match name {
            name if name == CONTENT_TYPE => request["content_type"] = value.into(),
            name => request["headers"][name.as_str()] = value.into(),
        }
    }
    ensure!(
        request.to_string().len() <= SAMPLES_BYTES_MAX,
        "{file}: the request of {} bytes is too large to be tested on a server (about 180 KB, with \
         headers and query): make it smaller, or test with the model's file",
        body.len()
    );
    Ok(request)
}

/// As many requests as a pipeline may have samples, each time.
fn groups(requests: &[Value]) -> Vec<Vec<&Value>> {
    let (mut groups, mut bytes) = (Vec::<Vec<_>>::new(), 0);
    for request in requests {
        let size = request.to_string().len();
        match groups.last_mut() {
            Some(group) if group.len() < SAMPLES_MAX && bytes + size <= SAMPLES_BYTES_MAX => {
                group.push(request);
                bytes += size;
            }
            _ => {
                groups.push(vec![request]);
                bytes = size;
            }
        }
    }
    groups
}

/// What the server answered about a sample.
fn answer(shown: &Value) -> Result<SampleAnswer> {
    let text = |key: &str| shown[key].as_str().map(str::to_owned);
    let Some(status) = shown["status"].as_u64().and_then(|status| u16::try_from(status).ok())
    else {
        bail!("an answer is too large to be tested on a server: test with the model's file")
    };
    if let Some(body) = text("base64") {
        let body = STANDARD.decode(body).context("the server sent no Base64")?.into();
        let content_type = text("content_type").unwrap_or_default();
        return Ok(SampleAnswer::Response { status, content_type, body });
    }
    let code = text("code")
        .and_then(|code| ErrorCode::ALL.iter().copied().find(|other| other.as_str() == code));
    let code = code.context("the server sent an unknown code: is it of another version?")?;
    let (detail, internal) = (text("detail").unwrap_or_default(), text("internal"));
    Ok(SampleAnswer::Failed(SampleFailure { status, code, detail, internal }))
}

/// A run of which only the answer is known.
fn ran_of(answer: SampleAnswer) -> Ran {
    Ran {
        answer,
        took: Duration::ZERO,
        stages: Stages::default(),
        calls: Vec::new(),
        charge: Charge::default(),
        batch_rows: 0,
        batch_tenants: 0,
        lines: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_run_in_groups_that_a_pipeline_may_have() {
        let sizes = |requests: &[Value]| groups(requests).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(&vec![json!({}); 33]), [16, 16, 1]);
        let large = json!({ "base64": "A".repeat(100_000) });
        assert_eq!(sizes(&vec![large; 5]), [2, 2, 1]);
        assert!(groups(&[]).is_empty());
    }

    #[test]
    fn an_answer_is_read_as_it_was_made() {
        let shown = json!({ "status": 200, "content_type": "text/plain", "base64": "YWI=" });
        let SampleAnswer::Response { status: 200, body, .. } = answer(&shown).unwrap() else {
            panic!("{shown}")
        };
        assert_eq!(&body[..], b"ab");
        let shown = json!({ "status": 400, "code": "invalid_request", "detail": "no rows" });
        assert!(matches!(answer(&shown).unwrap(), SampleAnswer::Failed(failure)
            if failure.code == ErrorCode::InvalidRequest && failure.detail == "no rows"));
        let text = |shown: Value| answer(&shown).unwrap_err().to_string();
        assert!(text(json!({})).contains("too large"));
        assert!(text(json!({ "status": 400, "code": "new" })).contains("another version"));
    }
}
