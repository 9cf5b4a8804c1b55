//! `PUT` and `DELETE /admin/v1/tenants/{tenant}`.

use async_trait::async_trait;
use gristmill_control::Change;
use gristmill_transport::Allowed;
use http::Method;

use super::query::delete;
use super::{Resource, name, tenant_document};
use crate::answer::{Answer, Outcome};
use crate::receive::Received;
use crate::state::State;

pub(crate) struct Tenant(String);

impl Tenant {
    pub(crate) fn new(tenant: &str) -> Self {
        Self(tenant.into())
    }
}

#[async_trait]
impl Resource for Tenant {
    fn allowed(&self) -> Allowed {
        Allowed::PutAndDelete
    }

    async fn answer(&self, state: &State, method: &Method, received: Received<'_>) -> Outcome {
        let Self(tenant) = self;
        if *method == Method::DELETE {
            let tenant = name("tenant", tenant)?;
            return delete(state, Change::DeleteTenant { tenant }, received.query).await;
        }
        let document = received.document(&state.limits).await?;
        let tenant = name("tenant", tenant)?;
        let (spec, faults) = tenant_document::read(document, state.token);
        let published = state.control.put_tenant(&tenant, spec, faults).await?;
        Answer::released(published, None)
    }
}
