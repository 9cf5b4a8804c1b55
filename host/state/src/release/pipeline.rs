//! A pipeline in a release, and the document that people write.

use gristmill_core::PipelineLimits;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::release::candidate::CandidateSpec;
use crate::release::capture::CaptureSpec;
use crate::release::document::{Document, Faults};
use crate::release::instance_reuse::InstanceReuse;
use crate::release::instance_reuse::forms::InstanceReuseForms;
use crate::release::limits::LimitsSpec;
use crate::release::named_version::NamedVersion;
use crate::release::sample::{self, Sample};
use crate::schema::{NamedModelText, NamedVersionText};

/// The most bytes of a pipeline's settings: the log keeps them, and each plugin call gets a copy.
const SETTINGS_BYTES_MAX: u64 = 64 << 10;

/// A pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Pipeline)]
#[serde(deny_unknown_fields)]
pub struct PipelineSpec {
    /// The plugin that makes the model's inputs.
    #[schema(value_type = NamedVersionText)]
    pub pre: NamedVersion,
    /// The model.
    #[schema(value_type = NamedModelText)]
    pub model: NamedVersion,
    /// The plugin that makes the response.
    #[schema(value_type = NamedVersionText)]
    pub post: NamedVersion,
    /// A JSON object that the plugins can read.
    #[schema(value_type = Option<Object>)]
    #[serde(default = "no_settings")]
    pub settings: Map<String, Value>,
    /// The limits of its requests.
    #[schema(value_type = Option<LimitsSpec>)]
    #[serde(default)]
    pub limits: LimitsSpec,
    /// The model's priority level for its requests; 1 is served first. If it is not given: the
    /// model's default.
    #[serde(default)]
    pub priority: Option<u32>,
    /// How its plugins' instances are used again.
    #[schema(value_type = Option<InstanceReuseForms>)]
    #[serde(default)]
    pub instance_reuse: InstanceReuse,
    /// Whether its clients see why a plugin call failed, with the lines of that call.
    #[schema(value_type = Option<bool>)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub debug: bool,
    /// Other plugins, another model or other settings that are tried in its place.
    #[schema(value_type = Option<CandidateSpec>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Box<CandidateSpec>>,
    /// Which requests are kept, so that people can make samples of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureSpec>,
    /// The requests that it must answer as expected before it serves.
    #[schema(value_type = Option<Vec<Sample>>, max_items = 16)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

impl PipelineSpec {
    /// The plugins that it names.
    pub fn plugins(&self) -> impl Iterator<Item = &NamedVersion> {
        let pipeline_plugins = [&self.pre, &self.post].into_iter();
        pipeline_plugins.chain(self.candidate.iter().flat_map(|candidate| candidate.plugins()))
    }

    /// The models that it names.
    pub fn models(&self) -> impl Iterator<Item = &NamedVersion> {
        let candidate = self.candidate.as_ref().and_then(|candidate| candidate.model.as_ref());
        std::iter::once(&self.model).chain(candidate)
    }

    /// The plugins that run a request of its candidate. None if it has none.
    pub fn candidate_plugins(&self) -> Option<[&NamedVersion; 2]> {
        let candidate = self.candidate.as_ref()?;
        Some([
            candidate.pre.as_ref().unwrap_or(&self.pre),
            candidate.post.as_ref().unwrap_or(&self.post),
        ])
    }

    /// The pipeline with the candidate in its place, and without a candidate. None if it has none.
    pub fn promoted(&self) -> Option<Self> {
        let mut promoted = self.without_candidate();
        let CandidateSpec { pre, model, post, settings, .. } = *self.candidate.clone()?;
        promoted.pre = pre.unwrap_or(promoted.pre);
        promoted.model = model.unwrap_or(promoted.model);
        promoted.post = post.unwrap_or(promoted.post);
        promoted.settings = settings.unwrap_or(promoted.settings);
        Some(promoted)
    }

    /// The pipeline without its candidate.
    pub fn without_candidate(&self) -> Self {
        Self { candidate: None, ..self.clone() }
    }
}

fn no_settings() -> Map<String, Value> {
    Map::new()
}

/// The readable parts of a pipeline's document, and its faults.
pub struct PipelineDocument {
    /// The plugin that makes the inputs.
    pub pre: Option<NamedVersion>,
    /// The model.
    pub model: Option<NamedVersion>,
    /// The plugin that makes the response.
    pub post: Option<NamedVersion>,
    settings: Map<String, Value>,
    /// The limits.
    pub limits: LimitsSpec,
    /// The priority at the model.
    pub priority: Option<u32>,
    instance_reuse: InstanceReuse,
    debug: bool,
    /// The candidate.
    pub candidate: Option<Box<CandidateSpec>>,
    capture: Option<CaptureSpec>,
    samples: Vec<Sample>,
    /// The faults of the document.
    pub faults: Faults,
}

impl PipelineDocument {
    /// Read a document with these `keys`. Limits are checked against what `host` allows.
    pub fn read(keys: Map<String, Value>, host: &PipelineLimits) -> Self {
        let mut document = Document::new(keys);
        let (pre, model, post) = (
            document.named_version("pre"),
            document.named_model("model"),
            document.named_version("post"),
        );
        let (pre, model, post) = (
            document.require("pre", pre),
            document.require("model", model),
            document.require("post", post),
        );
        let settings = document.object("settings").unwrap_or_default();
        let limits = document.nested("limits", LimitsSpec::read);
        let priority = document.whole("priority");
        let instance_reuse = InstanceReuse::read(&mut document);
        let debug = document.flag("debug").unwrap_or_default();
        let candidate = CandidateSpec::read(&mut document).map(Box::new);
        let capture = CaptureSpec::read(&mut document);
        let samples = sample::read(&mut document);
        let mut faults = document.finish();
        check_settings("settings", &settings, &mut faults);
        if let Some(settings) = candidate.as_ref().and_then(|candidate| candidate.settings.as_ref())
        {
            check_settings("candidate.settings", settings, &mut faults);
        }
        limits.check(host, &mut faults);
        instance_reuse.check(&mut faults);
        Self {
            pre,
            model,
            post,
            settings,
            limits,
            priority,
            instance_reuse,
            debug,
            candidate,
            capture,
            samples,
            faults,
        }
    }

    /// The pipeline, if the document has no faults.
    pub fn into_spec(self) -> Result<PipelineSpec, Box<Self>> {
        match self {
            Self { pre: Some(pre), model: Some(model), post: Some(post), .. }
                if self.faults.is_empty() =>
            {
                let Self { settings, limits, priority, instance_reuse, .. } = self;
                let (debug, candidate, samples) = (self.debug, self.candidate, self.samples);
                let capture = self.capture;
                Ok(PipelineSpec {
                    pre,
                    model,
                    post,
                    settings,
                    limits,
                    priority,
                    instance_reuse,
                    debug,
                    candidate,
                    capture,
                    samples,
                })
            }
            faulty => Err(Box::new(faulty)),
        }
    }
}

fn check_settings(key: &str, settings: &Map<String, Value>, faults: &mut Faults) {
    let bytes = serde_json::to_vec(settings).map_or(0, |text| text.len() as u64);
    if bytes > SETTINGS_BYTES_MAX {
        let text = format!("{key} take {bytes} bytes as JSON: the limit is {SETTINGS_BYTES_MAX}");
        faults.add(key, text);
    }
}

#[cfg(test)]
mod tests;
