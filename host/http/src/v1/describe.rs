//! `GET /v1/{tenant}`: a tenant's pipelines and the release that serves.

use gristmill_core::Name;
use gristmill_serve::NamedTenant;
use gristmill_snapshot::Pipeline;
use gristmill_transport::body::Answer;
use serde::Serialize;

use crate::answers;

#[derive(Serialize)]
struct TenantDocument<'a> {
    tenant: &'a Name,
    release: u64,
    default_pipeline: Option<&'a Name>,
    pipelines: Vec<PipelineDocument<'a>>,
}

#[derive(Serialize)]
struct PipelineDocument<'a> {
    name: &'a Name,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// The answer with the tenant's pipelines, sorted by name.
pub(super) fn describe(named: NamedTenant<'_>, release: u64) -> Answer {
    let NamedTenant { name, tenant } = named;
    let mut pipelines: Vec<_> = tenant.pipelines.iter().collect();
    pipelines.sort_unstable_by_key(|(name, _)| *name);
    let pipelines = pipelines.into_iter().map(|(name, pipeline)| match pipeline {
        Pipeline::Ready(_) => PipelineDocument { name, state: "ready", reason: None },
        Pipeline::Unavailable(why) => {
            PipelineDocument { name, state: "unavailable", reason: Some(why) }
        }
    });
    answers::json(&TenantDocument {
        tenant: name,
        release,
        default_pipeline: tenant.default_pipeline.as_ref(),
        pipelines: pipelines.collect(),
    })
}
