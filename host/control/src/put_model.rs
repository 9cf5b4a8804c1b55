//! Changes to models: loaded, and held against who uses them, before the control plane's lock is taken.

use std::sync::Arc;

use gristmill_core::{Digest, Name};
use gristmill_snapshot::ServedModel;

use crate::control::{Control, Published};
use crate::desired::{Desired, Model};
use crate::models::ModelFault;
use crate::release::Change;
use crate::signature::{misfits, users};
use crate::{ControlError, ModelConfig};

/// A model that was put, or configured.
pub struct PublishedModel {
    pub digest: Digest,
    pub published: Published,
    /// What serves it; none while it is unloaded.
    pub served: Option<ServedModel>,
}

impl Control {
    /// Configure a model, having loaded it so where it is in service.
    pub async fn put_model_config(
        self: &Arc<Self>,
        name: &Name,
        config: ModelConfig,
    ) -> Result<PublishedModel, ControlError> {
        let faults = config.faults();
        if !faults.is_empty() {
            return Err(ControlError::Invalid(faults));
        }
        let Some(model) = self.desired().models.get(name).cloned() else {
            return Err(ControlError::NotFound { what: "model", name: name.to_string() });
        };
        let served = self.loaded(name, &Model { config: config.clone(), ..model.clone() }).await?;
        let change = Change::PutModelConfig { model: name.clone(), config };
        let published = self.release(vec![change]).await?;
        Ok(PublishedModel { digest: model.digest, published, served })
    }

    /// Serve a model that was taken out of service, having loaded it.
    pub async fn load_model(self: &Arc<Self>, name: &Name) -> Result<Published, ControlError> {
        let model = self.desired().models.get(name).cloned();
        let _held = match model {
            Some(model) => self.loaded(name, &Model { unloaded: false, ..model }).await?,
            None => None,
        };
        self.release(vec![Change::LoadModel { model: name.clone() }]).await
    }

    /// The model as it will be with this content. Hold it until the release is made. That of one that is unloaded is
    /// only proven.
    pub(crate) async fn with_content(
        &self,
        name: &Name,
        digest: Digest,
    ) -> Result<Option<ServedModel>, ControlError> {
        let model = match self.desired().models.get(name) {
            Some(model) => Model { digest, ..model.clone() },
            None => Model {
                digest,
                version: 0,
                earlier_versions: Vec::new(),
                config: ModelConfig::default(),
                unloaded: false,
            },
        };
        if model.unloaded {
            let proven = self.loader.models.prove(&model).await;
            proven.map_err(|fault| not_loaded(name, fault))?;
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
        let served = self.loader.models.get(name, model).await;
        served.map(Some).map_err(|fault| not_loaded(name, fault))
    }

    /// Refuse what those who use the model could use no more.
    pub(crate) fn check_users(
        &self,
        name: &Name,
        new: &ServedModel,
        desired: &Desired,
    ) -> Result<(), ControlError> {
        let snapshot = self.cell().load();
        let serving = snapshot.models.get(name).and_then(|model| model.served.as_ref().ok());
        let Some(serving) = serving else { return Ok(()) };
        let why = misfits(serving.lane.info(), new.lane.info());
        let users = users(desired, name);
        if why.is_empty() || users.is_empty() {
            return Ok(());
        }
        Err(ControlError::Misfit { name: name.to_string(), why, users })
    }
}

fn not_loaded(name: &Name, fault: ModelFault) -> ControlError {
    match fault {
        ModelFault::Model(why) => ControlError::Model { name: name.to_string(), why },
        ModelFault::Host(why) => ControlError::Host(format!("model {:?}: {why}", name.as_str())),
    }
}
