//! `GET`, `PUT` and `DELETE /admin/v1/tenants/{tenant}/pipelines/{pipeline}`.

use gristmill_core::Name;
use gristmill_state::{Change, PipelineSpec, Subject};
use gristmill_transport::{Allowed, Problem};
use http::Method;

use super::query::{CASCADE, SKIP_SAMPLES, flag};
use super::{Answering, Asked, Resource, document, is_read, name};
use crate::answer::{AdminAnswer, Released};
use crate::operation::Operation;
use crate::permission::Permission;

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

impl Pipeline {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        const PATH: &str = "tenants/{tenant}/pipelines/{pipeline}";
        vec![
            Operation::get(PATH, "Read a pipeline").reads::<PipelineSpec>().finds(),
            Operation::put(PATH, "Make a pipeline, or change it")
                .takes::<PipelineSpec>()
                .flag(SKIP_SAMPLES)
                .changes::<Released>(),
            Operation::delete(PATH, "Delete a pipeline").flag(CASCADE).changes::<Released>(),
        ]
    }
}

impl Resource for Pipeline {
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
                let (query, mut options) = (received.query, received.options.clone());
                let document = received.document(&state.limits).await?;
                let (tenant, pipeline) = self.names()?;
                options.skips_samples = flag(SKIP_SAMPLES, query)?;
                let put = state.control.put_pipeline(&tenant, &pipeline, document, options).await;
                return AdminAnswer::released(put?, None);
            }
            let (tenant, pipeline) = self.names()?;
            if *method == Method::DELETE {
                let change = Change::DeletePipeline { tenant, pipeline };
                return document::delete(state, change, received).await;
            }
            document::get(state, &Subject::Pipeline { tenant, pipeline }, &received)
        })
    }
}
