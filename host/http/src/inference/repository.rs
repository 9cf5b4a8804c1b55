//! Loading and unloading models: the protocol's model repository extension.

use gristmill_core::{ErrorCode, Name};
use gristmill_serve::Caller;
use gristmill_snapshot::Operator;
use gristmill_state::ROOT;
use gristmill_transport::Problem;

use super::Inference;
use super::brought::Brought;
use super::model_changes::ModelChange;

/// The most bytes of a model's name that are logged.
const MODEL_BYTES_MAX: usize = 256;

/// A change of the models that are loaded, as a call names it.
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
        let wrong = |error| Problem::new(ErrorCode::NotFound, format!("model: {error}"));
        let model = Name::of_model(model).map_err(wrong)?;
        let notes = self.snapshot().models.get(&model).map(|state| state.notes.clone());
        let (config, file) = brought.read(&model, &notes.unwrap_or_default())?;
        let change = match change {
            RepositoryChange::Load(_) => ModelChange::Load { config: config.map(Box::new), file },
            RepositoryChange::Unload(_) => ModelChange::Unload,
        };
        self.shared.repository.change(operator, model, change).await
    }
}
