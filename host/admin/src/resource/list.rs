//! `GET` of the lists: `/admin/v1/tenants`, `/admin/v1/models`, `/admin/v1/tokens`, and a tenant's
//! `plugins`, `assets`, `pipelines` and `keys`. An item is a summary, so that a page is small.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use gristmill_core::{Digest, Name};
use gristmill_state::{
    DigestText, KeyDescription, ModelNameText, NameText, NamedModelText, NamedVersion,
    NamedVersionText, PipelineSpec, ProgramSpec, Role, Serving, Tenant, TenantFile, rfc3339,
};
use gristmill_transport::{Allowed, Problem};
use http::Method;
use serde::Serialize;
use utoipa::ToSchema;

use super::page::{LIMIT_MAX, Page};
use super::{Answering, Asked, Resource, name};
use crate::operation::Operation;
use crate::permission::Permission;

/// A list, with the tenant in the path.
pub(crate) enum List {
    Tenants,
    Models,
    Plugins(String),
    Assets(String),
    Pipelines(String),
    Keys(String),
    Tokens,
}

/// A tenant in a list.
#[derive(Serialize, ToSchema)]
struct TenantItem<'a> {
    #[schema(value_type = NameText)]
    name: &'a Name,
    open: bool,
    weight: u32,
    /// How many keys it has.
    keys: usize,
    /// How many plugins it has.
    plugins: usize,
    /// How many pipelines it has.
    pipelines: usize,
}

/// A model in a list.
#[derive(Serialize, ToSchema)]
struct ModelItem<'a> {
    #[schema(value_type = ModelNameText)]
    name: &'a Name,
    #[schema(value_type = DigestText)]
    digest: Digest,
    /// The release that brought the file.
    version: u64,
    /// Whether it is taken out of service.
    unloaded: bool,
}

/// A plugin or an asset in a list.
#[derive(Serialize, ToSchema)]
struct FileItem<'a> {
    #[schema(value_type = NameText)]
    name: &'a Name,
    #[schema(value_type = DigestText)]
    digest: Digest,
    /// The release that brought the file.
    version: u64,
}

impl<'a> FileItem<'a> {
    fn of(name: &'a Name, file: &'a TenantFile) -> Option<Self> {
        Some(Self { name, digest: file.digest, version: file.version })
    }
}

/// A pipeline in a list.
#[derive(Serialize, ToSchema)]
struct PipelineItem<'a> {
    #[schema(value_type = NameText)]
    name: &'a Name,
    #[schema(value_type = Option<NamedVersionText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pre: Option<&'a NamedVersion>,
    #[schema(value_type = Option<NamedModelText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a NamedVersion>,
    #[schema(value_type = Option<NamedVersionText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    post: Option<&'a NamedVersion>,
    /// In place of `pre`, `model` and `post`.
    #[schema(value_type = Option<NamedVersionText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<&'a NamedVersion>,
    /// The handler's models, by the names that its code has for them.
    #[schema(value_type = Option<BTreeMap<String, NamedModelText>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    models: Option<&'a BTreeMap<Name, NamedVersion>>,
    /// Whether it has a candidate.
    #[schema(value_type = Option<bool>)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    candidate: bool,
}

impl<'a> PipelineItem<'a> {
    fn of(name: &'a Name, pipeline: &'a PipelineSpec) -> Self {
        let candidate = pipeline.candidate.is_some();
        let (pre, model, post, handler, models) = (None, None, None, None, None);
        let none = Self { name, pre, model, post, handler, models, candidate };
        match &pipeline.program {
            ProgramSpec::Pair { pre, model, post } => {
                Self { pre: Some(pre), model: Some(model), post: Some(post), ..none }
            }
            ProgramSpec::Handler { handler, models } => {
                Self { handler: Some(handler), models: Some(models), ..none }
            }
        }
    }
}

/// An admin token in a list.
#[derive(Serialize, ToSchema)]
struct TokenItem<'a> {
    #[schema(value_type = NameText)]
    name: &'a Name,
    /// The release that brought the secret.
    version: u64,
    role: Role,
    /// Of a token with the role `deploy`.
    #[schema(value_type = Option<Vec<NameText>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tenants: Option<&'a BTreeSet<Name>>,
    /// When it ends, if it ends.
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// Whether it has ended.
    expired: bool,
}

impl List {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        vec![
            Operation::get("tenants", "List the tenants").lists::<TenantItem<'_>>(LIMIT_MAX),
            Operation::get("models", "List the models").lists::<ModelItem<'_>>(LIMIT_MAX),
            Operation::get("tokens", "List the admin tokens").lists::<TokenItem<'_>>(LIMIT_MAX),
            Operation::get("tenants/{tenant}/plugins", "List the plugins of a tenant")
                .lists::<FileItem<'_>>(LIMIT_MAX)
                .finds(),
            Operation::get("tenants/{tenant}/assets", "List the assets of a tenant")
                .lists::<FileItem<'_>>(LIMIT_MAX)
                .finds(),
            Operation::get("tenants/{tenant}/pipelines", "List the pipelines of a tenant")
                .lists::<PipelineItem<'_>>(LIMIT_MAX)
                .finds(),
            Operation::get("tenants/{tenant}/keys", "List the API keys of a tenant")
                .lists::<KeyDescription<'_>>(LIMIT_MAX)
                .finds(),
        ]
    }
}

fn tenant_named<'a>(serving: &'a Serving, tenant: &str) -> Result<&'a Tenant, Problem> {
    Ok(serving.tenant(&name("tenant", tenant)?)?)
}

impl Resource for List {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        match self {
            Self::Tenants | Self::Models => Permission::See,
            Self::Plugins(tenant)
            | Self::Assets(tenant)
            | Self::Pipelines(tenant)
            | Self::Keys(tenant) => Permission::SeeTenant(tenant),
            Self::Tokens => Permission::Administer,
        }
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let page = Page::read(received.query)?;
            let serving = state.control.serving();
            let token_scope = received.caller.token_scope();
            match self {
                Self::Tenants => {
                    page.answer(serving.desired.tenants.range(page.range()), |name, tenant| {
                        token_scope.has_tenant(name.as_str()).then(|| TenantItem {
                            name,
                            open: tenant.spec.open,
                            weight: tenant.spec.weight,
                            keys: tenant.spec.keys.len(),
                            plugins: tenant.plugins.len(),
                            pipelines: tenant.pipelines.len(),
                        })
                    })
                }
                Self::Models => {
                    page.answer(serving.desired.models.range(page.range()), |name, model| {
                        let is_seen = token_scope.has_model(&serving.desired, name.as_str());
                        is_seen.then_some(ModelItem {
                            name,
                            digest: model.digest,
                            version: model.version,
                            unloaded: model.unloaded,
                        })
                    })
                }
                Self::Tokens => {
                    page.answer(serving.desired.tokens.range(page.range()), |name, token| {
                        let spec = &token.spec;
                        Some(TokenItem {
                            name,
                            version: token.version,
                            role: spec.role,
                            tenants: (spec.role == Role::Deploy).then_some(&spec.tenants),
                            expires: spec.expires_at_ms.map(rfc3339),
                            expired: spec.has_ended(SystemTime::now()),
                        })
                    })
                }
                Self::Plugins(tenant) => {
                    let entry = tenant_named(&serving, tenant)?;
                    page.answer(entry.plugins.range(page.range()), FileItem::of)
                }
                Self::Assets(tenant) => {
                    let entry = tenant_named(&serving, tenant)?;
                    page.answer(entry.assets.range(page.range()), FileItem::of)
                }
                Self::Pipelines(tenant) => {
                    let entry = tenant_named(&serving, tenant)?;
                    page.answer(entry.pipelines.range(page.range()), |name, pipeline| {
                        Some(PipelineItem::of(name, pipeline))
                    })
                }
                Self::Keys(tenant) => {
                    let entry = tenant_named(&serving, tenant)?;
                    page.answer(entry.key_versions.range(page.range()), |name, version| {
                        Some(KeyDescription { name, version: *version })
                    })
                }
            }
        })
    }
}
