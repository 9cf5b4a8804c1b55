//! `GET` of the lists: `/admin/v1/tenants`, `/admin/v1/models`, and a tenant's `plugins`,
//! `pipelines` and `keys`. An item is a summary, so that a page is small.

use async_trait::async_trait;
use gristmill_control::{Serving, Tenant};
use gristmill_transport::{Allowed, Problem};
use http::Method;
use serde_json::json;

use super::page::Page;
use super::{Resource, name};
use crate::answer::Outcome;
use crate::receive::Received;
use crate::state::State;

/// A list, with the tenant in the path.
pub(crate) enum List {
    Tenants,
    Models,
    Plugins(String),
    Pipelines(String),
    Keys(String),
}

fn own<'a>(serving: &'a Serving, tenant: &str) -> Result<&'a Tenant, Problem> {
    Ok(serving.tenant(&name("tenant", tenant)?)?)
}

#[async_trait]
impl Resource for List {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    async fn answer(&self, state: &State, _: &Method, received: Received<'_>) -> Outcome {
        let page = Page::read(received.query)?;
        let serving = state.control.serving();
        match self {
            Self::Tenants => page.answer(&serving.desired.tenants, |name, tenant| {
                json!({
                    "name": name,
                    "open": tenant.spec.open,
                    "weight": tenant.spec.weight,
                    "keys": tenant.spec.keys.len(),
                    "plugins": tenant.plugins.len(),
                    "pipelines": tenant.pipelines.len(),
                })
            }),
            Self::Models => page.answer(&serving.desired.models, |name, model| {
                json!({
                    "name": name,
                    "digest": model.digest,
                    "version": model.version,
                    "unloaded": model.unloaded,
                })
            }),
            Self::Plugins(tenant) => {
                let own = own(&serving, tenant)?;
                page.answer(&own.plugins, |name, plugin| {
                    json!({ "name": name, "digest": plugin.digest, "version": plugin.version })
                })
            }
            Self::Pipelines(tenant) => {
                let own = own(&serving, tenant)?;
                page.answer(&own.pipelines, |name, pipeline| {
                    let (pre, model, post) = (&pipeline.pre, &pipeline.model, &pipeline.post);
                    json!({ "name": name, "pre": pre, "model": model, "post": post })
                })
            }
            Self::Keys(tenant) => {
                let own = own(&serving, tenant)?;
                page.answer(
                    &own.key_versions,
                    |name, version| json!({ "name": name, "version": version }),
                )
            }
        }
    }
}
