//! A pipeline as documents and the log have it: the keys of both kinds of programs side by side.

use std::collections::BTreeMap;

use gristmill_core::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::release::assets::AssetNames;
use crate::release::candidate::CandidateSpec;
use crate::release::capture::CaptureSpec;
use crate::release::instance_reuse::InstanceReuse;
use crate::release::instance_reuse::forms::InstanceReuseForms;
use crate::release::limits::LimitsSpec;
use crate::release::named_version::NamedVersion;
use crate::release::oip::OipSpec;
use crate::release::sample::Sample;
use crate::schema::{NamedModelText, NamedVersionText};

/// A pipeline: either `pre`, `model` and `post`, or `handler` and `models`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Pipeline)]
#[serde(deny_unknown_fields)]
pub struct PipelineForm {
    /// The plugin that makes the model's inputs. Given with `model` and `post`.
    #[schema(value_type = Option<NamedVersionText>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre: Option<NamedVersion>,
    /// The model. Given with `pre` and `post`.
    #[schema(value_type = Option<NamedModelText>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<NamedVersion>,
    /// The plugin that makes the response. Given with `pre` and `model`.
    #[schema(value_type = Option<NamedVersionText>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<NamedVersion>,
    /// The plugin that answers requests itself, in place of `pre`, `model` and `post`. Given with
    /// `models`.
    #[schema(value_type = Option<NamedVersionText>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<NamedVersion>,
    /// The models that the handler runs, by the names that its code has for them: 1 to 16.
    #[schema(value_type = Option<BTreeMap<String, NamedModelText>>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<BTreeMap<Name, NamedVersion>>,
    /// A JSON object that the plugins can read.
    #[schema(value_type = Option<Object>)]
    #[serde(default = "no_settings")]
    pub settings: Map<String, Value>,
    /// The tenant's assets that the plugins can open, by the names under which they do: at most
    /// 256.
    #[schema(value_type = Option<BTreeMap<String, NamedVersionText>>)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub assets: AssetNames,
    /// The limits of its requests.
    #[schema(value_type = Option<LimitsSpec>)]
    #[serde(default)]
    pub limits: LimitsSpec,
    /// The models' priority level for its requests; 1 is served first. If it is not given: the
    /// default of each model.
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
    /// Its named inputs and outputs over the Open Inference Protocol. Without them it has one text
    /// in and one text out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oip: Option<OipSpec>,
    /// Other plugins, other models or other settings that are tried in its place.
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

fn no_settings() -> Map<String, Value> {
    Map::new()
}
