//! Loading and unloading models: the protocol's model repository extension.

use std::sync::Arc;

use gristmill_control::{
    Change, Control, ControlError, ModelConfig, NewModel, ROOT, Reach, ReleaseNote, Terms,
    TokenUse, joined,
};
use gristmill_core::{ErrorCode, Name};
use gristmill_serve::Caller;
use gristmill_snapshot::Operator;
use gristmill_transport::Problem;
use tokio_util::task::AbortOnDropHandle;

use super::Inference;
use super::brought::{Brought, ModelFile};

/// The most bytes of a model's name that are logged.
const MODEL_BYTES_MAX: usize = 256;

/// The bytes of a file that are passed on at once.
const PIECE_BYTES: usize = 256 << 10;

/// A change of the models that are loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RepositoryChange<'a> {
    Load(&'a str),
    Unload(&'a str),
}

impl Inference {
    /// Load or unload a model, with what the call brings. Only the operator may do so. It is a line
    /// of the log, as each call of the admin plane is.
    ///
    /// # Errors
    /// The caller is a tenant, what is brought cannot be used, there is no such model, or it cannot
    /// be loaded.
    pub(crate) async fn change_model(
        &self,
        caller: Caller<'_>,
        change: RepositoryChange<'_>,
        brought: Brought,
    ) -> Result<(), Problem> {
        let operator = caller.operates()?;
        let outcome = self.change_as(operator, change, brought).await;
        let who = operator.map_or(ROOT, |token| token.name.as_str());
        let (change, model) = match change {
            RepositoryChange::Load(model) => ("load", model),
            RepositoryChange::Unload(model) => ("unload", model),
        };
        let model = &model[..model.floor_char_boundary(MODEL_BYTES_MAX)];
        let code = outcome.as_ref().err().map(|problem| problem.code.as_str());
        tracing::info!(who, change, model, code, "call of the model repository");
        outcome
    }

    async fn change_as(
        &self,
        operator: Option<&Operator>,
        change: RepositoryChange<'_>,
        brought: Brought,
    ) -> Result<(), Problem> {
        let (RepositoryChange::Load(model) | RepositoryChange::Unload(model)) = change;
        let (config, file) = brought.read(model)?;
        let wrong = |error| Problem::new(ErrorCode::NotFound, format!("model: {error}"));
        let model = Name::of_model(model).map_err(wrong)?;
        let by = operator.map_or(ROOT, |token| token.name.as_str());
        let note = ReleaseNote { by: Some(by.into()), message: None };
        let token = operator.map(|Operator { name, version, .. }| TokenUse {
            name: name.clone(),
            version: *version,
        });
        let terms = Terms { note, token, reach: Reach::Server, ..Terms::default() };
        let (control, name) = (self.shared.control.clone(), model.clone());
        let is_load = matches!(change, RepositoryChange::Load(_));
        // Requests of clients do not wait for it.
        let changing = self.shared.control_threads.spawn(async move {
            match (is_load, file) {
                (true, Some(file)) => put_file(&control, &name, (file, config), terms).await,
                (true, None) => load(&control, &name, config, terms).await,
                (false, _) => {
                    let unload = Change::UnloadModel { model: name };
                    control.change(unload, terms).await.map(drop)
                }
            }
        });
        let changed = joined("changed a model", AbortOnDropHandle::new(changing)).await;
        changed.map_err(ControlError::logged)??;
        if !is_load {
            return Ok(());
        }
        // If the model failed to load before and fails again, the release is not refused, so check
        // it here.
        let serving = self.shared.control.cell().load();
        match serving.models.get(&model).map(|state| state.served.clone()) {
            Some(Err(why)) => Err(Problem::new(ErrorCode::InvalidModel, why)),
            _ => Ok(()),
        }
    }
}

/// Put the model's file, and serve it with this configuration, or with the one that it has.
async fn put_file(
    control: &Arc<Control>,
    model: &Name,
    (file, config): (ModelFile, Option<ModelConfig>),
    terms: Terms,
) -> Result<(), ControlError> {
    let mut incoming = control.receive().await?;
    let ModelFile { version, mut content } = file;
    while !content.is_empty() {
        let piece = content.split_to(content.len().min(PIECE_BYTES));
        let written = incoming.write(piece).await;
        incoming = written.map_err(|error| ControlError::from(error).logged())?;
    }
    let file = incoming.finish().await.map_err(|error| ControlError::from(error).logged())?;
    let config = config.unwrap_or_else(|| {
        let desired = control.desired();
        desired.models.get(model).map(|model| model.config.clone()).unwrap_or_default()
    });
    let new = NewModel { version: Some(version), config: Some(config), force: false };
    control.put_model(model, file, new, terms).await.map(drop)
}

/// Serve a model that is there, with this configuration if there is one.
async fn load(
    control: &Control,
    model: &Name,
    config: Option<ModelConfig>,
    terms: Terms,
) -> Result<(), ControlError> {
    if let Some(config) = config {
        control.put_model_config(model, config, terms.clone()).await?;
    }
    control.load_model(model, terms).await.map(drop)
}
