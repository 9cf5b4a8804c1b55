//! Loading and unloading models, as the model repository extension has it.

use gristmill_control::{Change, ControlError};
use gristmill_core::{ErrorCode, Name};
use gristmill_serve::Caller;
use gristmill_transport::Problem;

use super::Inference;

impl Inference {
    /// Load or unload a model. Only the operator may do so.
    ///
    /// # Errors
    /// The caller is a tenant, a parameter is not supported, there is no such model, or it cannot
    /// be loaded.
    pub(crate) async fn set_loaded(
        &self,
        caller: Caller<'_>,
        (model, load): (&str, bool),
        mut parameters: impl Iterator<Item = &'_ str>,
    ) -> Result<(), Problem> {
        caller.operates()?;
        let brings = |name: &&str| *name == "config" || name.starts_with("file:");
        if let Some(name) = parameters.find(brings) {
            let detail = format!(
                "parameter {name:?} is not supported: files and configurations are put through the admin API"
            );
            return Err(Problem::new(ErrorCode::Unsupported, detail));
        }
        let wrong = |error| Problem::new(ErrorCode::NotFound, format!("model: {error}"));
        let model: Name = model.parse().map_err(wrong)?;
        let control = &self.shared.control;
        let failed = |error: ControlError| Problem::new(error.code(), error.to_string());
        let released = match load {
            true => control.load_model(&model).await,
            false => control.release(vec![Change::UnloadModel { model: model.clone() }]).await,
        };
        released.map_err(failed)?;
        // If the model failed to load before and fails again, the release is not refused, so check
        // it here.
        match control.cell().load().models.get(&model).map(|state| state.served.clone()) {
            Some(Err(why)) if load => Err(Problem::new(ErrorCode::InvalidModel, why)),
            _ => Ok(()),
        }
    }
}
