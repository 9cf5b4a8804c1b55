//! `PUT` and `DELETE /admin/v1/tenants/{tenant}/plugins/{plugin}`.

use async_trait::async_trait;
use gristmill_control::Change;
use gristmill_core::Name;
use gristmill_transport::{Allowed, Problem};
use http::Method;

use super::query::delete;
use super::{Resource, name};
use crate::answer::{Answer, Outcome};
use crate::receive::Received;
use crate::state::State;

pub(crate) struct Plugin {
    tenant: String,
    plugin: String,
}

impl Plugin {
    pub(crate) fn new(tenant: &str, plugin: &str) -> Self {
        Self { tenant: tenant.into(), plugin: plugin.into() }
    }

    fn names(&self) -> Result<(Name, Name), Problem> {
        Ok((name("tenant", &self.tenant)?, name("plugin", &self.plugin)?))
    }
}

#[async_trait]
impl Resource for Plugin {
    fn allowed(&self) -> Allowed {
        Allowed::PutAndDelete
    }

    async fn answer(&self, state: &State, method: &Method, received: Received<'_>) -> Outcome {
        if *method == Method::DELETE {
            let (tenant, plugin) = self.names()?;
            return delete(state, Change::DeletePlugin { tenant, plugin }, received.query).await;
        }
        let file = received.upload(state).await?;
        let (tenant, plugin) = self.names()?;
        let put = state.control.put_plugin(&tenant, &plugin, file).await;
        let (digest, published) = put?;
        Answer::released(published, Some(digest))
    }
}
