//! `GET /admin/v1/status`: every tenant, plugin, pipeline and model, and the figures of the lanes.
//!
//! A caller who reaches a few tenants sees these, and what the models that they use are. The
//! figures of the server and of the lanes, which all tenants share, are not shown then.

mod model;
mod padding;
mod server;
mod tenant;

use std::collections::BTreeMap;

use gristmill_core::Name;
use gristmill_state::TokenScope;
use gristmill_transport::Allowed;
use http::Method;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

pub(super) use self::model::ServedDocument;
use self::model::{ConfigDocument, ModelDocument};
use self::server::{JobDocument, LogDocument, ProcessDocument, RequestsSummary, ServerDocument};
use self::tenant::TenantDocument;
use super::query::none;
use super::replicas::{self, ReplicasDocument};
use super::{Answering, Asked, Resource};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;
use crate::schemas::maybe;
use crate::state::AdminState;

pub(crate) struct Status;

impl Resource for Status {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::See
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            none(received.query)?;
            let token_scope = received.caller.token_scope();
            Self::with_document(state, &token_scope, |document| AdminAnswer::of(document)).await
        })
    }
}

impl Status {
    /// The document that callers with this scope see.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub(super) async fn read(
        state: &AdminState,
        token_scope: &TokenScope,
    ) -> Result<Value, serde_json::Error> {
        Self::with_document(state, token_scope, |document| serde_json::to_value(document)).await
    }

    async fn with_document<T>(
        state: &AdminState,
        token_scope: &TokenScope,
        write: impl FnOnce(&StatusDocument<'_>) -> T,
    ) -> T {
        let replicas = match token_scope.is_server() {
            true => replicas::of(state).await,
            false => None,
        };
        let serving = state.control.serving();
        let (snapshot, desired) = (&serving.snapshot, &serving.desired);
        let is_seen = |name: &Name| token_scope.has_model(desired, name.as_str());
        let models = snapshot.models.iter().filter(|(name, _)| is_seen(name));
        let models = models.map(|(name, model)| {
            let document = match token_scope.is_server() {
                true => {
                    let config = desired.models.get(name).map(|model| &model.config);
                    ModelDocument::of(model, config)
                }
                false => ModelDocument::described(model, token_scope),
            };
            (name, document)
        });
        let tenants =
            snapshot.tenants.iter().filter(|(name, _)| token_scope.has_tenant(name.as_str()));
        let jobs = state.control.jobs();
        let (runtimes, reloaded_plugins) = state.control.runtimes();
        let observer = state.scrapes.observer();
        write(&StatusDocument {
            version: env!("CARGO_PKG_VERSION"),
            release: snapshot.release,
            server: token_scope.is_server().then(|| ServerDocument {
                process: ProcessDocument::of(&observer.process()),
                memory: observer.memory().into(),
                requests: RequestsSummary::of(&observer.requests()),
                backends: state.control.backends(),
                log: LogDocument { dropped_lines: state.log.dropped() },
                tls: state.tls.iter().map(|(plane, tls)| (*plane, tls.report().into())).collect(),
                jobs: jobs.iter().map(JobDocument::of).collect(),
                runtimes: runtimes.into_iter().map(Into::into).collect(),
                reloaded_plugins,
                replicas,
            }),
            models: models.collect(),
            tenants: tenants.map(|(name, tenant)| (name, TenantDocument::of(tenant))).collect(),
        })
    }

    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let mut get = Operation::get("status", "Read what serves, and its figures");
        get.schemas.parts::<ServerDocument<'_>>();
        get.schemas.parts::<ReplicasDocument>();
        get.schemas.parts::<ConfigDocument<'_>>();
        get.schemas.parts::<ServedDocument<'_>>();
        vec![
            get.about("A token of a few tenants sees these, and not the figures of the server.")
                .answers::<StatusDocument<'_>>(),
        ]
    }
}

/// Everything that serves.
#[derive(Serialize, ToSchema)]
#[schema(as = Status)]
struct StatusDocument<'a> {
    /// Of the server.
    version: &'static str,
    /// The number of the release that serves.
    release: u64,
    #[schema(schema_with = maybe::<ServerDocument<'_>>)]
    #[serde(flatten)]
    server: Option<ServerDocument<'a>>,
    /// By name.
    #[schema(value_type = BTreeMap<String, ModelDocument>)]
    models: BTreeMap<&'a Name, ModelDocument<'a>>,
    /// By name.
    #[schema(value_type = BTreeMap<String, TenantDocument>)]
    tenants: BTreeMap<&'a Name, TenantDocument<'a>>,
}
