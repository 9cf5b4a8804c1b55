//! `PUT` and `DELETE /admin/v1/models/{model}`, and `PUT /admin/v1/models/{model}/config`.

use async_trait::async_trait;
use gristmill_control::{Change, PublishedModel};
use gristmill_core::Digest;
use gristmill_transport::Allowed;
use http::Method;
use serde::Serialize;

use super::query::{delete, flag};
use super::status::ServedDocument;
use super::{Resource, name};
use crate::answer::{Answer, Noted, Outcome};
use crate::receive::Received;
use crate::state::State;

pub(crate) struct Model(String);

pub(crate) struct ModelConfig(String);

impl Model {
    pub(crate) fn new(model: &str) -> Self {
        Self(model.into())
    }
}

impl ModelConfig {
    pub(crate) fn new(model: &str) -> Self {
        Self(model.into())
    }
}

#[async_trait]
impl Resource for Model {
    fn allowed(&self) -> Allowed {
        Allowed::PutAndDelete
    }

    async fn answer(&self, state: &State, method: &Method, received: Received<'_>) -> Outcome {
        let Self(model) = self;
        let query = received.query;
        if *method == Method::DELETE {
            let model = name("model", model)?;
            return delete(state, Change::DeleteModel { model }, query).await;
        }
        let file = received.upload(state).await?;
        let model = name("model", model)?;
        let force = flag("force", query)?;
        put(state.control.put_model(&model, file, force).await?)
    }
}

#[async_trait]
impl Resource for ModelConfig {
    fn allowed(&self) -> Allowed {
        Allowed::Put
    }

    async fn answer(&self, state: &State, _: &Method, received: Received<'_>) -> Outcome {
        let document = received.document(&state.limits).await?;
        let model = name("model", &self.0)?;
        let config = gristmill_control::ModelConfig::read(document)?;
        put(state.control.put_model_config(&model, config).await?)
    }
}

/// The answer after a model was put or configured.
#[derive(Serialize)]
struct Put<'a> {
    release: u64,
    digest: Digest,
    #[serde(flatten)]
    served: Option<ServedDocument<'a>>,
    /// Why the model does not serve, if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<[&'static str; 1]>,
}

fn put(model: PublishedModel) -> Outcome {
    let (release, digest) = (model.published.release, model.digest);
    let warnings = model.served.is_none().then_some(["it is unloaded"]);
    let served = model.served.as_ref().map(ServedDocument::of);
    let noted = Noted { release: Some(release), digest: Some(digest) };
    Answer::noted(&Put { release, digest, served, warnings }, noted)
}
