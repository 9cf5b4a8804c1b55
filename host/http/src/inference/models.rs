//! Descriptions of the server and its models: metadata, statistics, the index.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use gristmill_batch::{Counters, Times};
use gristmill_core::{Dtype, TensorInfo};
use gristmill_metrics::Totals;
use gristmill_oip::grpc::proto;
use gristmill_oip::grpc::proto::model_metadata_response::TensorMetadata;
use gristmill_oip::grpc::proto::repository_index_response::ModelIndex;
use gristmill_serve::{Caller, LoadedModel, ModelOrPipeline, NotFound, Target};
use gristmill_snapshot::{Certified, Route, ServedModel, Snapshot};

/// A pipeline's only input.
pub(crate) const REQUEST: &str = "REQUEST";
/// A pipeline's only output.
pub(crate) const RESPONSE: &str = "RESPONSE";

/// The protocol's extensions that are served.
const EXTENSIONS: [&str; 7] = [
    "binary_tensor_data",
    "classification",
    "model_configuration",
    "model_repository",
    "parameters",
    "schedule_policy",
    "statistics",
];

/// The metadata of the server.
pub(crate) fn server() -> proto::ServerMetadataResponse {
    proto::ServerMetadataResponse {
        name: "gristmill".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        extensions: EXTENSIONS.map(str::to_owned).to_vec(),
    }
}

/// A model's inputs and outputs, and its versions that are loaded. The rows are the first dimension
/// of their shapes.
pub(crate) fn metadata(
    visible: ModelOrPipeline<'_>,
    target: &Target<'_>,
) -> proto::ModelMetadataResponse {
    let texts = |name: &str| TensorMetadata {
        name: name.into(),
        datatype: Dtype::String.as_str().into(),
        shape: vec![1],
    };
    let (inputs, outputs) = match target {
        Target::Model(LoadedModel { served, .. }) => {
            let info = served.lane.info();
            let inputs = info.inputs.iter().map(|input| TensorMetadata {
                shape: not_scalar(input.signed_dims()),
                ..tensor(input)
            });
            (inputs.collect(), info.outputs.iter().map(tensor).collect())
        }
        Target::Pipeline { route, .. } => match &route.signature {
            None => (vec![texts(REQUEST)], vec![texts(RESPONSE)]),
            Some(signature) => (
                signature.inputs().into_iter().map(tensor).collect(),
                signature.outputs.iter().map(|output| tensor(&output.info)).collect(),
            ),
        },
    };
    let mut versions: Vec<_> = visible.loaded_versions().collect();
    versions.sort_unstable();
    proto::ModelMetadataResponse {
        name: visible.name(),
        versions: versions.iter().map(u64::to_string).collect(),
        platform: platform(target).into(),
        inputs,
        outputs,
        properties: match target {
            Target::Model(LoadedModel { served, .. }) => properties(served),
            Target::Pipeline { .. } => BTreeMap::new(),
        },
    }
}

/// Whether requests share batches, and why.
fn properties(served: &ServedModel) -> BTreeMap<String, String> {
    let lane = &served.lane;
    let batching = match (lane.forms_batches(), lane.batches_ended()) {
        (true, _) if lane.config().rows_are_declared => "declared".to_owned(),
        (true, _) => "proven".to_owned(),
        (false, Some(why)) => format!("ended: {why}"),
        (false, None) => "off".to_owned(),
    };
    let certificates = served.certificates.iter().map(|Certified { provider, certificate }| {
        (format!("rows on {}", provider.as_str()), certificate.to_string())
    });
    certificates.chain([("batching".to_owned(), batching)]).collect()
}

/// The dimensions of an input, where a scalar is shown as one element: clients send it so.
pub(super) fn not_scalar(dims: Vec<i64>) -> Vec<i64> {
    if dims.is_empty() { vec![1] } else { dims }
}

fn tensor(info: &TensorInfo) -> TensorMetadata {
    TensorMetadata {
        name: info.name.to_string(),
        datatype: info.dtype.as_str().into(),
        shape: info.signed_dims(),
    }
}

/// The descriptions of a pipeline's inputs.
pub(crate) fn pipeline_inputs(route: &Route) -> Vec<TensorInfo> {
    match &route.signature {
        Some(signature) => signature.inputs().into_iter().cloned().collect(),
        None => {
            vec![TensorInfo { name: REQUEST.into(), dtype: Dtype::String, dims: vec![Some(1)] }]
        }
    }
}

fn is_on_onnxruntime(served: &ServedModel) -> bool {
    served.providers.first().is_some_and(|provider| provider.kind.is_onnxruntime())
}

/// The model's platform, by Triton's name if Triton knows it.
pub(super) fn platform(target: &Target<'_>) -> &'static str {
    match target {
        Target::Model(LoadedModel { served, .. }) if is_on_onnxruntime(served) => {
            "onnxruntime_onnx"
        }
        Target::Model(LoadedModel { served, .. }) => served.lane.info().backend,
        Target::Pipeline { .. } => "gristmill_pipeline",
    }
}

/// The statistics of every loaded version of every model that the caller may see.
pub(crate) fn all_statistics(
    caller: Caller<'_>,
    snapshot: &Snapshot,
) -> proto::ModelStatisticsResponse {
    let visible = caller.models(snapshot).into_iter().flat_map(ModelOrPipeline::versions);
    let served = visible.filter_map(|model| Some((model, model.served().ok()?)));
    let all = served.map(|(model, target)| statistics(caller, model, &target));
    proto::ModelStatisticsResponse { model_stats: all.collect() }
}

/// The statistics of a model since it was loaded, or of a pipeline since the server started. A
/// tenant sees those of its own requests only.
pub(crate) fn statistics(
    caller: Caller<'_>,
    visible: ModelOrPipeline<'_>,
    target: &Target<'_>,
) -> proto::ModelStatistics {
    let base = proto::ModelStatistics {
        name: visible.name(),
        version: visible.version().to_string(),
        ..Default::default()
    };
    match target {
        Target::Model(LoadedModel { served, .. }) => {
            let mut all = served.lane.statistics();
            match caller {
                Caller::Tenant(own_tenant) => {
                    of_model(base, &all.tenants.remove(own_tenant.name).unwrap_or_default())
                }
                Caller::Operator(_) => of_model(base, &all.total),
            }
        }
        Target::Pipeline { route, .. } => of_pipeline(base, &route.figures.totals()),
    }
}

fn of_model(base: proto::ModelStatistics, done: &Counters) -> proto::ModelStatistics {
    let batch_stats = done.batches.iter().map(|(rows, batches)| {
        let Times { input, run, output } = batches.times;
        proto::InferBatchStatistics {
            batch_size: *rows as u64,
            compute_input: duration(batches.count, input),
            compute_infer: duration(batches.count, run),
            compute_output: duration(batches.count, output),
        }
    });
    proto::ModelStatistics {
        last_inference: millis(done.last_run),
        inference_count: done.rows,
        execution_count: done.batch_count(),
        inference_stats: Some(proto::InferStatistics {
            success: duration(done.success, done.success_time),
            fail: duration(done.fail, done.fail_time),
            queue: duration(done.success, done.queue),
            compute_input: duration(done.success, done.compute.input),
            compute_infer: duration(done.success, done.compute.run),
            compute_output: duration(done.success, done.compute.output),
            cache_hit: duration(0, Duration::ZERO),
            cache_miss: duration(0, Duration::ZERO),
        }),
        batch_stats: batch_stats.collect(),
        ..base
    }
}

/// The statistics of a pipeline: its input time is the preprocessor's, its output time the
/// postprocessor's.
fn of_pipeline(base: proto::ModelStatistics, done: &Totals) -> proto::ModelStatistics {
    proto::ModelStatistics {
        last_inference: millis(done.last),
        inference_count: done.success,
        execution_count: done.success,
        inference_stats: Some(proto::InferStatistics {
            success: duration(done.success, done.success_time),
            fail: duration(done.fail, done.fail_time),
            queue: duration(done.success, done.queue),
            compute_input: duration(done.success, done.pre),
            compute_infer: duration(done.success, done.infer),
            compute_output: duration(done.success, done.post),
            cache_hit: duration(0, Duration::ZERO),
            cache_miss: duration(0, Duration::ZERO),
        }),
        ..base
    }
}

fn duration(count: u64, time: Duration) -> Option<proto::StatisticDuration> {
    Some(proto::StatisticDuration { count, ns: time.as_nanos() as u64 })
}

fn millis(at: Option<SystemTime>) -> u64 {
    let since = at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Every model that the caller may see.
pub(crate) fn index(
    caller: Caller<'_>,
    snapshot: &Snapshot,
    ready_only: bool,
) -> proto::RepositoryIndexResponse {
    let models = caller.models(snapshot).into_iter();
    let listed = models.flat_map(|model| versions(model, ready_only));
    proto::RepositoryIndexResponse { models: listed.collect() }
}

/// The versions of a model, the newest first. Earlier versions that do not stay loaded are listed,
/// too. With `ready_only`, those that are loaded.
fn versions(visible: ModelOrPipeline<'_>, ready_only: bool) -> Vec<ModelIndex> {
    let name = visible.name();
    let entry = |version: u64, reason: Option<&str>| ModelIndex {
        name: name.clone(),
        version: version.to_string(),
        state: if reason.is_none() { "READY" } else { "UNAVAILABLE" }.into(),
        reason: reason.unwrap_or_default().into(),
    };
    let mut reasons: BTreeMap<u64, Option<String>> = BTreeMap::new();
    if let ModelOrPipeline::Model { state, .. } = visible
        && !ready_only
    {
        let superseded = |version: &u64| (*version, Some("superseded".to_owned()));
        reasons.extend(state.earlier_versions.iter().map(superseded));
    }
    let why = |version: ModelOrPipeline<'_>| match version.served() {
        Ok(_) => None,
        Err(NotFound::NotLoaded { reason, .. }) => Some(reason),
        Err(error) => Some(error.to_string()),
    };
    reasons.extend(visible.versions().map(|version| (version.version(), why(version))));
    let listed = reasons.iter().rev().filter(|(_, reason)| !ready_only || reason.is_none());
    listed.map(|(version, reason)| entry(*version, reason.as_deref())).collect()
}
