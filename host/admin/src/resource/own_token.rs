//! `GET /admin/v1/self`: the token of the call itself, its role, and when it ends.

use async_trait::async_trait;
use gristmill_control::{Role, rfc3339};
use gristmill_transport::Allowed;
use http::Method;
use serde_json::json;

use super::Resource;
use super::query::none;
use crate::answer::{Answer, Outcome};
use crate::permission::Permission;
use crate::receive::Received;
use crate::state::State;

pub(crate) struct OwnToken;

#[async_trait]
impl Resource for OwnToken {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::Own
    }

    async fn answer(&self, _: &State, _: &Method, received: Received<'_>) -> Outcome {
        none(received.query)?;
        let caller = received.caller;
        let mut document = json!({ "name": caller.name(), "role": caller.role });
        if caller.role == Role::Deploy {
            document["tenants"] = json!(caller.tenants);
        }
        if let Some(end) = caller.expires_at_ms {
            document["expires"] = rfc3339(end).into();
        }
        Answer::digested(&document)
    }
}
