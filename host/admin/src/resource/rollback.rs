//! `POST /admin/v1/rollback`: back to the state after an earlier release, as a new release.

use gristmill_control::Rollback as Back;
use gristmill_core::Name;
use gristmill_state::{Document, ModelNameText, NameText, Scope, StateError};
use gristmill_transport::Allowed;
use http::Method;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::query::{DRY_RUN, FORCE, SKIP_SAMPLES, flags};
use super::releases::{Made, made, no_conditions, read_message};
use super::{Answering, Asked, Resource};
use crate::operation::Operation;
use crate::permission::Permission;

pub(crate) struct Rollback;

/// Going back to the state after an earlier release: all of it, or that of one tenant or model.
#[derive(ToSchema)]
#[schema(as = Rollback)]
struct AskedRollback {
    /// The number of that release.
    #[schema(minimum = 1)]
    to: u64,
    /// Only this tenant goes back.
    #[schema(value_type = Option<NameText>)]
    tenant: Option<Name>,
    /// Only this model goes back. It is not given beside `tenant`.
    #[schema(value_type = Option<ModelNameText>)]
    model: Option<Name>,
    /// The release that must serve now.
    expected_release: Option<u64>,
    /// Why, for the history of releases.
    #[schema(max_length = 1000, pattern = r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f]*$")]
    message: Option<String>,
}

impl AskedRollback {
    /// # Errors
    /// All faults of the document.
    fn read(keys: Map<String, Value>) -> Result<Self, StateError> {
        let mut document = Document::new(keys);
        let to: Option<u64> = document.whole("to");
        let to = document.require("to", to);
        let (tenant, model) = (document.name("tenant"), document.model_name("model"));
        if tenant.is_some() && model.is_some() {
            document.fault("model", " is given beside tenant: give one of them, or neither");
        }
        let expected_release = document.whole("expected_release");
        let message = read_message(&mut document);
        if to == Some(0) {
            document.fault("to", " is 0: must be the number of a release, from 1 on");
        }
        let faults = document.finish();
        match to.filter(|_| faults.is_empty()) {
            Some(to) => Ok(Self { to, tenant, model, expected_release, message }),
            None => Err(StateError::Invalid(faults)),
        }
    }
}

impl Rollback {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        vec![
            Operation::post("rollback", "Go back to the state after an earlier release")
                .about("It is a new release. API keys and tokens stay as they are.")
                .takes::<AskedRollback>()
                .flag(FORCE)
                .flag(DRY_RUN)
                .flag(SKIP_SAMPLES)
                .releases::<Made>()
                .finds(),
        ]
    }
}

impl Resource for Rollback {
    fn allowed(&self) -> Allowed {
        Allowed::Post
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::ChangeNamed
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let (query, mut options) = (received.query, received.options.clone());
            let keys = received.document(&state.limits).await?;
            let [force, is_dry_run, skips_samples] = flags([FORCE, DRY_RUN, SKIP_SAMPLES], query)?;
            options.skips_samples = skips_samples;
            no_conditions(&options)?;
            let AskedRollback { to, tenant, model, expected_release, message } =
                AskedRollback::read(keys)?;
            options.note.message = message.or(options.note.message);
            let scope = match (tenant, model) {
                (Some(tenant), _) if options.token_scope.is_server() => Scope::Tenant(tenant),
                (Some(tenant), _) => Scope::PartsOf(tenant),
                (None, Some(model)) => Scope::Model(model),
                (None, None) => Scope::Everything,
            };
            let back = Back { to, scope, expected_release, force, is_dry_run };
            made(state.control.roll_back(back, options).await?, is_dry_run)
        })
    }
}
