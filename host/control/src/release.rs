//! What the log holds: numbered releases, each a list of changes.

use std::collections::BTreeSet;
use std::time::Duration;

use gristmill_core::{Digest, Name, PipelineLimits};
use serde::{Deserialize, Serialize};

use crate::model_config::ModelConfig;

/// One document of the log. All of its changes take effect together or not at all.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    pub number: u64,
    /// Milliseconds since the Unix epoch.
    pub published_at_ms: u64,
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
    pub settings: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    pub limits: LimitsSpec,
    /// The model's priority level for its requests, 1 being served first; not given: the model's default.
    #[serde(default)]
    pub priority: Option<u32>,
}

fn no_settings() -> serde_json::Map<String, serde_json::Value> {
    serde_json::Map::new()
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

impl LimitsSpec {
    /// The limits, each within what `host` allows; every fault at once.
    pub fn resolve(&self, host: &PipelineLimits) -> Result<PipelineLimits, Vec<String>> {
        let mut faults = Vec::new();
        let mut within = |name: &str, value: Option<u64>, max: u64, default: u64| match value {
            None => default,
            Some(value) if (1..=max).contains(&value) => value,
            Some(value) => {
                faults.push(format!("limits.{name} is {value}: must be 1 to {max}"));
                default
            }
        };
        let bytes = |value: Option<usize>| value.map(|value| value as u64);
        let millis = |duration: Duration| duration.as_millis() as u64;
        let mut limits = host.clone();
        let plugin = &mut limits.plugin;
        let timeout = within("timeout_ms", self.timeout_ms, 600_000, millis(host.timeout));
        limits.timeout = Duration::from_millis(timeout);
        let most = 1 << 30;
        let body = within("body_bytes", bytes(self.body_bytes), most, host.body_bytes as u64);
        limits.body_bytes = body as usize;
        let cpu = within("cpu_ms", self.cpu_ms, 60_000, millis(host.plugin.cpu));
        plugin.cpu = Duration::from_millis(cpu);
        let memory = host.plugin.memory_bytes as u64;
        let memory = within("memory_bytes", bytes(self.memory_bytes), memory, memory);
        plugin.memory_bytes = memory as usize;
        let response = host.plugin.hostcall_bytes as u64;
        let default = host.plugin.response_bytes as u64;
        let response = within("response_bytes", bytes(self.response_bytes), response, default);
        plugin.response_bytes = response as usize;
        let default = host.plugin.log_bytes as u64;
        let log = within("log_bytes", bytes(self.log_bytes), 16 << 20, default);
        plugin.log_bytes = log as usize;
        if faults.is_empty() { Ok(limits) } else { Err(faults) }
    }
}
