//! `GET /admin/v1/requests`: the requests that are under way, with their stage and age.

use std::time::Instant;

use gristmill_core::{Name, Underway};
use gristmill_state::{ModelNameText, NameText};
use gristmill_transport::Allowed;
use http::Method;
use serde::Serialize;
use utoipa::ToSchema;

use super::query::count;
use super::{Answering, Asked, Resource};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;

/// The most requests of an answer.
const LIMIT_MAX: usize = 1000;

pub(crate) struct Requests;

/// The requests that are under way.
#[derive(Serialize, ToSchema)]
#[schema(as = Requests)]
struct RequestsDocument {
    /// How many the caller may see. Not all of them need be in `items`.
    total: usize,
    /// The oldest first.
    items: Vec<RequestDocument>,
}

/// A request that is under way.
#[derive(Serialize, ToSchema)]
#[schema(as = Request)]
struct RequestDocument {
    /// Its id, as in the answer's `x-request-id` and in the log.
    id: String,
    /// None until its caller was admitted and its body read.
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<Name>,
    /// None if it is for a model itself.
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pipeline: Option<Name>,
    #[schema(value_type = Option<ModelNameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Name>,
    /// `auth`, `read`, `pre`, `handle`, `queue`, `infer` or `post`.
    stage: &'static str,
    /// The time since it arrived.
    age_ms: f64,
}

impl RequestDocument {
    fn of(request: Underway, now: Instant) -> Self {
        let Underway { id, arrived, stage, tenant, pipeline, model } = request;
        let age = now.saturating_duration_since(arrived);
        let age_ms = age.as_micros() as f64 / 1e3;
        Self { id, tenant, pipeline, model, stage: stage.name(), age_ms }
    }
}

impl Requests {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let summary = "Read the requests that are under way, the oldest first";
        let operation = Operation::get("requests", summary)
            .about("A token of a few tenants sees the requests of these, once they are admitted.")
            .number("limit", Some(LIMIT_MAX), "The most requests of the answer");
        vec![operation.reads::<RequestsDocument>()]
    }
}

impl Resource for Requests {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::See
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let limit = count("limit", received.query, LIMIT_MAX)?;
            let token_scope = received.caller.token_scope();
            let is_seen = |request: &Underway| {
                let tenant = request.tenant.as_ref();
                token_scope.is_server()
                    || tenant.is_some_and(|tenant| token_scope.has_tenant(tenant.as_str()))
            };
            let mut all = state.scrapes.observer().requests();
            all.retain(is_seen);
            let (total, now) = (all.len(), Instant::now());
            all.truncate(limit);
            let items = all.into_iter().map(|request| RequestDocument::of(request, now)).collect();
            Ok(AdminAnswer::of(&RequestsDocument { total, items })?.unkept())
        })
    }
}
