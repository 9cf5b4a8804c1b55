//! The configuration of a model, in the terms of the model configuration extension.

use gristmill_batch::{LaneConfig, QueuePolicy, TimeoutAction};
use gristmill_core::{Dtype, TensorInfo};
use gristmill_oip::grpc::proto::model_input::Format as WireFormat;
use gristmill_oip::grpc::proto::model_instance_group::Kind;
use gristmill_oip::grpc::proto::model_queue_policy::TimeoutAction as WireAction;
use gristmill_oip::grpc::{configured, proto};
use gristmill_serve::{LoadedModel, ModelOrPipeline, Target};
use gristmill_snapshot::{Format, NamedOutput, ServedModel, Signature, TensorNotes};

use super::models::{REQUEST, RESPONSE, not_scalar, platform};

/// The batching of a model, in the terms of the model configuration extension.
pub(crate) fn config(visible: ModelOrPipeline<'_>, target: &Target<'_>) -> proto::ModelConfig {
    let policy = Some(proto::ModelTransactionPolicy { decoupled: false });
    let base = proto::ModelConfig {
        name: visible.name(),
        platform: platform(target).into(),
        model_transaction_policy: policy,
        response_cache: Some(proto::ModelResponseCache { enable: false }),
        ..Default::default()
    };
    let data_type = configured(Dtype::String).into();
    match target {
        Target::Model(LoadedModel { served, notes, .. }) => model_config(base, served, notes),
        Target::Pipeline { route, .. } => match &route.signature {
            Some(signature) => pipeline_config(base, signature),
            None => proto::ModelConfig {
                backend: PIPELINE_BACKEND.into(),
                input: vec![proto::ModelInput {
                    name: REQUEST.into(),
                    data_type,
                    dims: vec![1],
                    ..Default::default()
                }],
                output: vec![proto::ModelOutput {
                    name: RESPONSE.into(),
                    data_type,
                    dims: vec![1],
                    ..Default::default()
                }],
                ..base
            },
        },
    }
}

/// The backend of pipelines.
const PIPELINE_BACKEND: &str = "gristmill";

/// The configuration of a pipeline with named inputs and outputs. Their rows are a batch of
/// requests.
fn pipeline_config(base: proto::ModelConfig, signature: &Signature) -> proto::ModelConfig {
    let row = |info: &TensorInfo| info.signed_dims().split_off(1);
    let input = |info: &TensorInfo| proto::ModelInput {
        name: info.name.to_string(),
        data_type: configured(info.dtype).into(),
        dims: row(info),
        ..Default::default()
    };
    let output = |output: &NamedOutput| proto::ModelOutput {
        name: output.info.name.to_string(),
        data_type: configured(output.info.dtype).into(),
        dims: row(&output.info),
        ..Default::default()
    };
    proto::ModelConfig {
        backend: PIPELINE_BACKEND.into(),
        max_batch_size: Signature::ROWS_MAX as i32,
        input: signature.inputs().into_iter().map(input).collect(),
        output: signature.outputs.iter().map(output).collect(),
        ..base
    }
}

fn model_config(
    base: proto::ModelConfig,
    served: &ServedModel,
    notes: &TensorNotes,
) -> proto::ModelConfig {
    let lane = &served.lane;
    let info = lane.info();
    let batches = info.forms_batches;
    // If the model has batches, the shapes of the configuration are those of one row.
    let row = |info: &TensorInfo| info.signed_dims().split_off(usize::from(batches));
    let input = info.inputs.iter().map(|input| proto::ModelInput {
        name: input.name.to_string(),
        data_type: configured(input.dtype).into(),
        format: format_of(input, &row(input), notes).into(),
        dims: not_scalar(row(input)),
        ..Default::default()
    });
    let output = info.outputs.iter().map(|output| proto::ModelOutput {
        name: output.name.to_string(),
        data_type: configured(output.dtype).into(),
        dims: row(output),
        label_filename: label_file(output, &info.outputs, notes),
        ..Default::default()
    });
    let on_gpu = served.providers.first().is_some_and(|provider| provider.kind.is_gpu());
    let kind = if on_gpu { Kind::Gpu } else { Kind::Cpu };
    let max_batch_size = if batches { lane.config().max_batch_size as i32 } else { 0 };
    proto::ModelConfig {
        backend: info.backend.into(),
        max_batch_size,
        input: input.collect(),
        output: output.collect(),
        instance_group: vec![proto::ModelInstanceGroup {
            name: base.name.clone(),
            kind: kind.into(),
            count: lane.instances() as i32,
        }],
        dynamic_batching: batches.then(|| dynamic_batching(lane.config())),
        ..base
    }
}

/// The file of an output's labels, as Triton's clients expect one to be named. Empty if the output
/// has none.
fn label_file(output: &TensorInfo, outputs: &[TensorInfo], notes: &TensorNotes) -> String {
    let is_labelled = |output: &TensorInfo| {
        notes.labels.get(&*output.name).is_some_and(|labels| !labels.is_empty())
    };
    if !is_labelled(output) {
        return String::new();
    }
    let mut others = outputs.iter().filter(|other| other.name != output.name);
    match others.any(is_labelled) {
        false => "labels.txt".into(),
        // With a slash it would be a file of a version.
        true => format!("labels_{}.txt", output.name.replace('/', "_")),
    }
}

/// The most channels of a picture.
const CHANNELS_MAX: i64 = 4;

/// The format of an input whose row has these dimensions: the one in the configuration, or that of
/// a picture which can have its channels in one place only.
fn format_of(input: &TensorInfo, row: &[i64], notes: &TensorNotes) -> WireFormat {
    match notes.formats.get(&*input.name) {
        Some(Format::None) => return WireFormat::None,
        Some(Format::Nhwc) => return WireFormat::Nhwc,
        Some(Format::Nchw) => return WireFormat::Nchw,
        None => {}
    }
    let [first, _, last] = row else { return WireFormat::None };
    match [first, last].map(|size| (1..=CHANNELS_MAX).contains(size)) {
        [true, false] => WireFormat::Nchw,
        [false, true] => WireFormat::Nhwc,
        _ => WireFormat::None,
    }
}

fn dynamic_batching(config: &LaneConfig) -> proto::ModelDynamicBatching {
    let policies = (1..).zip(&config.levels).map(|(level, policy)| (level, queue_policy(policy)));
    proto::ModelDynamicBatching {
        preferred_batch_size: config
            .preferred_batch_sizes
            .iter()
            .map(|size| *size as i32)
            .collect(),
        max_queue_delay_microseconds: config.max_queue_delay.as_micros() as u64,
        preserve_ordering: false,
        priority_levels: config.levels.len() as u64,
        default_priority_level: config.default_level as u64 + 1,
        priority_queue_policy: policies.collect(),
    }
}

fn queue_policy(policy: &QueuePolicy) -> proto::ModelQueuePolicy {
    let action = match policy.timeout_action {
        TimeoutAction::Reject => WireAction::Reject,
        TimeoutAction::Delay => WireAction::Delay,
    };
    proto::ModelQueuePolicy {
        timeout_action: action.into(),
        default_timeout_microseconds: policy
            .timeout
            .map_or(0, |timeout| timeout.as_micros() as u64),
        allow_timeout_override: policy.allow_timeout_override,
        max_queue_size: policy.max_requests.unwrap_or_default() as u32,
    }
}
