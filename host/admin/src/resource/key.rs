//! `GET`, `PUT` and `DELETE /admin/v1/tenants/{tenant}/keys/{key}`: one API key of a tenant, which
//! can be replaced without the others. Reading shows its name and its version, never the key.

use gristmill_core::Name;
use gristmill_state::{AskedChange, Change, KeyDescription, StateError, Subject};
use gristmill_transport::{Allowed, Problem};
use http::Method;

use super::query::{CASCADE, none};
use super::tenant_document::{KeyDocument, read_key};
use super::{Answering, Asked, Resource, document, is_read, name};
use crate::answer::{AdminAnswer, Released};
use crate::operation::Operation;
use crate::permission::Permission;

pub(crate) struct Key {
    tenant: String,
    key: String,
}

impl Key {
    pub(crate) fn new(tenant: &str, key: &str) -> Self {
        Self { tenant: tenant.into(), key: key.into() }
    }

    fn names(&self) -> Result<(Name, Name), Problem> {
        Ok((name("tenant", &self.tenant)?, name("key", &self.key)?))
    }
}

impl Key {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        const PATH: &str = "tenants/{tenant}/keys/{key}";
        vec![
            Operation::get(PATH, "Describe an API key").reads::<KeyDescription<'_>>().finds(),
            Operation::put(PATH, "Add an API key, or replace it")
                .takes::<KeyDocument>()
                .changes::<Released>(),
            Operation::delete(PATH, "Delete an API key").flag(CASCADE).changes::<Released>(),
        ]
    }
}

impl Resource for Key {
    fn allowed(&self) -> Allowed {
        Allowed::GetPutDelete
    }

    fn permission(&self, method: &Method) -> Permission<'_> {
        match is_read(method) {
            true => Permission::SeeTenant(&self.tenant),
            false => Permission::ChangeTenant(&self.tenant),
        }
    }

    fn answer<'a>(&'a self, Asked { state, method, received }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            if *method == Method::PUT {
                let (query, options) = (received.query, received.options.clone());
                let caller = received.caller;
                let keys = received.document(&state.limits).await?;
                none(query)?;
                let (tenant, key) = self.names()?;
                let sent = read_key(keys, &**state).map_err(StateError::Invalid)?;
                let change = AskedChange::PutKey { tenant, key, sent };
                state.count_new_keys(caller, std::slice::from_ref(&change))?;
                let published = state.control.change(change, options).await?;
                return AdminAnswer::released(published, None);
            }
            let (tenant, key) = self.names()?;
            if *method == Method::DELETE {
                return document::delete(state, Change::DeleteKey { tenant, key }, received).await;
            }
            document::get(state, &Subject::Key { tenant, key }, &received)
        })
    }
}
