//! What the log holds: numbered releases, each a list of changes.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use gristmill_core::{Digest, Name, PipelineLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Faults};
use crate::model_config::ModelConfig;

/// The most bytes of a pipeline's settings: the log keeps them, and each plugin call gets a copy.
const SETTINGS_BYTES_MAX: u64 = 64 << 10;

/// The least memory that a pipeline's plugin calls may be given.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// The least CPU time: guests are stopped at a clock that ticks every millisecond.
const CPU_MS_MIN: u64 = 5;

/// All of its changes take effect together or not at all.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    pub number: u64,
    /// Milliseconds since the Unix epoch.
    pub published_at_ms: u64,
    /// The SHA-256 of the log's document before this one; of nothing for the first. None in a
    /// document of format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
    pub changes: Vec<Change>,
}

/// One change to the desired state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// Make a tenant, or change who may call it; its plugins and pipelines stay.
    PutTenant {
        tenant: Name,
        spec: TenantSpec,
    },
    DeleteTenant {
        tenant: Name,
    },
    PutPlugin {
        tenant: Name,
        plugin: Name,
        digest: Digest,
    },
    DeletePlugin {
        tenant: Name,
        plugin: Name,
    },
    PutPipeline {
        tenant: Name,
        pipeline: Name,
        spec: PipelineSpec,
    },
    DeletePipeline {
        tenant: Name,
        pipeline: Name,
    },
    /// New content; the configuration stays, or is the default for a new model.
    PutModel {
        model: Name,
        digest: Digest,
    },
    PutModelConfig {
        model: Name,
        config: ModelConfig,
    },
    DeleteModel {
        model: Name,
    },
    /// Serve a model that was taken out of service.
    LoadModel {
        model: Name,
    },
    /// Take a model out of service; its content and configuration stay.
    UnloadModel {
        model: Name,
    },
}

impl Change {
    /// The uploaded file that it names.
    pub(crate) fn blob(&self) -> Option<Digest> {
        match self {
            Self::PutPlugin { digest, .. } | Self::PutModel { digest, .. } => Some(*digest),
            _ => None,
        }
    }
}

/// For the log lines: what, but not the content.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PutTenant { tenant, .. } => write!(f, "put tenant {tenant}"),
            Self::DeleteTenant { tenant } => write!(f, "delete tenant {tenant}"),
            Self::PutPlugin { tenant, plugin, digest } => {
                write!(f, "put plugin {tenant}/{plugin} {digest}")
            }
            Self::DeletePlugin { tenant, plugin } => write!(f, "delete plugin {tenant}/{plugin}"),
            Self::PutPipeline { tenant, pipeline, .. } => {
                write!(f, "put pipeline {tenant}/{pipeline}")
            }
            Self::DeletePipeline { tenant, pipeline } => {
                write!(f, "delete pipeline {tenant}/{pipeline}")
            }
            Self::PutModel { model, digest } => write!(f, "put model {model} {digest}"),
            Self::PutModelConfig { model, .. } => write!(f, "put config of model {model}"),
            Self::DeleteModel { model } => write!(f, "delete model {model}"),
            Self::LoadModel { model } => write!(f, "load model {model}"),
            Self::UnloadModel { model } => write!(f, "unload model {model}"),
        }
    }
}

/// Who may call a tenant's pipelines, and what they get of contended models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantSpec {
    /// Whether anyone may, without a key.
    pub open: bool,
    /// Digests of the keys.
    pub keys: Vec<Digest>,
    /// Which pipeline `/v1/{tenant}/infer` runs; where it is not named, the tenant's only one.
    pub default_pipeline: Option<Name>,
    /// The tenant's share of contended batches, against the weights of others; 1 to 1000.
    pub weight: u32,
    /// The models it may run directly, over the Open Inference Protocol.
    pub models: BTreeSet<Name>,
}

impl Default for TenantSpec {
    fn default() -> Self {
        Self {
            open: false,
            keys: Vec::new(),
            default_pipeline: None,
            weight: 1,
            models: BTreeSet::new(),
        }
    }
}

/// A pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineSpec {
    /// The plugin that makes the model's inputs.
    pub pre: Name,
    /// The model.
    pub model: Name,
    /// The plugin that makes the response.
    pub post: Name,
    /// A JSON object that the plugins can read.
    #[serde(default = "no_settings")]
    pub settings: Map<String, Value>,
    #[serde(default)]
    pub limits: LimitsSpec,
    /// The model's priority level for its requests, 1 being served first; not given: the model's default.
    #[serde(default)]
    pub priority: Option<u32>,
}

fn no_settings() -> Map<String, Value> {
    Map::new()
}

/// A pipeline's document, read as far as it can be.
pub(crate) struct PipelineDocument {
    pub(crate) pre: Option<Name>,
    pub(crate) model: Option<Name>,
    pub(crate) post: Option<Name>,
    settings: Map<String, Value>,
    pub(crate) limits: LimitsSpec,
    pub(crate) priority: Option<u32>,
    pub(crate) faults: Faults,
}

impl PipelineDocument {
    /// The document that `keys` are; the limits held against what `host` allows.
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
        let mut faults = document.finish();
        let settings_len = serde_json::to_vec(&settings).map_or(0, |text| text.len() as u64);
        if settings_len > SETTINGS_BYTES_MAX {
            let text = format!(
                "settings take {settings_len} bytes as JSON: at most {SETTINGS_BYTES_MAX} may"
            );
            faults.add("settings", text);
        }
        limits.check(host, &mut faults);
        Self { pre, model, post, settings, limits, priority, faults }
    }

    /// The pipeline, where nothing is wrong with the document.
    pub(crate) fn into_spec(self) -> Result<PipelineSpec, Box<Self>> {
        match self {
            Self { pre: Some(pre), model: Some(model), post: Some(post), .. }
                if self.faults.is_empty() =>
            {
                let Self { settings, limits, priority, .. } = self;
                Ok(PipelineSpec { pre, model, post, settings, limits, priority })
            }
            faulty => Err(Box::new(faulty)),
        }
    }
}

/// What a request of a pipeline may use; what is not given is the host's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSpec {
    /// From the request's arrival to its answer.
    pub timeout_ms: Option<u64>,
    /// The request's body.
    pub body_bytes: Option<usize>,
    /// CPU time of each plugin call.
    pub cpu_ms: Option<u64>,
    /// Linear memory of each plugin call.
    pub memory_bytes: Option<usize>,
    /// The response's body, and the state between the two calls.
    pub response_bytes: Option<usize>,
    /// What each plugin call may log.
    pub log_bytes: Option<usize>,
}

/// One limit: what is asked for, and what may be.
struct Range {
    key: &'static str,
    asked: Option<u64>,
    /// Of what is asked for now. What an older version took in is served on.
    min: u64,
    max: u64,
    default: u64,
}

/// What a pipeline may set a limit to, as documentation has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRange {
    /// The key under `limits`.
    pub key: &'static str,
    pub min: u64,
    pub max: u64,
    pub default: u64,
}

/// Every limit that a pipeline may set on such a host.
pub fn limit_ranges(host: &PipelineLimits) -> Vec<LimitRange> {
    let ranges = LimitsSpec::default().ranges(host);
    let range = |Range { key, min, max, default, .. }| LimitRange { key, min, max, default };
    ranges.map(range).into()
}

impl LimitsSpec {
    fn read(document: &mut Document) -> Self {
        Self {
            timeout_ms: document.whole("timeout_ms"),
            body_bytes: document.whole("body_bytes"),
            cpu_ms: document.whole("cpu_ms"),
            memory_bytes: document.whole("memory_bytes"),
            response_bytes: document.whole("response_bytes"),
            log_bytes: document.whole("log_bytes"),
        }
    }

    fn ranges(&self, host: &PipelineLimits) -> [Range; 6] {
        let bytes = |value: Option<usize>| value.map(|value| value as u64);
        let millis = |duration: Duration| duration.as_millis() as u64;
        let plugin = &host.plugin;
        let range = |key, asked, (min, max), default| Range { key, asked, min, max, default };
        let memory = plugin.memory_bytes as u64;
        let response = (1, plugin.hostcall_bytes as u64);
        [
            range("timeout_ms", self.timeout_ms, (1, 600_000), millis(host.timeout)),
            range("body_bytes", bytes(self.body_bytes), (1, 1 << 30), host.body_bytes as u64),
            range("cpu_ms", self.cpu_ms, (CPU_MS_MIN, 60_000), millis(plugin.cpu)),
            range("memory_bytes", bytes(self.memory_bytes), (MEMORY_BYTES_MIN, memory), memory),
            range(
                "response_bytes",
                bytes(self.response_bytes),
                response,
                plugin.response_bytes as u64,
            ),
            range("log_bytes", bytes(self.log_bytes), (0, 16 << 20), plugin.log_bytes as u64),
        ]
    }

    /// What is out of the range that `host` allows.
    fn check(&self, host: &PipelineLimits, faults: &mut Faults) {
        for Range { key, asked, min, max, .. } in self.ranges(host) {
            if let Some(asked) = asked {
                faults.within(&format!("limits.{key}"), asked, (min, max));
            }
        }
    }

    /// The limits, each within what `host` allows; every fault at once.
    pub(crate) fn resolve(&self, host: &PipelineLimits) -> Result<PipelineLimits, Vec<String>> {
        let mut faults = Faults::default();
        let values = self.ranges(host).map(|Range { key, asked, max, default, .. }| {
            let value = asked.unwrap_or(default);
            if value > max {
                faults.within(&format!("limits.{key}"), value, (1, max));
            }
            value
        });
        if !faults.is_empty() {
            return Err(faults.into_texts());
        }
        let [timeout, body, cpu, memory, response, log] = values;
        let mut limits = host.clone();
        limits.timeout = Duration::from_millis(timeout);
        limits.body_bytes = body as usize;
        limits.plugin.cpu = Duration::from_millis(cpu);
        limits.plugin.memory_bytes = memory as usize;
        limits.plugin.response_bytes = response as usize;
        limits.plugin.log_bytes = log as usize;
        Ok(limits)
    }
}

#[cfg(test)]
mod tests;
