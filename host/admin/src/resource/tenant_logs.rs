//! `GET /admin/v1/tenants/{tenant}/logs`: the last lines of all plugins of a tenant, in the order
//! in which they came. `?after=` follows them.

use gristmill_core::Name;
use gristmill_sandbox::KEPT_LINES_MAX;
use gristmill_state::StateError;
use gristmill_transport::Allowed;
use http::Method;
use serde::Serialize;
use utoipa::ToSchema;

use super::plugin_logs::LineDocument;
use super::query::{count_in, invalid, parameters};
use super::{Answering, Asked, Resource, name};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;

/// The most lines of an answer.
const LIMIT_MAX: usize = 4 * KEPT_LINES_MAX;

pub(crate) struct TenantLogs(String);

/// Lines of a tenant's plugins, the newest at the end.
#[derive(Serialize, ToSchema)]
#[schema(as = TenantLogs)]
struct LogsDocument<'a> {
    lines: Vec<LineDocument<'a>>,
    /// The `after` of the lines that come next.
    next: u64,
}

impl TenantLogs {
    pub(crate) fn new(tenant: &str) -> Self {
        Self(tenant.into())
    }

    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let summary = "Read the last lines of all plugins of a tenant, or those that came since";
        vec![
            Operation::get("tenants/{tenant}/logs", summary)
                .position(
                    "after",
                    "The value of `next` in the answer before; without it, the last lines",
                )
                .number("limit", Some(LIMIT_MAX), "The most lines of the answer")
                .name("plugin", "Only of this plugin")
                .answers::<LogsDocument<'_>>()
                .finds(),
        ]
    }
}

impl Resource for TenantLogs {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::SeeTenant(&self.0)
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let [after, limit, plugin] = parameters(["after", "limit", "plugin"], received.query)?;
            let number = |text: &str| {
                // The largest number that all clients have.
                let number = text.parse().ok().filter(|number: &u64| *number <= i64::MAX as u64);
                let must = "must be a whole number, the value of next in an answer";
                number.ok_or_else(|| invalid(format!("after is {text:?}: {must}")))
            };
            let after = after.map(number).transpose()?;
            let limit = limit.map_or(Ok(LIMIT_MAX), |limit| count_in("limit", limit, LIMIT_MAX))?;
            let plugin: Option<Name> = plugin.map(|plugin| name("plugin", plugin)).transpose()?;
            let tenant = name("tenant", &self.0)?;
            let serving = state.control.serving();
            let entry = serving.snapshot.tenants.get(&tenant);
            let entry = entry.ok_or_else(|| StateError::not_found("tenant", &tenant))?;
            let (lines, next) = entry.quota.lines.after(after, plugin.as_ref(), limit);
            let lines = lines.iter().map(|line| LineDocument::of(line)).collect();
            Ok(AdminAnswer::of(&LogsDocument { lines, next })?.unkept())
        })
    }
}
