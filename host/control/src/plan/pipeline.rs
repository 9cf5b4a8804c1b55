//! Finding the faults of a pipeline document. Pure.

use std::collections::BTreeMap;

use gristmill_core::{Name, PipelineLimits};

use crate::error::ControlError;
use crate::fault::Subject;
use crate::plan::fit::Wanted;
use crate::publish::Serving;
use crate::reach::Reach;
use crate::release::pipeline::PipelineDocument;

/// A pipeline whose document is refused.
pub(crate) struct RefusedPipeline<'a> {
    pub(crate) tenant: &'a Name,
    pub(crate) pipeline: &'a Name,
    pub(crate) document: PipelineDocument,
}

/// All faults of a pipeline: those of its document, names of things that do not exist, and things
/// that do not fit it. A model beyond the author's `reach` does not exist.
pub(crate) fn pipeline_fault(
    serving: &Serving,
    reach: &Reach,
    host: &PipelineLimits,
    refused: RefusedPipeline<'_>,
) -> ControlError {
    let RefusedPipeline { tenant, pipeline, document } = refused;
    let PipelineDocument { pre, model, post, faults, limits, priority, candidate, .. } = document;
    let memory_bytes = limits.memory_bytes.unwrap_or(host.plugin.memory_bytes);
    let memory_bytes = (!faults.has("limits.memory_bytes")).then_some(memory_bytes);
    let wanted = Wanted {
        pre: pre.as_ref(),
        model: model.as_ref(),
        post: post.as_ref(),
        priority,
        memory_bytes,
    };
    let none = BTreeMap::new();
    let Serving { snapshot, desired, .. } = serving;
    let own = snapshot.tenants.get(tenant).map_or(&none, |tenant| &tenant.plugins);
    let mut faults = faults.into_texts();
    let model = |name: &Name| {
        let model = snapshot.models.get(name);
        model.filter(|_| reach.has_model(desired, name.as_str()))
    };
    faults.extend(wanted.faults(own, model));
    if let Some(candidate) = candidate {
        let wanted = Wanted {
            pre: candidate.pre.as_ref(),
            model: candidate.model.as_ref(),
            post: candidate.post.as_ref(),
            priority,
            memory_bytes,
        };
        let own = wanted.faults(own, model).into_iter();
        faults.extend(own.map(|fault| format!("candidate: {fault}")));
    }
    let (tenant, pipeline) = (tenant.clone(), pipeline.clone());
    ControlError::refused(Subject::Pipeline { tenant, pipeline }, &faults)
}
