//! The changes that end the trial of a candidate. Pure.

use gristmill_core::Name;

use crate::desired::Desired;
use crate::error::StateError;
use crate::release::candidate::CandidateSpec;
use crate::release::change::Change;
use crate::release::pipeline::PipelineSpec;

/// The change that puts a pipeline's candidate in its place.
///
/// # Errors
/// There is no such tenant or pipeline, or it has no candidate.
pub(super) fn promote(
    desired: &Desired,
    tenant: &Name,
    pipeline: &Name,
) -> Result<Change, StateError> {
    let before = spec_of(desired, tenant, pipeline)?;
    let spec = before.promoted().ok_or_else(|| none(pipeline))?;
    Ok(Change::PutPipeline {
        tenant: tenant.clone(),
        pipeline: pipeline.clone(),
        spec: spec.into(),
    })
}

/// The change that takes a pipeline's candidate away. With `only`, none if the candidate is another
/// one by now, or if there is none any more.
///
/// # Errors
/// There is no such tenant or pipeline, or it has no candidate.
pub(super) fn abort(
    desired: &Desired,
    tenant: &Name,
    pipeline: &Name,
    only: Option<&CandidateSpec>,
) -> Result<Option<Change>, StateError> {
    let before = match spec_of(desired, tenant, pipeline) {
        Err(_) if only.is_some() => return Ok(None),
        before => before?,
    };
    match (&before.candidate, only) {
        (Some(candidate), Some(only)) if **candidate != *only => return Ok(None),
        (None, Some(_)) => return Ok(None),
        (None, None) => return Err(none(pipeline)),
        (Some(_), _) => {}
    }
    let (tenant, pipeline) = (tenant.clone(), pipeline.clone());
    Ok(Some(Change::PutPipeline { tenant, pipeline, spec: before.without_candidate().into() }))
}

fn spec_of<'a>(
    desired: &'a Desired,
    tenant: &Name,
    pipeline: &Name,
) -> Result<&'a PipelineSpec, StateError> {
    let entry = desired.tenants.get(tenant);
    let entry = entry.ok_or_else(|| StateError::not_found("tenant", tenant))?;
    let spec = entry.pipelines.get(pipeline).map(|spec| &**spec);
    spec.ok_or_else(|| StateError::not_found("pipeline", pipeline))
}

fn none(pipeline: &Name) -> StateError {
    StateError::not_found("candidate of pipeline", pipeline)
}
