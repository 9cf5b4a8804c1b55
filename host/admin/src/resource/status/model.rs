//! A model in the status, and in the answers to changes of it.

use std::collections::BTreeMap;

use gristmill_batch::LaneStatistics;
use gristmill_core::{Digest, Dtype, Name, TensorInfo};
use gristmill_snapshot::{Certificate, Certified, ModelState, ProviderHealth, ServedModel, Sizing};
use gristmill_state::{DigestText, ModelConfig, TokenScope};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::observe::model_bytes;
use crate::resource::status::padding::PaddingDocument;
use crate::schemas::maybe;

/// A model.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelStatus)]
pub(super) struct ModelDocument<'a> {
    #[schema(value_type = DigestText)]
    digest: Digest,
    /// The release that brought the file.
    version: u64,
    #[schema(schema_with = maybe::<ConfigDocument<'_>>)]
    #[serde(flatten)]
    config: Option<ConfigDocument<'a>>,
    /// `ready` or `failed`.
    state: &'static str,
    /// Why it does not serve.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[schema(schema_with = maybe::<ServedDocument<'_>>)]
    #[serde(flatten)]
    served: Option<ServedDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<LaneDocument>,
    /// By tenant, instead of the statistics.
    #[schema(value_type = Option<BTreeMap<String, TenantCounts>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<BTreeMap<Name, TenantCounts>>,
    /// The earlier versions that stay loaded, by their numbers.
    #[schema(value_type = Option<BTreeMap<String, Object>>)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kept_versions: BTreeMap<u64, Self>,
}

impl<'a> ModelDocument<'a> {
    pub(super) fn of(model: &'a ModelState, config: Option<&'a ModelConfig>) -> Self {
        let kept = model.kept.iter().map(|(version, kept)| {
            (*version, Self::of_version(*version, kept.digest, &kept.loaded))
        });
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

    /// The same without what shows how others use it, but with the use by the tenants in
    /// `token_scope`.
    pub(super) fn described(model: &'a ModelState, token_scope: &TokenScope) -> Self {
        Self::of(model, None).without_others(token_scope)
    }

    fn without_others(self, token_scope: &TokenScope) -> Self {
        let served = self.served.map(|served| ServedDocument {
            providers: None,
            memory_bytes: None,
            ..served
        });
        let usage = self.statistics.map(|statistics| {
            let tenants = statistics.tenants.into_iter();
            tenants.filter(|(tenant, _)| token_scope.has_tenant(tenant.as_str())).collect()
        });
        let kept_versions = self.kept_versions.into_iter();
        let kept_versions = kept_versions
            .map(|(version, kept)| (version, kept.without_others(token_scope)))
            .collect();
        Self { served, usage, config: None, statistics: None, kept_versions, ..self }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct ConfigDocument<'a> {
    /// Null if it is not known.
    #[schema(value_type = Option<ModelConfig>)]
    config: Option<&'a ModelConfig>,
}

/// The provider of a model, and the model's inputs and outputs.
#[derive(Serialize, ToSchema)]
pub(in crate::resource) struct ServedDocument<'a> {
    backend: &'static str,
    /// The preferred provider.
    provider: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    providers: Option<Vec<ProviderDocument>>,
    /// The memory of its sessions on the host: what loading them took, and the memory that their
    /// runs keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    #[schema(value_type = Vec<String>)]
    warnings: &'a [String],
    /// Whether its inputs can have any number of rows.
    dynamic_rows: bool,
    batching: BatchingDocument<'a>,
    sizes: SizesDocument<'a>,
    /// The sizes of the batches that it runs: a batch is padded to the next of them. Empty for any
    /// size.
    allowed_batch_sizes: &'a [usize],
    /// How rows of different lengths share batches. Left out if the configuration says nothing of
    /// it.
    #[schema(value_type = Option<PaddingDocument<'_>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    padding: Option<PaddingDocument<'a>>,
    inputs: Vec<TensorDocument<'a>>,
    /// Inputs that have defaults and may be left out.
    #[schema(value_type = Option<Vec<TensorDocument>>)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    optional_inputs: Vec<TensorDocument<'a>>,
    outputs: Vec<TensorDocument<'a>>,
}

impl<'a> ServedDocument<'a> {
    pub(in crate::resource) fn of(served: &'a ServedModel) -> Self {
        let ServedModel { lane, providers, warnings, .. } = served;
        let info = lane.info();
        Self {
            backend: info.backend,
            provider: providers.first().map(|provider| provider.name),
            providers: Some(providers.iter().map(ProviderDocument::of).collect()),
            memory_bytes: Some(model_bytes(served)),
            warnings,
            dynamic_rows: info.has_open_rows(),
            batching: BatchingDocument::of(served),
            sizes: SizesDocument::of(served),
            allowed_batch_sizes: &lane.config().allowed_batch_sizes,
            padding: PaddingDocument::of(served),
            inputs: info.inputs.iter().map(TensorDocument::of).collect(),
            optional_inputs: info.optional.iter().map(TensorDocument::of).collect(),
            outputs: info.outputs.iter().map(TensorDocument::of).collect(),
        }
    }
}

/// The sizes that the configuration sets, or that the server chose.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelSizes)]
struct SizesDocument<'a> {
    instances: usize,
    /// The threads that one run may use inside an operator.
    threads: usize,
    /// The most rows in a batch.
    max_batch_size: usize,
    /// The measurement by which the server chose.
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
}

impl<'a> SizesDocument<'a> {
    fn of(served: &'a ServedModel) -> Self {
        let Sizing { instances, threads, ref reason, .. } = *served.sizes;
        let max_batch_size = served.lane.config().max_batch_size;
        Self { instances, threads, max_batch_size, reason }
    }
}

/// Whether requests share batches, and why.
#[derive(Serialize, ToSchema)]
#[schema(as = BatchingStatus)]
struct BatchingDocument<'a> {
    /// Whether requests share batches now.
    is_on: bool,
    /// Whether the operator states that rows are independent, which is not proven.
    is_declared: bool,
    /// Why requests do not share batches any more, if a run showed that rows influence each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    /// Whether rows were found to be independent, by provider. Empty if that was not asked, or if
    /// the first dimensions of the model's tensors are fixed.
    #[schema(value_type = Vec<CertificateDocument<'_>>)]
    certificates: Vec<CertificateDocument<'a>>,
}

/// Whether rows were found to be independent on a provider.
#[derive(Serialize, ToSchema)]
#[schema(as = RowCertificate)]
struct CertificateDocument<'a> {
    /// `cuda`, `cpu` or `tract`.
    provider: &'static str,
    /// `independent`, `dependent` or `undecided`.
    rows: &'static str,
    /// The largest change of a row by those beside it in the trial, relative to the row's largest
    /// element.
    #[serde(skip_serializing_if = "Option::is_none")]
    influence: Option<f64>,
    /// Runs of the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<u32>,
    /// Why they are not found to be independent.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> BatchingDocument<'a> {
    fn of(ServedModel { lane, certificates, .. }: &'a ServedModel) -> Self {
        Self {
            is_on: lane.forms_batches(),
            is_declared: lane.config().rows_are_declared,
            ended: lane.batches_ended().map(|why| why.to_string()),
            certificates: certificates.iter().map(CertificateDocument::of).collect(),
        }
    }
}

impl<'a> CertificateDocument<'a> {
    fn of(Certified { provider, certificate }: &'a Certified) -> Self {
        let provider = provider.as_str();
        let none = Self { provider, rows: "undecided", influence: None, runs: None, reason: None };
        match certificate {
            Certificate::Independent { influence, runs } => {
                let (influence, runs) = (Some(*influence), Some(*runs));
                Self { rows: "independent", influence, runs, ..none }
            }
            Certificate::Dependent { why } => Self { rows: "dependent", reason: Some(why), ..none },
            Certificate::Undecided { why } | Certificate::Unfinished { why } => {
                Self { reason: Some(why), ..none }
            }
        }
    }
}

/// A provider that can run a model.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderStatus)]
struct ProviderDocument {
    name: &'static str,
    runs: u64,
    faults: u64,
    /// `ready` or `failing`.
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

/// An input or an output of a model.
#[derive(Serialize, ToSchema)]
#[schema(as = TensorDescription)]
struct TensorDocument<'a> {
    name: &'a str,
    /// As the Open Inference Protocol names it, such as `FP32`.
    #[schema(value_type = String)]
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

/// The figures of a model's lane.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelStatistics)]
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
    /// Elements of padded inputs in the batches that ran: those of requests.
    elements: u64,
    /// Those that filled rows up to the length of others.
    padding_elements: u64,
    #[schema(value_type = BTreeMap<String, TenantCounts>)]
    tenants: BTreeMap<Name, TenantCounts>,
    batches: u64,
    /// Batches by their rows.
    #[schema(value_type = BTreeMap<String, u64>)]
    batch_sizes: BTreeMap<usize, u64>,
    /// Batches with rows of several tenants.
    mixed_batches: u64,
    /// The rows of each tenant in the last of them.
    #[schema(value_type = Vec<BTreeMap<String, usize>>)]
    recent_mixed_batches: Vec<BTreeMap<Name, usize>>,
    queue_us: u64,
    compute_input_us: u64,
    compute_infer_us: u64,
    compute_output_us: u64,
    service_time_us: Option<ServiceTime>,
}

/// A tenant's requests to a model.
#[derive(Serialize, ToSchema)]
struct TenantCounts {
    success: u64,
    fail: u64,
    rows: u64,
}

/// The learned service time of a batch, in microseconds.
#[derive(Serialize, ToSchema)]
struct ServiceTime {
    fixed: f64,
    per_row: f64,
}

impl LaneDocument {
    fn of(statistics: LaneStatistics) -> Self {
        let total = &statistics.total;
        let tenants = statistics.tenants.iter().map(|(name, counts)| {
            let counts =
                TenantCounts { success: counts.success, fail: counts.fail, rows: counts.rows };
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
            elements: statistics.elements.real,
            padding_elements: statistics.elements.padding,
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
