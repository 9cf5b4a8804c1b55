//! `GET /admin/v1/self`: the token of the call itself, its role, and when it ends.

use std::collections::BTreeSet;

use gristmill_core::Name;
use gristmill_state::{NameText, Role, rfc3339};
use gristmill_transport::Allowed;
use http::Method;
use serde::Serialize;
use utoipa::ToSchema;

use super::query::none;
use super::{Answering, Asked, Resource};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;

pub(crate) struct OwnToken;

/// The token of a call.
#[derive(Serialize, ToSchema)]
#[schema(as = OwnToken)]
struct OwnDocument<'a> {
    #[schema(value_type = NameText)]
    name: &'a str,
    role: Role,
    /// Of a token with the role `deploy`.
    #[schema(value_type = Option<Vec<NameText>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tenants: Option<&'a BTreeSet<Name>>,
    /// When it ends, if it ends.
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

impl OwnToken {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        vec![Operation::get("self", "Read the token of the call itself").reads::<OwnDocument<'_>>()]
    }
}

impl Resource for OwnToken {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::Own
    }

    fn answer<'a>(&'a self, Asked { received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            none(received.query)?;
            let caller = received.caller;
            AdminAnswer::digested(&OwnDocument {
                name: caller.name(),
                role: caller.role,
                tenants: (caller.role == Role::Deploy).then_some(&caller.tenants),
                expires: caller.expires_at_ms.map(rfc3339),
            })
        })
    }
}
