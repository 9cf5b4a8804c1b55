//! Changes to models: loaded before their release is made.

use futures_util::FutureExt;
use gristmill_core::{Digest, Name};
use gristmill_snapshot::ServedModel;
use gristmill_state::{AskedChange, Change, ChangeOptions, Model, ModelConfig, StateError};
use gristmill_store::Received;

use crate::admin_api::Control;
use crate::change_request::{AskedChanges, ChangeRequest};
use crate::error::ControlError;
use crate::load::error::LoadError;
use crate::releases::step::Published;
use crate::uploads::Upload;

/// How a model's file is put.
#[derive(Clone, Debug, Default)]
pub struct NewModel {
    /// The number of the version. None for a new one.
    pub version: Option<u64>,
    /// The configuration with which the model is served from now on. None leaves the one that it
    /// has, and leaves it unloaded if it is.
    pub config: Option<ModelConfig>,
    /// Whether it may be a model that does not fit its users.
    pub force: bool,
}

/// A model that was put, or configured.
pub struct PublishedModel {
    /// The digest of the model's file.
    pub digest: Digest,
    /// The release that has the change.
    pub published: Published,
    /// The model with its lane; none while it is unloaded.
    pub served: Option<ServedModel>,
}

impl Control {
    /// Load a model's file, and keep it.
    ///
    /// # Errors
    /// The model cannot be loaded, or does not fit; or as for [`Self::change`].
    pub async fn put_model(
        &self,
        model: &Name,
        file: Received,
        new: NewModel,
        options: ChangeOptions,
    ) -> Result<PublishedModel, ControlError> {
        if file.is_empty() {
            return Err(ControlError::model(model, LoadError::Empty));
        }
        let NewModel { version, config, force } = new;
        let upload = self.uploads.begin(file.digest()).boxed().await;
        let digest = upload.digest();
        let change = Change::PutModel { model: model.clone(), digest, version };
        let asked = match &config {
            None => AskedChanges::One(Box::new(change.into())),
            Some(config) => {
                let model = model.clone();
                let load = Change::LoadModel { model: model.clone() };
                let configure = Change::PutModelConfig { model, config: config.clone().into() };
                AskedChanges::List([change, configure, load].map(AskedChange::Known).to_vec())
            }
        };
        let _uploads = vec![upload.clone()];
        let request = ChangeRequest { force, _uploads, ..ChangeRequest::of(asked, options) };
        let outcome = self.keep_model(model, file, (&upload, config), request).boxed().await;
        self.uploads.end(upload).boxed().await;
        outcome.map_err(ControlError::logged)
    }

    async fn keep_model(
        &self,
        model: &Name,
        file: Received,
        (upload, config): (&Upload, Option<ModelConfig>),
        request: ChangeRequest,
    ) -> Result<PublishedModel, ControlError> {
        let digest = upload.digest();
        upload.keep(file).await?;
        // Loaded before the lock is taken: other changes need not wait for it.
        let served = self.with_content(model, digest, config).await?;
        let published = self.releases.run(request).await?;
        // Unchanged content makes no release, so nothing has checked whether it still fails to
        // load.
        let serving = self.serving();
        let is_unloaded = serving.desired.models.get(model).is_some_and(|model| model.unloaded);
        match serving.snapshot.models.get(model).map(|state| &state.served) {
            Some(Err(why)) if !is_unloaded => {
                Err(ControlError::model(model, LoadError::NotServed(why.clone())))
            }
            _ => Ok(PublishedModel { digest, published, served }),
        }
    }

    /// Configure a model. If it is in service, it is first loaded with the new configuration. A
    /// configuration that changes only how requests queue loads nothing, unless it prefers batches
    /// that are larger than the measured maximum.
    ///
    /// # Errors
    /// There is no such model, the configuration has faults, or the model cannot be loaded with it;
    /// or as for [`Self::change`].
    pub async fn put_model_config(
        &self,
        name: &Name,
        config: ModelConfig,
        options: ChangeOptions,
    ) -> Result<PublishedModel, ControlError> {
        let faults = config.faults();
        if !faults.is_empty() {
            return Err(StateError::Invalid(faults).into());
        }
        let Some(model) = self.desired().models.get(name).cloned() else {
            return Err(StateError::not_found("model", name).into());
        };
        let loaded =
            self.loaded(name, &Model { config: config.clone(), ..model.clone() }).boxed().await;
        let served = loaded.map_err(ControlError::logged)?;
        let change = Change::PutModelConfig { model: name.clone(), config: Box::new(config) };
        let published = self.change(change, options).await?;
        Ok(PublishedModel { digest: model.digest, published, served })
    }

    /// Load a model that was taken out of service, and serve it.
    ///
    /// # Errors
    /// There is no such model, or it cannot be loaded; or as for [`Self::change`].
    pub async fn load_model(
        &self,
        name: &Name,
        options: ChangeOptions,
    ) -> Result<Published, ControlError> {
        let model = self.desired().models.get(name).cloned();
        let loaded = match model {
            Some(model) => self.loaded(name, &Model { unloaded: false, ..model }).boxed().await,
            None => Ok(None),
        };
        let _held = loaded.map_err(ControlError::logged)?;
        self.change(Change::LoadModel { model: name.clone() }, options).await
    }

    /// Load the model with its future content. Hold the result until the release is made. A model
    /// that is out of service is only proven.
    async fn with_content(
        &self,
        name: &Name,
        digest: Digest,
        config: Option<ModelConfig>,
    ) -> Result<Option<ServedModel>, ControlError> {
        let mut model = match self.desired().models.get(name) {
            Some(model) => Model { digest, ..model.clone() },
            None => Model::new(digest, 0),
        };
        if let Some(config) = config {
            (model.config, model.unloaded) = (config, false);
        }
        if model.unloaded {
            let proven = self.loader.models.prove(model.digest, &model.config).await;
            proven.map_err(|error| ControlError::model(name, error))?;
        }
        self.loaded(name, &model).await
    }

    async fn loaded(
        &self,
        name: &Name,
        model: &Model,
    ) -> Result<Option<ServedModel>, ControlError> {
        if model.unloaded {
            return Ok(None);
        }
        let served = self.loader.models.get(name, model.digest, &model.config).await;
        served.map(Some).map_err(|error| ControlError::model(name, error))
    }
}
