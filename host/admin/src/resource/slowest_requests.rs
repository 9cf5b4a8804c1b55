//! `GET /admin/v1/requests/slowest`: the slowest requests of each tenant in the last minutes, with
//! their stages and what they cost.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use gristmill_core::{Name, SlowRequest};
use gristmill_state::{ModelNameText, NameText};
use gristmill_transport::Allowed;
use http::Method;
use serde::Serialize;
use utoipa::ToSchema;

use super::query::{count_in, parameters};
use super::receipt::{ReceiptDocument, stages_us};
use super::{Answering, Asked, Resource, name};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;

/// The most requests of an answer.
const LIMIT_MAX: usize = 100;

pub(crate) struct SlowestRequests;

/// Requests that were slow.
#[derive(Serialize, ToSchema)]
#[schema(as = SlowestRequests)]
struct SlowestDocument {
    /// The slowest first. The time of reading their bodies, which is up to clients, does not count.
    items: Vec<SlowDocument>,
}

/// A request that was slow.
#[derive(Serialize, ToSchema)]
#[schema(as = SlowRequest)]
struct SlowDocument {
    /// Its id, as in the answer's `x-request-id` and in the log.
    id: String,
    /// When it ended, in milliseconds since 1970.
    at_ms: u64,
    #[schema(value_type = NameText)]
    tenant: Name,
    /// None if it was for a model itself.
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pipeline: Option<Name>,
    #[schema(value_type = Option<ModelNameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Name>,
    /// `ok`, `abandoned` or the code of an error.
    code: &'static str,
    /// From its arrival until its answer was ready.
    took_us: u64,
    /// The time in each stage that it reached, in microseconds.
    #[schema(value_type = BTreeMap<String, u64>)]
    stages_us: BTreeMap<&'static str, u64>,
    receipt: ReceiptDocument,
}

impl SlowDocument {
    fn of(tenant: Name, request: SlowRequest) -> Self {
        let SlowRequest { id, at, pipeline, model, code, took, stages, charge, .. } = request;
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            id,
            at_ms: since.as_millis() as u64,
            tenant,
            pipeline,
            model,
            code,
            took_us: took.as_micros() as u64,
            stages_us: stages_us(&stages),
            receipt: ReceiptDocument::of(&charge, request.batch_rows, request.batch_tenants),
        }
    }
}

impl SlowestRequests {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let summary = "Read the slowest requests of the last ten minutes, the slowest first";
        let operation = Operation::get("requests/slowest", summary)
            .about("Of each tenant this server keeps 16. A token of a few tenants sees theirs.")
            .number("limit", Some(LIMIT_MAX), "The most requests of the answer")
            .name("tenant", "Only of this tenant");
        vec![operation.reads::<SlowestDocument>()]
    }
}

impl Resource for SlowestRequests {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::See
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let [limit, tenant] = parameters(["limit", "tenant"], received.query)?;
            let limit = limit.map_or(Ok(LIMIT_MAX), |limit| count_in("limit", limit, LIMIT_MAX))?;
            let only = tenant.map(|tenant| name("tenant", tenant)).transpose()?;
            let token_scope = received.caller.token_scope();
            let serving = state.control.serving();
            let mut all = Vec::new();
            for (tenant, entry) in serving.snapshot.tenants.iter() {
                let is_asked = only.as_ref().is_none_or(|only| only == tenant);
                if is_asked && token_scope.has_tenant(tenant.as_str()) {
                    let requests = entry.quota.slowest.all().into_iter();
                    all.extend(requests.map(|request| (tenant, request)));
                }
            }
            all.sort_by_key(|(_, request)| std::cmp::Reverse(request.work()));
            all.truncate(limit);
            let items = all.into_iter();
            let items = items.map(|(tenant, request)| SlowDocument::of(tenant.clone(), request));
            Ok(AdminAnswer::of(&SlowestDocument { items: items.collect() })?.unkept())
        })
    }
}
