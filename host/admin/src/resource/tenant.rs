//! `GET`, `PUT` and `DELETE /admin/v1/tenants/{tenant}`.

use gristmill_state::{Change, Subject, TenantDocument};
use gristmill_transport::Allowed;
use http::Method;

use super::query::{CASCADE, none};
use super::{Answering, Asked, Resource, document, is_read, name, tenant_document};
use crate::answer::{AdminAnswer, Released};
use crate::operation::Operation;
use crate::permission::Permission;

pub(crate) struct Tenant(String);

impl Tenant {
    pub(crate) fn new(tenant: &str) -> Self {
        Self(tenant.into())
    }
}

impl Tenant {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        const PATH: &str = "tenants/{tenant}";
        vec![
            Operation::get(PATH, "Read a tenant").reads::<TenantDocument>().finds(),
            Operation::put(PATH, "Make a tenant, or change it")
                .about("Its plugins and pipelines stay.")
                .takes::<TenantDocument>()
                .changes::<Released>(),
            Operation::delete(PATH, "Delete a tenant").flag(CASCADE).changes::<Released>(),
        ]
    }
}

impl Resource for Tenant {
    fn allowed(&self) -> Allowed {
        Allowed::GetPutDelete
    }

    fn permission(&self, method: &Method) -> Permission<'_> {
        match is_read(method) {
            true => Permission::SeeTenant(&self.0),
            false => Permission::Administer,
        }
    }

    fn answer<'a>(&'a self, Asked { state, method, received }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let Self(tenant) = self;
            if *method == Method::DELETE {
                let tenant = name("tenant", tenant)?;
                return document::delete(state, Change::DeleteTenant { tenant }, received).await;
            }
            if *method != Method::PUT {
                let subject = Subject::Tenant(name("tenant", tenant)?);
                return document::get(state, &subject, &received);
            }
            let (query, options) = (received.query, received.options.clone());
            let document = received.document(&state.limits).await?;
            none(query)?;
            let tenant = name("tenant", tenant)?;
            let (document, faults) = tenant_document::read(document, &**state);
            let put = state.control.put_tenant(&tenant, document, faults, options).await;
            let published = put?;
            AdminAnswer::released(published, None)
        })
    }
}
