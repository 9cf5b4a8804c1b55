//! `GET /admin/v1/tenants/{tenant}/plugins/{plugin}/content`,
//! `GET /admin/v1/tenants/{tenant}/assets/{asset}/content` and
//! `GET /admin/v1/models/{model}/content`: the bytes that were uploaded.

use gristmill_core::Digest;
use gristmill_state::Serving;
use gristmill_transport::{Allowed, Problem};
use http::Method;

use super::query::none;
use super::{Answering, Asked, Resource, model_name, name};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;

/// The file of a plugin, an asset or a model, by the names in the path.
pub(crate) enum Content {
    Plugin { tenant: String, plugin: String },
    Asset { tenant: String, asset: String },
    Model(String),
}

impl Content {
    fn digest(&self, serving: &Serving) -> Result<Digest, Problem> {
        match self {
            Self::Plugin { tenant, plugin } => {
                let (tenant, plugin) = (name("tenant", tenant)?, name("plugin", plugin)?);
                Ok(serving.plugin(&tenant, &plugin)?.digest)
            }
            Self::Asset { tenant, asset } => {
                let (tenant, asset) = (name("tenant", tenant)?, name("asset", asset)?);
                Ok(serving.asset(&tenant, &asset)?.digest)
            }
            Self::Model(model) => Ok(serving.model(&model_name(model)?)?.digest),
        }
    }
}

const WASM: &str = "application/wasm";
const BYTES: &str = "application/octet-stream";

impl Content {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        vec![
            Operation::get("tenants/{tenant}/plugins/{plugin}/content", "Download a plugin's file")
                .reads_file(WASM)
                .finds(),
            Operation::get("tenants/{tenant}/assets/{asset}/content", "Download an asset's file")
                .reads_file(BYTES)
                .finds(),
            Operation::get("models/{model}/content", "Download a model's file")
                .reads_file(BYTES)
                .finds(),
        ]
    }
}

impl Resource for Content {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        match self {
            Self::Plugin { tenant, .. } | Self::Asset { tenant, .. } => {
                Permission::SeeTenant(tenant)
            }
            Self::Model(_) => Permission::SeeServer,
        }
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            none(received.query)?;
            let digest = self.digest(&state.control.serving())?;
            let media_type = match self {
                Self::Plugin { .. } => WASM,
                Self::Asset { .. } | Self::Model(_) => BYTES,
            };
            Ok(AdminAnswer::file(state.control.send(digest).await?, media_type))
        })
    }
}
