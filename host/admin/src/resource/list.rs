//! `GET` of the lists: `/admin/v1/tenants`, `/admin/v1/models`, `/admin/v1/tokens`, and a tenant's
//! `plugins`, `pipelines` and `keys`. An item is a summary, so that a page is small.

use std::time::SystemTime;

use async_trait::async_trait;
use gristmill_control::{Plugin, Serving, Tenant};
use gristmill_transport::{Allowed, Problem};
use http::Method;
use serde_json::json;

use super::page::Page;
use super::{Resource, name};
use crate::answer::Outcome;
use crate::permission::Permission;
use crate::receive::Received;
use crate::state::State;

/// A list, with the tenant in the path.
pub(crate) enum List {
    Tenants,
    Models,
    Plugins(String),
    Pipelines(String),
    Keys(String),
    Tokens,
}

fn own<'a>(serving: &'a Serving, tenant: &str) -> Result<&'a Tenant, Problem> {
    Ok(serving.tenant(&name("tenant", tenant)?)?)
}

#[async_trait]
impl Resource for List {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        match self {
            Self::Tenants | Self::Models => Permission::See,
            Self::Plugins(tenant) | Self::Pipelines(tenant) | Self::Keys(tenant) => {
                Permission::SeeTenant(tenant)
            }
            Self::Tokens => Permission::Administer,
        }
    }

    async fn answer(&self, state: &State, _: &Method, received: Received<'_>) -> Outcome {
        let page = Page::read(received.query)?;
        let serving = state.control.serving();
        let reach = received.caller.reach();
        match self {
            Self::Tenants => {
                page.answer(serving.desired.tenants.range(page.range()), |name, tenant| {
                    reach.has_tenant(name.as_str()).then(|| {
                        json!({
                            "name": name,
                            "open": tenant.spec.open,
                            "weight": tenant.spec.weight,
                            "keys": tenant.spec.keys.len(),
                            "plugins": tenant.plugins.len(),
                            "pipelines": tenant.pipelines.len(),
                        })
                    })
                })
            }
            Self::Models => {
                page.answer(serving.desired.models.range(page.range()), |name, model| {
                    let is_seen = reach.has_model(&serving.desired, name.as_str());
                    is_seen.then(|| {
                        json!({
                            "name": name,
                            "digest": model.digest,
                            "version": model.version,
                            "unloaded": model.unloaded,
                        })
                    })
                })
            }
            Self::Tokens => {
                page.answer(serving.desired.tokens.range(page.range()), |name, token| {
                    let mut item = token.spec.document();
                    item["name"] = name.as_str().into();
                    item["version"] = token.version.into();
                    item["expired"] = token.spec.has_ended(SystemTime::now()).into();
                    Some(item)
                })
            }
            Self::Plugins(tenant) => {
                let own = own(&serving, tenant)?;
                page.answer(own.plugins.range(page.range()), |name, plugin| {
                    let Plugin { digest, version, .. } = plugin;
                    Some(json!({ "name": name, "digest": digest, "version": version }))
                })
            }
            Self::Pipelines(tenant) => {
                let own = own(&serving, tenant)?;
                page.answer(own.pipelines.range(page.range()), |name, pipeline| {
                    let (pre, model, post) = (&pipeline.pre, &pipeline.model, &pipeline.post);
                    Some(json!({ "name": name, "pre": pre, "model": model, "post": post }))
                })
            }
            Self::Keys(tenant) => {
                let own = own(&serving, tenant)?;
                page.answer(own.key_versions.range(page.range()), |name, version| {
                    Some(json!({ "name": name, "version": version }))
                })
            }
        }
    }
}
