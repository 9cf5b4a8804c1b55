//! A pipeline in a release, and the document that people write.

use gristmill_core::{Name, PipelineLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::release::document::{Document, Faults};
use crate::release::instance_reuse::InstanceReuse;
use crate::release::instance_reuse::forms::InstanceReuseForms;
use crate::release::limits::LimitsSpec;
use crate::release::sample::{self, Sample};
use crate::schema::NameText;

/// The most bytes of a pipeline's settings: the log keeps them, and each plugin call gets a copy.
const SETTINGS_BYTES_MAX: u64 = 64 << 10;

/// A pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Pipeline)]
#[serde(deny_unknown_fields)]
pub struct PipelineSpec {
    /// The plugin that makes the model's inputs.
    #[schema(value_type = NameText)]
    pub pre: Name,
    /// The model.
    #[schema(value_type = NameText)]
    pub model: Name,
    /// The plugin that makes the response.
    #[schema(value_type = NameText)]
    pub post: Name,
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
    /// The requests that it must answer as expected before it serves.
    #[schema(value_type = Option<Vec<Sample>>, max_items = 16)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

fn no_settings() -> Map<String, Value> {
    Map::new()
}

/// The readable parts of a pipeline's document, and its faults.
pub(crate) struct PipelineDocument {
    pub(crate) pre: Option<Name>,
    pub(crate) model: Option<Name>,
    pub(crate) post: Option<Name>,
    settings: Map<String, Value>,
    pub(crate) limits: LimitsSpec,
    pub(crate) priority: Option<u32>,
    instance_reuse: InstanceReuse,
    debug: bool,
    samples: Vec<Sample>,
    pub(crate) faults: Faults,
}

impl PipelineDocument {
    /// Read a document with these `keys`. Limits are checked against what `host` allows.
    pub(crate) fn read(keys: Map<String, Value>, host: &PipelineLimits) -> Self {
        let mut document = Document::new(keys);
        let mut name = |key| {
            let name = document.name(key);
            document.require(key, name)
        };
        let (pre, model, post) = (name("pre"), name("model"), name("post"));
        let settings = document.object("settings").unwrap_or_default();
        let limits = document.nested("limits", LimitsSpec::read);
        let priority = document.whole("priority");
        let instance_reuse = InstanceReuse::read(&mut document);
        let debug = document.flag("debug").unwrap_or_default();
        let samples = sample::read(&mut document);
        let mut faults = document.finish();
        let settings_len = serde_json::to_vec(&settings).map_or(0, |text| text.len() as u64);
        if settings_len > SETTINGS_BYTES_MAX {
            let text = format!(
                "settings take {settings_len} bytes as JSON: the limit is {SETTINGS_BYTES_MAX}"
            );
            faults.add("settings", text);
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
            samples,
            faults,
        }
    }

    /// The pipeline, if the document has no faults.
    pub(crate) fn into_spec(self) -> Result<PipelineSpec, Box<Self>> {
        match self {
            Self { pre: Some(pre), model: Some(model), post: Some(post), .. }
                if self.faults.is_empty() =>
            {
                let Self { settings, limits, priority, instance_reuse, debug, samples, .. } = self;
                Ok(PipelineSpec {
                    pre,
                    model,
                    post,
                    settings,
                    limits,
                    priority,
                    instance_reuse,
                    debug,
                    samples,
                })
            }
            faulty => Err(Box::new(faulty)),
        }
    }
}

#[cfg(test)]
mod tests;
