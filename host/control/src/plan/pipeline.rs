//! Finding the faults of a pipeline document. Pure.

use std::collections::BTreeMap;

use gristmill_core::{Name, PipelineLimits};
use gristmill_snapshot::Snapshot;

use crate::error::ControlError;
use crate::fault::Subject;
use crate::plan::fit::Wanted;
use crate::release::pipeline::PipelineDocument;

/// A pipeline whose document is refused.
pub(crate) struct RefusedPipeline<'a> {
    pub(crate) tenant: &'a Name,
    pub(crate) pipeline: &'a Name,
    pub(crate) document: PipelineDocument,
}

/// All faults of a pipeline: those of its document, names of things that do not exist, and things
/// that do not fit it.
pub(crate) fn pipeline_fault(
    serving: &Snapshot,
    host: &PipelineLimits,
    refused: RefusedPipeline<'_>,
) -> ControlError {
    let RefusedPipeline { tenant, pipeline, document } = refused;
    let PipelineDocument { pre, model, post, faults, limits, priority, .. } = document;
    let memory_bytes = limits.memory_bytes.unwrap_or(host.plugin.memory_bytes);
    let wanted = Wanted {
        pre: pre.as_ref(),
        model: model.as_ref(),
        post: post.as_ref(),
        priority,
        memory_bytes: (!faults.has("limits.memory_bytes")).then_some(memory_bytes),
    };
    let none = BTreeMap::new();
    let own = serving.tenants.get(tenant).map_or(&none, |tenant| &tenant.plugins);
    let mut faults = faults.into_texts();
    faults.extend(wanted.faults(own, &serving.models));
    let (tenant, pipeline) = (tenant.clone(), pipeline.clone());
    ControlError::refused(Subject::Pipeline { tenant, pipeline }, &faults)
}
