//! `GET /admin/v1/usage`: what each tenant used, by pipeline and model, and by hour if asked.

use std::time::SystemTime;

use gristmill_core::{ErrorCode, Name};
use gristmill_metrics::usage::{Filter, Hour, Key, Row, Rows, UsageError, Use};
use gristmill_state::{ModelNameText, NameText};
use gristmill_transport::{Allowed, Problem};
use http::Method;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::query::{count_in, invalid, parameters};
use super::{Answering, Asked, Resource, name};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;

/// The hours that are summed if the query names no first one.
const HOURS: u64 = 24;

/// The most hours of one answer, because each has a file.
const HOURS_MAX: u64 = 24 * 366;

/// The most rows of an answer, by default and at all.
const LIMIT: usize = 1000;
const LIMIT_MAX: usize = 10_000;

pub(crate) struct Usage;

/// The usage of a time.
#[derive(Serialize, ToSchema)]
#[schema(as = Usage)]
struct UsageDocument {
    /// The first hour, in UTC.
    from: String,
    /// The last hour, which may not be over.
    to: String,
    /// By hour if that was asked for, then by tenant, pipeline and model.
    items: Vec<UsageRow>,
    /// The `after` of the next rows, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// What the requests of a tenant to a pipeline with a model, or to a model itself, used.
#[derive(Serialize, ToSchema)]
struct UsageRow {
    /// If each hour has rows of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    hour: Option<String>,
    #[schema(value_type = NameText)]
    tenant: Name,
    /// The release that made the tenant: a later one of the same name is another one.
    since: u64,
    /// None if the tenant called the model itself.
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pipeline: Option<Name>,
    #[schema(value_type = ModelNameText)]
    model: Name,
    /// Requests that ended.
    requests: u64,
    /// Of these, requests that failed or were abandoned.
    failed: u64,
    /// Rows that the model ran.
    rows: u64,
    /// CPU time of plugin calls.
    plugin_cpu_us: u64,
    /// The share of the time of batches, by rows.
    model_us: u64,
    /// The host's own CPU time: reading requests, checking, writing answers.
    host_cpu_us: u64,
    /// Time in the model's queue.
    queue_us: u64,
    received_bytes: u64,
    sent_bytes: u64,
}

impl UsageRow {
    fn of(row: Row) -> Self {
        let Use {
            requests,
            failed,
            rows,
            plugin_cpu_us,
            model_us,
            host_cpu_us,
            queue_us,
            received_bytes,
            sent_bytes,
        } = row.used;
        Self {
            hour: row.hour.map(|hour| hour.to_string()),
            tenant: row.key.tenant,
            since: row.key.since,
            pipeline: row.key.pipeline,
            model: row.key.model,
            requests,
            failed,
            rows,
            plugin_cpu_us,
            model_us,
            host_cpu_us,
            queue_us,
            received_bytes,
            sent_bytes,
        }
    }
}

/// The part of the usage that a query asks for.
#[derive(Debug, PartialEq)]
struct UsageQuery {
    from: Hour,
    to: Hour,
    by_hour: bool,
    tenant: Option<Name>,
    limit: usize,
    after: Option<String>,
}

impl UsageQuery {
    /// # Errors
    /// The query has another parameter, or one that cannot be understood.
    fn read(query: Option<&str>, now: Hour) -> Result<Self, Problem> {
        let names = ["from", "to", "by", "tenant", "limit", "after"];
        let [from, to, by, tenant, limit, after] = parameters(names, query)?;
        let hour = |what: &str, text: &str| {
            let hour = decoded(text).parse::<Hour>();
            hour.map_err(|error| invalid(format!("{what}: {error}")))
        };
        let to = to.map_or(Ok(now), |to| hour("to", to))?;
        let from = from.map_or(Ok(to.before(HOURS - 1)), |from| hour("from", from))?;
        if from > to {
            return Err(invalid(format!("from is {from}: must not be after to, which is {to}")));
        }
        if from.count_to(to) > HOURS_MAX {
            return Err(invalid(format!(
                "from is {from}: must be at most {HOURS_MAX} hours before to"
            )));
        }
        let by_hour = match by {
            None | Some("total") => false,
            Some("hour") => true,
            Some(other) => return Err(invalid(format!("by is {other:?}: must be total or hour"))),
        };
        Ok(Self {
            from,
            to,
            by_hour,
            tenant: tenant.map(|tenant| name("tenant", &decoded(tenant))).transpose()?,
            limit: limit.map_or(Ok(LIMIT), |limit| count_in("limit", limit, LIMIT_MAX))?,
            after: after.map(decoded),
        })
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// An hour in UTC.
const HOUR: &str = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])$";

impl Usage {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let summary = "Read what each tenant used of this server, by pipeline and model";
        let operation = Operation::get("usage", summary)
            .text_like(
                "from",
                HOUR,
                "The first hour in UTC, such as 2026-11-25T14; a day ago by default",
            )
            .text_like("to", HOUR, "The last hour; the current one by default")
            .choice("by", ["total", "hour"], "`hour` for rows of each hour; `total` by default")
            .name("tenant", "Only of this tenant")
            .number("limit", Some(LIMIT_MAX), "The most rows; 1000 by default")
            .text("after", "The value of `next` in the answer before");
        vec![operation.reads::<UsageDocument>()]
    }
}

impl Resource for Usage {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::See
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let usage_query = UsageQuery::read(received.query, Hour::of(SystemTime::now()))?;
            let UsageQuery { from, to, by_hour, tenant, limit, after } = usage_query;
            let (token_scope, desired) = (received.caller.token_scope(), state.control.desired());
            // A tenant's own people see nothing of an earlier tenant of the same name.
            let is_own = move |key: &Key| {
                let now = desired.tenants.get(&key.tenant);
                token_scope.is_server()
                    || now.is_some_and(|now| now.since == key.since)
                        && token_scope.has_tenant(key.tenant.as_str())
            };
            let is_seen = move |key: &Key| {
                tenant.as_ref().is_none_or(|tenant| *tenant == key.tenant) && is_own(key)
            };
            let store = state.control.usage().clone();
            let filter = Filter { from, to, by_hour, limit, after };
            // Held until the work has ended, also if the caller leaves.
            let turn = state.usage_turns.clone().acquire_owned().await;
            let reading = spawn_blocking(move || {
                let _turn = turn;
                let Rows { rows, next } = store.rows(&filter, is_seen)?;
                let items = rows.into_iter().map(UsageRow::of).collect();
                let (from, to) = (from.to_string(), to.to_string());
                Ok::<_, UsageError>(AdminAnswer::of(&UsageDocument { from, to, items, next }))
            });
            let failed = |error: String| {
                tracing::error!(error, "usage cannot be read");
                Problem::new(ErrorCode::Internal, "usage cannot be read: the log says why")
            };
            let read = reading.await.map_err(|error| failed(error.to_string()))?;
            let answer = read.map_err(|error| failed(error.to_string()))??;
            Ok(answer.unkept())
        })
    }
}
