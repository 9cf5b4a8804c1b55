//! `GET /admin/v1/tenants/{tenant}/plugins/{plugin}/logs`: the last lines of a plugin, the newest
//! at the end. `?limit=` is the most lines of an answer.

use gristmill_core::Name;
use gristmill_sandbox::{KEPT_LINES_MAX, Line};
use gristmill_state::{NameText, StateError};
use gristmill_transport::Allowed;
use http::Method;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::query::count;
use super::{Answering, Asked, Resource, name};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;

pub(crate) struct PluginLogs {
    tenant: String,
    plugin: String,
}

/// The last lines of a plugin, the newest at the end.
#[derive(Serialize, ToSchema)]
#[schema(as = PluginLogs)]
struct LogsDocument<'a> {
    lines: Vec<LineDocument<'a>>,
}

/// A line that a plugin logged, or that the host says about one of its calls.
#[derive(Serialize, ToSchema)]
#[schema(as = PluginLine)]
pub(super) struct LineDocument<'a> {
    /// When it was logged.
    #[schema(format = DateTime)]
    time: &'a str,
    /// Such as `info`.
    level: String,
    /// The id of the request.
    request_id: &'a str,
    /// The request's pipeline.
    #[schema(value_type = NameText)]
    pipeline: &'a Name,
    #[schema(value_type = NameText)]
    plugin: &'a Name,
    /// `preprocess` or `postprocess`.
    call: &'static str,
    /// The text, as the plugin gave it. It may have any characters.
    message: &'a str,
    /// The plugin's own fields.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<&'a RawValue>,
}

impl<'a> LineDocument<'a> {
    pub(super) fn of(line: &'a Line) -> Self {
        Self {
            time: &line.time,
            level: line.level.as_str().to_lowercase(),
            request_id: &line.request_id,
            pipeline: &line.pipeline,
            plugin: &line.plugin,
            call: line.call,
            message: &line.message,
            fields: line.fields.as_deref(),
        }
    }
}

impl PluginLogs {
    pub(crate) fn new(tenant: &str, plugin: &str) -> Self {
        Self { tenant: tenant.into(), plugin: plugin.into() }
    }
}

impl PluginLogs {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let path = "tenants/{tenant}/plugins/{plugin}/logs";
        let most = Some(KEPT_LINES_MAX);
        vec![
            Operation::get(path, "Read the last lines of a plugin")
                .number("limit", most, "The most lines of the answer")
                .answers::<LogsDocument<'_>>()
                .finds(),
        ]
    }
}

impl Resource for PluginLogs {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::SeeTenant(&self.tenant)
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let most = count("limit", received.query, KEPT_LINES_MAX)?;
            let (tenant, plugin) = (name("tenant", &self.tenant)?, name("plugin", &self.plugin)?);
            let serving = state.control.serving();
            let entry = serving.snapshot.tenants.get(&tenant);
            let entry = entry.ok_or_else(|| StateError::not_found("tenant", &tenant))?;
            if !entry.plugins.contains_key(&plugin) {
                return Err(StateError::not_found("plugin", &plugin).into());
            }
            let lines = entry.quota.lines.last(&plugin, most);
            AdminAnswer::of(&LogsDocument { lines: lines.iter().map(LineDocument::of).collect() })
        })
    }
}
