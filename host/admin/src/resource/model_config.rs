//! `GET` and `PUT /admin/v1/models/{model}/config`.

use gristmill_state::Subject;
use gristmill_transport::Allowed;
use http::Method;

use super::model::{Put, put};
use super::query::{SKIP_SAMPLES, flag};
use super::{Answering, Asked, Resource, document, is_read, model_name};
use crate::operation::Operation;
use crate::permission::Permission;

pub(crate) struct ModelConfig(String);

impl ModelConfig {
    pub(crate) fn new(model: &str) -> Self {
        Self(model.into())
    }
}

impl ModelConfig {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        const PATH: &str = "models/{model}/config";
        vec![
            Operation::get(PATH, "Read the configuration of a model")
                .reads::<gristmill_state::ModelConfig>()
                .finds(),
            Operation::put(PATH, "Replace the configuration of a model")
                .about("A key that is not given has its default.")
                .takes::<gristmill_state::ModelConfig>()
                .flag(SKIP_SAMPLES)
                .changes::<Put<'_>>(),
        ]
    }
}

impl Resource for ModelConfig {
    fn allowed(&self) -> Allowed {
        Allowed::GetAndPut
    }

    fn permission(&self, method: &Method) -> Permission<'_> {
        match is_read(method) {
            true => Permission::SeeServer,
            false => Permission::Administer,
        }
    }

    fn answer<'a>(&'a self, Asked { state, method, received }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            if *method != Method::PUT {
                let model = model_name(&self.0)?;
                return document::get(state, &Subject::ModelConfig(model), &received);
            }
            let (query, mut options) = (received.query, received.options.clone());
            let document = received.document(&state.limits).await?;
            let model = model_name(&self.0)?;
            options.skips_samples = flag(SKIP_SAMPLES, query)?;
            let config = gristmill_state::ModelConfig::read(document)?;
            put(state.control.put_model_config(&model, config, options).await?)
        })
    }
}
