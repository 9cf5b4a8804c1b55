//! `GET /admin/v1/tenants/{tenant}/plugins/{plugin}/logs`: the last lines of a plugin, the newest
//! at the end. `?limit=` is the most lines of an answer.

use async_trait::async_trait;
use gristmill_control::ControlError;
use gristmill_sandbox::{KEPT_LINES_MAX, Line};
use gristmill_transport::Allowed;
use http::Method;
use serde::Serialize;

use super::query::count;
use super::{Resource, name};
use crate::answer::{Answer, Outcome};
use crate::permission::Permission;
use crate::receive::Received;
use crate::state::State;

pub(crate) struct PluginLogs {
    tenant: String,
    plugin: String,
}

#[derive(Serialize)]
struct LogsDocument {
    lines: Vec<Line>,
}

impl PluginLogs {
    pub(crate) fn new(tenant: &str, plugin: &str) -> Self {
        Self { tenant: tenant.into(), plugin: plugin.into() }
    }
}

#[async_trait]
impl Resource for PluginLogs {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::SeeTenant(&self.tenant)
    }

    async fn answer(&self, state: &State, _: &Method, received: Received<'_>) -> Outcome {
        let most = count("limit", received.query, KEPT_LINES_MAX)?;
        let (tenant, plugin) = (name("tenant", &self.tenant)?, name("plugin", &self.plugin)?);
        let serving = state.control.serving();
        let own = serving.snapshot.tenants.get(&tenant);
        let own = own.ok_or_else(|| ControlError::not_found("tenant", &tenant))?;
        if !own.plugins.contains_key(&plugin) {
            return Err(ControlError::not_found("plugin", &plugin).into());
        }
        Answer::of(&LogsDocument { lines: own.quota.lines.last(&plugin, most) })
    }
}
