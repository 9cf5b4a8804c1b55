//! `GET`, `PUT` and `DELETE /admin/v1/models/{model}`.

use gristmill_control::{NewModel, PublishedModel};
use gristmill_core::Digest;
use gristmill_state::{Change, DigestText, ModelDescription, Subject};
use gristmill_transport::Allowed;
use http::Method;
use serde::Serialize;
use utoipa::ToSchema;

use super::document::FileLength;
use super::query::{CASCADE, FORCE, SKIP_SAMPLES, count_in, is_set, parameters};
use super::status::ServedDocument;
use super::{Answering, Asked, Resource, document, is_read, model_name};
use crate::answer::{AdminAnswer, Noted, Outcome, Released};
use crate::operation::{Flag, Operation};
use crate::permission::Permission;
use crate::schemas::maybe;

pub(crate) struct Model(String);

impl Model {
    pub(crate) fn new(model: &str) -> Self {
        Self(model.into())
    }
}

impl Model {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        const PATH: &str = "models/{model}";
        vec![
            Operation::get(PATH, "Describe a model")
                .reads_both::<ModelDescription<'_>, FileLength>()
                .finds(),
            Operation::put(PATH, "Make a model, or replace its file")
                .about(
                    "The file is an ONNX file, or a tar archive of one and the files with its weights. \
                     The configuration stays, or is the default for a new model.",
                )
                .takes_file()
                .number("version", None, "The number of the version; a new one by default")
                .flag(FORCE)
                .flag(SKIP_SAMPLES)
                .changes::<Put<'_>>(),
            Operation::delete(PATH, "Delete a model").flag(CASCADE).changes::<Released>(),
        ]
    }
}

impl Resource for Model {
    fn allowed(&self) -> Allowed {
        Allowed::GetPutDelete
    }

    fn permission(&self, method: &Method) -> Permission<'_> {
        match is_read(method) {
            true => Permission::SeeModel(&self.0),
            false => Permission::Administer,
        }
    }

    fn answer<'a>(&'a self, Asked { state, method, received }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let model = model_name(&self.0);
            if *method == Method::DELETE {
                return document::delete(state, Change::DeleteModel { model: model? }, received)
                    .await;
            }
            if *method != Method::PUT {
                return document::get_file(state, &Subject::Model(model?), &received).await;
            }
            let (query, mut options) = (received.query, received.options.clone());
            let subject = model.as_ref().ok().cloned().map(Subject::Model);
            let file = received.upload(state, subject).await?;
            let model = model?;
            let Flag(force, _) = FORCE;
            let Flag(skips, _) = SKIP_SAMPLES;
            let [version, force, skips] = parameters(["version", force, skips], query)?;
            let version =
                version.map(|version| count_in("version", version, usize::MAX)).transpose()?;
            options.skips_samples = is_set(SKIP_SAMPLES, skips)?;
            let new = NewModel {
                version: version.map(|version| version as u64),
                config: None,
                force: is_set(FORCE, force)?,
            };
            put(state.control.put_model(&model, file, new, options).await?)
        })
    }
}

/// The answer after a model was put or configured.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelReleased)]
pub(super) struct Put<'a> {
    /// The number of the release that serves now.
    release: u64,
    #[schema(value_type = DigestText)]
    digest: Digest,
    #[schema(schema_with = maybe::<ServedDocument<'_>>)]
    #[serde(flatten)]
    served: Option<ServedDocument<'a>>,
    /// Why the model does not serve, if it does not.
    #[schema(value_type = Option<Vec<String>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<[&'static str; 1]>,
}

pub(super) fn put(model: PublishedModel) -> Outcome {
    let (release, digest) = (model.published.release, model.digest);
    let warnings = model.served.is_none().then_some(["it is unloaded"]);
    let served = model.served.as_ref().map(ServedDocument::of);
    let noted = Noted { release: Some(release), digest: Some(digest) };
    AdminAnswer::changed(&Put { release, digest, served, warnings }, model.published.tag, noted)
}
