//! Finding what a request is for: the tenant, if the caller may know of it, and the pipeline.

use bytes::Bytes;
use gristmill_core::{Digest, ErrorCode, Name};
use gristmill_snapshot::{Access, Pipeline, Route, Snapshot, Tenant, same_key};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use serde_json::json;

use crate::body::{Answer, ResponseBody};
use crate::credentials;
use crate::problem::Problem;

/// A tenant that the server has chosen itself.
pub(crate) fn find_tenant<'a>(
    snapshot: &'a Snapshot,
    name: &str,
) -> Result<(&'a Name, &'a Tenant), Problem> {
    let missing = || Problem::new(ErrorCode::TenantNotFound, format!("no tenant {name:?}"));
    let found = snapshot.tenants.get_key_value(name);
    found.map(|(name, tenant)| (name, &**tenant)).ok_or_else(missing)
}

/// The tenant of this name, if it is open or this bearer token is one of its keys. Otherwise the
/// answer is the same, and takes the same time, whether there is such a tenant or not.
pub(crate) fn admitted<'a>(
    snapshot: &'a Snapshot,
    name: &str,
    token: Option<&str>,
) -> Result<(&'a Name, &'a Tenant), Problem> {
    let found = snapshot.tenants.get_key_value(name).map(|(name, tenant)| (name, &**tenant));
    let opens = match (found, token.map(credentials::digest)) {
        (Some((_, Tenant { access: Access::Open, .. })), _) => true,
        (_, None) => false,
        (Some((_, tenant)), Some(digest)) => tenant.access.admits(digest),
        (None, Some(digest)) => same_key(Digest::from_bytes([0; 32]), digest),
    };
    found.filter(|_| opens).ok_or_else(|| {
        let detail =
            format!("an API key of tenant {name:?} is needed: Authorization: Bearer <key>");
        Problem::new(ErrorCode::Unauthenticated, detail)
    })
}

/// The pipeline of this name, or else the tenant's default.
pub(super) fn find_route<'a>(
    tenant: &'a Tenant,
    name: &str,
    pipeline: Option<&str>,
) -> Result<&'a Route, Problem> {
    let not_found = |detail| Problem::new(ErrorCode::PipelineNotFound, detail);
    let known = || {
        let mut names: Vec<_> = tenant.pipelines.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        names.join(", ")
    };
    let pipeline = match (pipeline, &tenant.default_pipeline) {
        (Some(pipeline), _) => pipeline,
        (None, Some(default)) => default.as_str(),
        (None, None) if tenant.pipelines.is_empty() => {
            return Err(not_found(format!("tenant {name:?} has no pipeline")));
        }
        (None, None) => {
            let detail =
                format!("tenant {name:?} has no default pipeline: name one of {}", known());
            return Err(not_found(detail));
        }
    };
    match tenant.pipelines.get(pipeline) {
        Some(Pipeline::Ready(route)) => Ok(route),
        Some(Pipeline::Unavailable(why)) => {
            let detail = format!("pipeline {pipeline:?} is not available: {why}");
            Err(Problem::new(ErrorCode::Unavailable, detail))
        }
        None => Err(not_found(format!(
            "tenant {name:?} has no pipeline {pipeline:?}; it has: {}",
            known()
        ))),
    }
}

/// `GET /v1/{tenant}`.
pub(super) fn describe(name: &str, tenant: &Tenant, release: u64) -> Answer {
    let mut pipelines: Vec<_> = tenant.pipelines.iter().collect();
    pipelines.sort_unstable_by_key(|(name, _)| *name);
    let pipelines = pipelines.into_iter().map(|(name, pipeline)| match pipeline {
        Pipeline::Ready(_) => json!({ "name": name, "state": "ready" }),
        Pipeline::Unavailable(why) => {
            json!({ "name": name, "state": "unavailable", "reason": why })
        }
    });
    let document = json!({
        "tenant": name,
        "release": release,
        "default_pipeline": tenant.default_pipeline,
        "pipelines": pipelines.collect::<Vec<_>>(),
    });
    let mut answer = Response::new(ResponseBody::from(Bytes::from(document.to_string())));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
