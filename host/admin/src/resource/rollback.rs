//! `POST /admin/v1/rollback`: back to the state after an earlier release, as a new release.

use async_trait::async_trait;
use gristmill_control::{ControlError, Document, Rollback as Back, Scope};
use gristmill_transport::Allowed;
use http::Method;

use super::Resource;
use super::query::{SKIP_SAMPLES, flags};
use super::releases::{made, no_conditions, read_message};
use crate::answer::Outcome;
use crate::permission::Permission;
use crate::receive::Received;
use crate::state::State;

pub(crate) struct Rollback;

#[async_trait]
impl Resource for Rollback {
    fn allowed(&self) -> Allowed {
        Allowed::Post
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::ChangeNamed
    }

    async fn answer(&self, state: &State, _: &Method, received: Received<'_>) -> Outcome {
        let (query, mut terms) = (received.query, received.terms.clone());
        let keys = received.document(&state.limits).await?;
        let names = ["force", "dry_run", SKIP_SAMPLES];
        let [force, is_dry_run, skips_samples] = flags(names, query)?;
        terms.skips_samples = skips_samples;
        no_conditions(&terms)?;
        let mut document = Document::new(keys);
        let to: Option<u64> = document.whole("to");
        let to = document.require("to", to);
        let scope = match (document.name("tenant"), document.name("model")) {
            (None, None) => Scope::Everything,
            (Some(tenant), None) if terms.reach.is_server() => Scope::Tenant(tenant),
            (Some(tenant), None) => Scope::PartsOf(tenant),
            (None, Some(model)) => Scope::Model(model),
            (Some(_), Some(_)) => {
                document.fault("model", " is given beside tenant: give one of them, or neither");
                Scope::Everything
            }
        };
        let expected_release = document.whole("expected_release");
        read_message(&mut document, &mut terms);
        if to == Some(0) {
            document.fault("to", " is 0: must be the number of a release, from 1 on");
        }
        let faults = document.finish();
        let Some(to) = to.filter(|_| faults.is_empty()) else {
            return Err(ControlError::Invalid(faults.into_texts()).into());
        };
        let back = Back { to, scope, expected_release, force, is_dry_run };
        made(&state.control.roll_back(back, terms).await?, is_dry_run)
    }
}
