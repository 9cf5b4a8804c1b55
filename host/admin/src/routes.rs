//! The routes of the admin API: one line for each resource, and the list of their operations.

use std::borrow::Cow;

use gristmill_core::ErrorCode;
use gristmill_transport::Problem;
use percent_encoding::percent_decode_str;

use crate::operation::{Operation, PREFIX};
use crate::resource::{
    Asset, Blob, Candidate, CandidateEnd, Captured, Content, End, Events, Key, List, Metrics,
    Model, ModelConfig, OwnToken, Pipeline, Plugin, PluginLogs, Profile, Release, Releases,
    Requests, Resource, Rollback, Rotation, SlowestRequests, Status, Store, StoreValue, Tenant,
    TenantLogs, Token, Trial, Usage,
};

/// The resource at `path`.
///
/// # Errors
/// No resource is at this path, or the path is not UTF-8.
pub(crate) fn resource_at(path: &str) -> Result<Box<dyn Resource>, Problem> {
    let nothing = || Problem::new(ErrorCode::NotFound, "nothing is served at this path");
    // Where programs that read metrics look for them.
    let path = if path == "/metrics" { "/admin/v1/metrics" } else { path };
    let below = path.strip_prefix(PREFIX).ok_or_else(nothing)?;
    let segments: Vec<Cow<'_, str>> = below
        .split('/')
        .map(|part| percent_decode_str(part).decode_utf8())
        .collect::<Result<_, _>>()
        .map_err(|_| Problem::new(ErrorCode::InvalidRequest, "the path is not UTF-8"))?;
    let segments: Vec<&str> = segments.iter().map(|segment| &**segment).collect();
    if segments.contains(&"") {
        return Err(nothing());
    }
    Ok(match segments[..] {
        ["status"] => Box::new(Status),
        ["metrics"] => Box::new(Metrics),
        ["debug", "profile"] => Box::new(Profile),
        ["events"] => Box::new(Events),
        ["requests"] => Box::new(Requests),
        ["requests", "slowest"] => Box::new(SlowestRequests),
        ["usage"] => Box::new(Usage),
        ["self"] => Box::new(OwnToken),
        ["tokens"] => Box::new(List::Tokens),
        ["tokens", token] => Box::new(Token::new(token)),
        ["tokens", token, "rotate"] => Box::new(Rotation::new(token)),
        ["releases"] => Box::new(Releases),
        ["releases", number] => Box::new(Release::new(number)),
        ["blobs", digest] => Box::new(Blob::new(digest)),
        ["rollback"] => Box::new(Rollback),
        ["tenants"] => Box::new(List::Tenants),
        ["tenants", tenant] => Box::new(Tenant::new(tenant)),
        ["tenants", tenant, "logs"] => Box::new(TenantLogs::new(tenant)),
        ["tenants", tenant, "keys"] => Box::new(List::Keys(tenant.into())),
        ["tenants", tenant, "keys", key] => Box::new(Key::new(tenant, key)),
        ["tenants", tenant, "plugins"] => Box::new(List::Plugins(tenant.into())),
        ["tenants", tenant, "plugins", plugin] => Box::new(Plugin::new(tenant, plugin)),
        ["tenants", tenant, "plugins", plugin, "logs"] => Box::new(PluginLogs::new(tenant, plugin)),
        ["tenants", tenant, "plugins", plugin, "content"] => {
            Box::new(Content::Plugin { tenant: tenant.into(), plugin: plugin.into() })
        }
        ["tenants", tenant, "assets"] => Box::new(List::Assets(tenant.into())),
        ["tenants", tenant, "assets", asset] => Box::new(Asset::new(tenant, asset)),
        ["tenants", tenant, "assets", asset, "content"] => {
            Box::new(Content::Asset { tenant: tenant.into(), asset: asset.into() })
        }
        ["tenants", tenant, "pipelines"] => Box::new(List::Pipelines(tenant.into())),
        ["tenants", tenant, "pipelines", pipeline] => Box::new(Pipeline::new(tenant, pipeline)),
        ["tenants", tenant, "pipelines", pipeline, "candidate"] => {
            Box::new(Candidate::new(tenant, pipeline))
        }
        ["tenants", tenant, "pipelines", pipeline, "candidate", "promote"] => {
            Box::new(CandidateEnd::new(tenant, pipeline, End::Promote))
        }
        ["tenants", tenant, "pipelines", pipeline, "candidate", "abort"] => {
            Box::new(CandidateEnd::new(tenant, pipeline, End::Abort))
        }
        ["tenants", tenant, "pipelines", pipeline, "captured"] => {
            Box::new(Captured::new(tenant, pipeline))
        }
        ["tenants", tenant, "pipelines", pipeline, "try"] => Box::new(Trial::new(tenant, pipeline)),
        ["tenants", tenant, "stores", store] => Box::new(Store::new(tenant, store)),
        ["tenants", tenant, "stores", store, "values", store_key] => {
            Box::new(StoreValue::new(tenant, store, store_key))
        }
        ["models"] => Box::new(List::Models),
        ["models", model] => Box::new(Model::new(model)),
        ["models", model, "config"] => Box::new(ModelConfig::new(model)),
        ["models", model, "content"] => Box::new(Content::Model(model.into())),
        _ => return Err(nothing()),
    })
}

/// The operations of all resources.
pub(crate) fn operations() -> Vec<Operation> {
    let all = [
        Status::operations(),
        Metrics::operations(),
        Usage::operations(),
        Events::operations(),
        Requests::operations(),
        SlowestRequests::operations(),
        Profile::operations(),
        OwnToken::operations(),
        Token::operations(),
        Releases::operations(),
        Release::operations(),
        Rollback::operations(),
        Blob::operations(),
        List::operations(),
        Tenant::operations(),
        Key::operations(),
        Plugin::operations(),
        PluginLogs::operations(),
        Asset::operations(),
        TenantLogs::operations(),
        Pipeline::operations(),
        Candidate::operations(),
        CandidateEnd::operations(),
        Captured::operations(),
        Trial::operations(),
        Store::operations(),
        StoreValue::operations(),
        Model::operations(),
        ModelConfig::operations(),
        Content::operations(),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use gristmill_core::ErrorCode;
    use gristmill_transport::Allowed;

    use super::resource_at;

    #[test]
    fn paths_lead_to_resources() {
        for (path, expected) in [
            ("/admin/v1/status", Ok(Allowed::Get)),
            ("/metrics", Ok(Allowed::Get)),
            ("/admin/v1/self", Ok(Allowed::Get)),
            ("/admin/v1/events", Ok(Allowed::Get)),
            ("/admin/v1/requests/slowest", Ok(Allowed::Get)),
            ("/admin/v1/tokens/ci", Ok(Allowed::GetPutDelete)),
            ("/admin/v1/tokens/ci/rotate", Ok(Allowed::Post)),
            ("/admin/v1/releases", Ok(Allowed::GetAndPost)),
            ("/admin/v1/releases/7", Ok(Allowed::Get)),
            ("/admin/v1/rollback", Ok(Allowed::Post)),
            ("/admin/v1/blobs/sha256:0", Ok(Allowed::GetPutPatchDelete)),
            ("/admin/v1/tenants/acme", Ok(Allowed::GetPutDelete)),
            ("/admin/v1/tenants/acme/plugins/p%2Fq", Ok(Allowed::GetPutDelete)),
            ("/admin/v1/tenants/acme/plugins/p/content", Ok(Allowed::Get)),
            ("/admin/v1/tenants/acme/assets", Ok(Allowed::Get)),
            ("/admin/v1/tenants/acme/assets/a", Ok(Allowed::GetPutDelete)),
            ("/admin/v1/tenants/acme/assets/a/content", Ok(Allowed::Get)),
            ("/admin/v1/tenants/acme/pipelines/p/candidate", Ok(Allowed::Get)),
            ("/admin/v1/tenants/acme/pipelines/p/candidate/promote", Ok(Allowed::Post)),
            ("/admin/v1/tenants/acme/pipelines/p/candidate/abort", Ok(Allowed::Post)),
            ("/admin/v1/tenants/acme/pipelines/p/captured", Ok(Allowed::Get)),
            ("/admin/v1/tenants/acme/pipelines/p/try", Ok(Allowed::Post)),
            ("/admin/v1/tenants/acme/keys/ci", Ok(Allowed::GetPutDelete)),
            ("/admin/v1/tenants/acme/stores/s", Ok(Allowed::PostAndDelete)),
            ("/admin/v1/tenants/acme/stores/s/values/a%2Fb", Ok(Allowed::GetPutDelete)),
            ("/admin/v1/tenants", Ok(Allowed::Get)),
            ("/admin/v1/tenants/", Err(ErrorCode::NotFound)),
            ("/admin/v1/tenants/acme/nothing", Err(ErrorCode::NotFound)),
            ("/admin/v1/tenants/acme/plugins/p/logs", Ok(Allowed::Get)),
            ("/admin/v1/models/m/config", Ok(Allowed::GetAndPut)),
            ("/admin/v1/models/m/", Err(ErrorCode::NotFound)),
            ("/admin/v1/tenants//plugins/p", Err(ErrorCode::NotFound)),
            ("/admin/v1/nothing", Err(ErrorCode::NotFound)),
            ("/v1/acme", Err(ErrorCode::NotFound)),
            ("/admin/v1/models/%ff", Err(ErrorCode::InvalidRequest)),
        ] {
            let allowed = resource_at(path).map(|resource| resource.allowed());
            assert_eq!(allowed.map_err(|problem| problem.code), expected, "{path}");
        }
    }
}
