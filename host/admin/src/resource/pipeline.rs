//! `PUT` and `DELETE /admin/v1/tenants/{tenant}/pipelines/{pipeline}`.

use async_trait::async_trait;
use gristmill_control::Change;
use gristmill_core::Name;
use gristmill_transport::{Allowed, Problem};
use http::Method;

use super::query::delete;
use super::{Resource, name};
use crate::answer::{Answer, Outcome};
use crate::receive::Received;
use crate::state::State;

pub(crate) struct Pipeline {
    tenant: String,
    pipeline: String,
}

impl Pipeline {
    pub(crate) fn new(tenant: &str, pipeline: &str) -> Self {
        Self { tenant: tenant.into(), pipeline: pipeline.into() }
    }

    fn names(&self) -> Result<(Name, Name), Problem> {
        Ok((name("tenant", &self.tenant)?, name("pipeline", &self.pipeline)?))
    }
}

#[async_trait]
impl Resource for Pipeline {
    fn allowed(&self) -> Allowed {
        Allowed::PutAndDelete
    }

    async fn answer(&self, state: &State, method: &Method, received: Received<'_>) -> Outcome {
        if *method == Method::DELETE {
            let (tenant, pipeline) = self.names()?;
            let change = Change::DeletePipeline { tenant, pipeline };
            return delete(state, change, received.query).await;
        }
        let document = received.document(&state.limits).await?;
        let (tenant, pipeline) = self.names()?;
        let put = state.control.put_pipeline(&tenant, &pipeline, document).await;
        Answer::released(put?, None)
    }
}
