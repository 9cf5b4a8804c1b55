//! Loading and unloading models: the protocol's model repository extension.

use gristmill_control::{Change, ControlError, ROOT, Reach, ReleaseNote, Terms, TokenUse};
use gristmill_core::{ErrorCode, Name};
use gristmill_serve::Caller;
use gristmill_snapshot::Operator;
use gristmill_transport::Problem;
use tokio_util::task::AbortOnDropHandle;

use super::Inference;

/// The most bytes of a model's name that are logged.
const MODEL_BYTES_MAX: usize = 256;

/// A change of the models that are loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RepositoryChange<'a> {
    Load(&'a str),
    Unload(&'a str),
}

impl Inference {
    /// Load or unload a model. Only the operator may do so. It is a line of the log, as each call
    /// of the admin plane is.
    ///
    /// # Errors
    /// The caller is a tenant, a parameter is not supported, there is no such model, or it cannot
    /// be loaded.
    pub(crate) async fn change_model(
        &self,
        caller: Caller<'_>,
        change: RepositoryChange<'_>,
        parameters: impl Iterator<Item = &'_ str>,
    ) -> Result<(), Problem> {
        let operator = caller.operates()?;
        let outcome = self.change_as(operator, change, parameters).await;
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
        mut parameters: impl Iterator<Item = &'_ str>,
    ) -> Result<(), Problem> {
        let brings = |name: &&str| *name == "config" || name.starts_with("file:");
        if let Some(name) = parameters.find(brings) {
            let detail = format!(
                "parameter {name:?} is not supported: files and configurations are put through the admin API"
            );
            return Err(Problem::new(ErrorCode::Unsupported, detail));
        }
        let (RepositoryChange::Load(model) | RepositoryChange::Unload(model)) = change;
        let wrong = |error| Problem::new(ErrorCode::NotFound, format!("model: {error}"));
        let model: Name = model.parse().map_err(wrong)?;
        let control = &self.shared.control;
        let by = operator.map_or(ROOT, |token| token.name.as_str());
        let note = ReleaseNote { by: Some(by.into()), message: None };
        let token = operator.map(|Operator { name, version, .. }| TokenUse {
            name: name.clone(),
            version: *version,
        });
        let terms = Terms { note, token, reach: Reach::Server, ..Terms::default() };
        let (own, name) = (control.clone(), model.clone());
        let is_load = matches!(change, RepositoryChange::Load(_));
        // Requests of clients do not wait for it.
        let changing = self.shared.control_threads.spawn(async move {
            match is_load {
                true => own.load_model(&name, terms).await,
                false => own.change(Change::UnloadModel { model: name }, terms).await,
            }
        });
        let changed = AbortOnDropHandle::new(changing).await;
        changed.map_err(|ended| ControlError::from(ended).logged())??;
        if !is_load {
            return Ok(());
        }
        // If the model failed to load before and fails again, the release is not refused, so check
        // it here.
        match control.cell().load().models.get(&model).map(|state| state.served.clone()) {
            Some(Err(why)) => Err(Problem::new(ErrorCode::InvalidModel, why)),
            _ => Ok(()),
        }
    }
}
