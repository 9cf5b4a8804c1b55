//! `GET /admin/v1/status`: every tenant, plugin, pipeline and model, and the figures of the lanes.
//!
//! A caller who reaches a few tenants sees these, and what the models that they use are. The
//! figures of the server and of the lanes, which all tenants share, are not shown then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use gristmill_batch::LaneStatistics;
use gristmill_control::{JobStatus, Reach};
use gristmill_core::{Digest, Dtype, Name, TensorInfo};
use gristmill_sandbox::Plugin;
use gristmill_snapshot::{
    Access, ModelState, Pipeline, PluginState, ProviderHealth, QuotaLimits, ServedModel, Tenant,
};
use gristmill_transport::{Allowed, TlsReport};
use http::Method;
use serde::{Serialize, Serializer};

use super::Resource;
use super::replicas::{self, ReplicasDocument};
use crate::answer::{Answer, Outcome};
use crate::permission::Permission;
use crate::receive::Received;
use crate::state::State;

pub(crate) struct Status;

#[async_trait]
impl Resource for Status {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::See
    }

    async fn answer(&self, state: &State, _: &Method, received: Received<'_>) -> Outcome {
        let replicas = match received.caller.reach().is_server() {
            true => replicas::of(state).await,
            false => None,
        };
        let serving = state.control.serving();
        let (snapshot, desired) = (&serving.snapshot, &serving.desired);
        let reach = received.caller.reach();
        let is_seen = |name: &Name| reach.has_model(desired, name.as_str());
        let models = snapshot.models.iter().filter(|(name, _)| is_seen(name));
        let models = models.map(|(name, model)| {
            let document = match reach.is_server() {
                true => {
                    let config = desired.models.get(name).map(|model| &model.config);
                    ModelDocument::of(model, config)
                }
                false => ModelDocument::of(model, None).described(&reach),
            };
            (name, document)
        });
        let tenants = snapshot.tenants.iter().filter(|(name, _)| reach.has_tenant(name.as_str()));
        let jobs = state.control.jobs();
        Answer::of(&StatusDocument {
            version: env!("CARGO_PKG_VERSION"),
            release: snapshot.release,
            server: reach.is_server().then(|| ServerDocument {
                backends: state.control.backends(),
                log: LogDocument { dropped_lines: state.log.dropped() },
                tls: state.tls.iter().map(|(plane, tls)| (*plane, tls.report())).collect(),
                jobs: jobs.iter().map(JobDocument::of).collect(),
                replicas,
            }),
            models: models.collect(),
            tenants: tenants.map(|(name, tenant)| (name, TenantDocument::of(tenant))).collect(),
        })
    }
}

#[derive(Serialize)]
struct StatusDocument<'a> {
    version: &'static str,
    release: u64,
    #[serde(flatten)]
    server: Option<ServerDocument<'a>>,
    models: BTreeMap<&'a Name, ModelDocument<'a>>,
    tenants: BTreeMap<&'a Name, TenantDocument<'a>>,
}

#[derive(Serialize)]
struct ServerDocument<'a> {
    backends: Vec<&'static str>,
    log: LogDocument,
    /// Of each plane that has it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tls: BTreeMap<&'static str, TlsReport>,
    jobs: Vec<JobDocument<'a>>,
    /// If the store is shared.
    #[serde(flatten)]
    replicas: Option<ReplicasDocument>,
}

#[derive(Serialize)]
struct LogDocument {
    dropped_lines: u64,
}

/// Work in child processes: the running jobs and the waiting ones.
#[derive(Serialize)]
struct JobDocument<'a> {
    job: &'static str,
    subject: &'a str,
    state: &'static str,
    waited_s: f64,
    running_s: Option<f64>,
}

impl<'a> JobDocument<'a> {
    fn of(job: &'a JobStatus) -> Self {
        Self {
            job: job.job,
            subject: &job.subject,
            state: if job.running.is_some() { "running" } else { "queued" },
            waited_s: job.waited.as_secs_f64(),
            running_s: job.running.map(|running| running.as_secs_f64()),
        }
    }
}

#[derive(Serialize)]
struct ModelDocument<'a> {
    digest: Digest,
    version: u64,
    #[serde(flatten)]
    config: Option<ConfigDocument<'a>>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(flatten)]
    served: Option<ServedDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<LaneDocument>,
    /// By tenant, instead of the statistics.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<BTreeMap<Name, TenantCounts>>,
    /// The earlier versions that stay loaded.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kept_versions: BTreeMap<u64, Self>,
}

impl<'a> ModelDocument<'a> {
    fn of(model: &'a ModelState, config: Option<&'a gristmill_control::ModelConfig>) -> Self {
        let kept = model
            .kept
            .iter()
            .map(|(version, own)| (*version, Self::of_version(*version, own.digest, &own.loaded)));
        Self {
            config: Some(ConfigDocument { config }),
            kept_versions: kept.collect(),
            ..Self::of_version(model.version, model.digest, &model.served)
        }
    }

    fn of_version(version: u64, digest: Digest, served: &'a Result<ServedModel, String>) -> Self {
        let reason = match served {
            Ok(served) => served.lane.refusal().map(|why| why.to_string()),
            Err(why) => Some(why.clone()),
        };
        let served = served.as_ref().ok();
        Self {
            digest,
            version,
            config: None,
            state: if reason.is_none() { "ready" } else { "failed" },
            reason,
            served: served.map(ServedDocument::of),
            statistics: served.map(|served| LaneDocument::of(served.lane.statistics())),
            usage: None,
            kept_versions: BTreeMap::new(),
        }
    }

    /// The same without what shows how others use it, but with the use by the tenants in `reach`.
    fn described(self, reach: &Reach) -> Self {
        let served = self.served.map(|served| ServedDocument { providers: None, ..served });
        let usage = self.statistics.map(|statistics| {
            let own = statistics.tenants.into_iter();
            own.filter(|(tenant, _)| reach.has_tenant(tenant.as_str())).collect()
        });
        let kept_versions = self.kept_versions.into_iter();
        let kept_versions =
            kept_versions.map(|(version, own)| (version, own.described(reach))).collect();
        Self { served, usage, config: None, statistics: None, kept_versions, ..self }
    }
}

#[derive(Serialize)]
struct ConfigDocument<'a> {
    config: Option<&'a gristmill_control::ModelConfig>,
}

/// The provider of a model, and the model's inputs and outputs.
#[derive(Serialize)]
pub(super) struct ServedDocument<'a> {
    backend: &'static str,
    /// The preferred provider.
    provider: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    providers: Option<Vec<ProviderDocument>>,
    warnings: &'a [String],
    dynamic_rows: bool,
    inputs: Vec<TensorDocument<'a>>,
    outputs: Vec<TensorDocument<'a>>,
}

impl<'a> ServedDocument<'a> {
    pub(super) fn of(served: &'a ServedModel) -> Self {
        let ServedModel { lane, providers, warnings } = served;
        let info = lane.info();
        Self {
            backend: info.backend,
            provider: providers.first().map(|provider| provider.name),
            providers: Some(providers.iter().map(ProviderDocument::of).collect()),
            warnings,
            dynamic_rows: info.rows_are_dynamic(),
            inputs: info.inputs.iter().map(TensorDocument::of).collect(),
            outputs: info.outputs.iter().map(TensorDocument::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct ProviderDocument {
    name: &'static str,
    runs: u64,
    faults: u64,
    state: &'static str,
}

impl ProviderDocument {
    fn of(provider: &ProviderHealth) -> Self {
        Self {
            name: provider.name,
            runs: provider.runs(),
            faults: provider.faults(),
            state: if provider.is_open() { "failing" } else { "ready" },
        }
    }
}

#[derive(Serialize)]
struct TensorDocument<'a> {
    name: &'a str,
    #[serde(serialize_with = "datatype")]
    datatype: Dtype,
    /// -1 stands for any size.
    shape: Vec<i64>,
}

fn datatype<S: Serializer>(dtype: &Dtype, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(dtype.as_str())
}

impl<'a> TensorDocument<'a> {
    fn of(info: &'a TensorInfo) -> Self {
        Self { name: &info.name, datatype: info.dtype, shape: info.signed_dims() }
    }
}

#[derive(Serialize)]
struct LaneDocument {
    success: u64,
    fail: u64,
    expired: u64,
    refused: u64,
    running: usize,
    given_up: u64,
    lost: u64,
    refused_early: u64,
    bisections: u64,
    queued_rows: usize,
    rows: u64,
    tenants: BTreeMap<Name, TenantCounts>,
    batches: u64,
    batch_sizes: BTreeMap<usize, u64>,
    mixed_batches: u64,
    recent_mixed_batches: Vec<BTreeMap<Name, usize>>,
    queue_us: u64,
    compute_input_us: u64,
    compute_infer_us: u64,
    compute_output_us: u64,
    service_time_us: Option<ServiceTime>,
}

#[derive(Serialize)]
struct TenantCounts {
    success: u64,
    fail: u64,
    rows: u64,
}

/// The learned service time of a batch, in microseconds.
#[derive(Serialize)]
struct ServiceTime {
    fixed: f64,
    per_row: f64,
}

impl LaneDocument {
    fn of(statistics: LaneStatistics) -> Self {
        let total = &statistics.total;
        let tenants = statistics.tenants.iter().map(|(name, own)| {
            let counts = TenantCounts { success: own.success, fail: own.fail, rows: own.rows };
            (name.clone(), counts)
        });
        let sizes = total.batches.iter().map(|(rows, batches)| (*rows, batches.count));
        let recent = statistics.recent_mixed.iter();
        let recent = recent.map(|batch| batch.rows.clone());
        Self {
            success: total.success,
            fail: total.fail,
            expired: statistics.expired,
            refused: statistics.refused,
            running: statistics.running,
            given_up: statistics.given_up,
            lost: statistics.lost,
            refused_early: statistics.refused_early,
            bisections: statistics.bisections,
            queued_rows: statistics.queued_rows,
            rows: total.rows,
            tenants: tenants.collect(),
            batches: total.batch_count(),
            batch_sizes: sizes.collect(),
            mixed_batches: statistics.mixed_batches,
            recent_mixed_batches: recent.collect(),
            queue_us: total.queue.as_micros() as u64,
            compute_input_us: total.compute.input.as_micros() as u64,
            compute_infer_us: total.compute.run.as_micros() as u64,
            compute_output_us: total.compute.output.as_micros() as u64,
            service_time_us: statistics
                .service_time
                .map(|(fixed, per_row)| ServiceTime { fixed: fixed * 1e6, per_row: per_row * 1e6 }),
        }
    }
}

#[derive(Serialize)]
struct TenantDocument<'a> {
    open: bool,
    models: Vec<&'a Name>,
    bytes_under_way: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<QuotaDocument>,
    default_pipeline: Option<&'a Name>,
    plugins: BTreeMap<&'a Name, PluginDocument<'a>>,
    pipelines: BTreeMap<&'a Name, PipelineDocument<'a>>,
}

impl<'a> TenantDocument<'a> {
    fn of(tenant: &'a Tenant) -> Self {
        let plugins = tenant.plugins.iter();
        let pipelines = tenant.pipelines.iter();
        Self {
            open: tenant.access == Access::Open,
            models: tenant.models.iter().collect(),
            bytes_under_way: tenant.quota.bytes.held(),
            quota: QuotaDocument::of(tenant),
            default_pipeline: tenant.default_pipeline.as_ref(),
            plugins: plugins.map(|(name, plugin)| (name, PluginDocument::of(plugin))).collect(),
            pipelines: pipelines
                .map(|(name, pipeline)| (name, PipelineDocument::of(pipeline)))
                .collect(),
        }
    }
}

/// The use of a tenant's quota.
#[derive(Serialize)]
struct QuotaDocument {
    refused: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_in_flight: Option<usize>,
}

impl QuotaDocument {
    /// None if the tenant has no quota.
    fn of(tenant: &Tenant) -> Option<Self> {
        let Tenant { quota, limits, .. } = tenant;
        (*limits != QuotaLimits::default()).then(|| Self {
            refused: quota.refused.load(Ordering::Relaxed),
            rows_in_flight: limits.rows.map(|_| quota.rows.held()),
        })
    }
}

#[derive(Serialize)]
struct PipelineDocument<'a> {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Whether its clients see why a plugin call failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    debug: bool,
}

impl<'a> PipelineDocument<'a> {
    fn of(pipeline: &'a Pipeline) -> Self {
        match pipeline {
            Pipeline::Ready(route) => Self { state: "ready", reason: None, debug: route.debug },
            Pipeline::Unavailable(why) => {
                Self { state: "unavailable", reason: Some(why), debug: false }
            }
        }
    }
}

#[derive(Serialize)]
struct PluginDocument<'a> {
    digest: Digest,
    version: u64,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    world: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    imports: Option<&'a [String]>,
    /// The earlier versions that stay loaded.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kept_versions: BTreeMap<u64, Self>,
}

impl<'a> PluginDocument<'a> {
    fn of(state: &'a PluginState) -> Self {
        let kept = state
            .kept
            .iter()
            .map(|(version, own)| (*version, Self::of_version(*version, own.digest, &own.loaded)));
        Self {
            kept_versions: kept.collect(),
            ..Self::of_version(state.version, state.digest, &state.plugin)
        }
    }

    fn of_version(version: u64, digest: Digest, plugin: &'a Result<Arc<Plugin>, String>) -> Self {
        let loaded = plugin.as_ref().ok();
        Self {
            digest,
            version,
            state: if loaded.is_some() { "ready" } else { "failed" },
            reason: plugin.as_ref().err().map(String::as_str),
            world: loaded.map(|plugin| plugin.roles().world()),
            imports: loaded.map(|plugin| plugin.imports()),
            kept_versions: BTreeMap::new(),
        }
    }
}
