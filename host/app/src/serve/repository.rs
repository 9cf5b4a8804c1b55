//! The model repository of the data plane's protocols, made of the control plane.

use std::collections::BTreeMap;
use std::iter::once;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use gristmill_backend::package::{END, MODEL, header_of, padding_of};
use gristmill_control::{Control, ControlError, NewModel, joined};
use gristmill_core::{ErrorCode, Name};
use gristmill_http::{ModelChange, ModelFile, ModelRepository};
use gristmill_snapshot::Operator;
use gristmill_state::{
    Change, ChangeOptions, ModelConfig, ROOT, ReleaseNote, TokenScope, TokenUse,
};
use gristmill_transport::Problem;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

/// The bytes of a file that are passed on at once.
const PIECE_BYTES: usize = 256 << 10;

/// The control plane, as the data plane's protocols see it.
pub(super) struct Repository {
    pub(super) control: Arc<Control>,
    /// The threads on which releases are made, so that requests of clients do not wait for it.
    pub(super) threads: Handle,
}

#[async_trait]
impl ModelRepository for Repository {
    async fn change(
        &self,
        operator: Option<&Operator>,
        model: Name,
        change: ModelChange,
    ) -> Result<(), Problem> {
        let by = operator.map_or(ROOT, |token| token.name.as_str());
        let note = ReleaseNote { by: Some(by.into()), message: None };
        let token = operator.map(|Operator { name, version, .. }| TokenUse {
            name: name.clone(),
            version: *version,
        });
        let options = ChangeOptions {
            note,
            token,
            token_scope: TokenScope::Server,
            ..ChangeOptions::default()
        };
        let is_load = matches!(change, ModelChange::Load { .. });
        let (control, name) = (self.control.clone(), model.clone());
        let changing = self.threads.spawn(async move {
            match change {
                ModelChange::Load { config, file: Some(file) } => {
                    put_file(&control, &name, file, config.map(|config| *config), options).await
                }
                ModelChange::Load { config, file: None } => {
                    load(&control, &name, config.map(|config| *config), options).await
                }
                ModelChange::Unload => {
                    control.change(Change::UnloadModel { model: name }, options).await.map(drop)
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
        let serving = self.control.cell().load();
        match serving.models.get(&model).map(|state| state.served.clone()) {
            Some(Err(why)) => Err(Problem::new(ErrorCode::InvalidModel, why)),
            _ => Ok(()),
        }
    }

    fn store_trouble(&self) -> Option<&'static str> {
        let trouble = self.control.trouble()?;
        Some(if trouble.is_unreachable { "unreachable" } else { "unusable" })
    }
}

/// Put the model's file, and serve it with this configuration, or with the one that it has.
async fn put_file(
    control: &Arc<Control>,
    model: &Name,
    file: ModelFile,
    config: Option<ModelConfig>,
    options: ChangeOptions,
) -> Result<(), ControlError> {
    let mut incoming = control.receive().await?;
    let ModelFile { version, content, weights } = file;
    for mut part in stored(content, weights) {
        while !part.is_empty() {
            let piece = part.split_to(part.len().min(PIECE_BYTES));
            let written = incoming.write(piece).await;
            incoming = written.map_err(|error| ControlError::from(error).logged())?;
        }
    }
    let file = incoming.finish().await.map_err(|error| ControlError::from(error).logged())?;
    let config = config.unwrap_or_else(|| {
        let desired = control.desired();
        desired.models.get(model).map(|model| model.config.clone()).unwrap_or_default()
    });
    let new = NewModel { version: Some(version), config: Some(config), force: false };
    control.put_model(model, file, new, options).await.map(drop)
}

/// The parts of the file that is stored: the model, or the same package of it and its weights as
/// `gristmill model push` makes.
fn stored(model: Bytes, weights: BTreeMap<String, Bytes>) -> Vec<Bytes> {
    if weights.is_empty() {
        return vec![model];
    }
    let mut parts = Vec::new();
    for (name, content) in once((MODEL.to_owned(), model)).chain(weights) {
        let bytes = content.len() as u64;
        let (header, padding) = (header_of(&name, bytes), padding_of(bytes));
        parts.extend([Bytes::from(header), content, Bytes::from(padding)]);
    }
    parts.push(Bytes::from_static(&END));
    parts
}

/// Serve a model that is there, with this configuration if there is one.
async fn load(
    control: &Control,
    model: &Name,
    config: Option<ModelConfig>,
    options: ChangeOptions,
) -> Result<(), ControlError> {
    if let Some(config) = config {
        control.put_model_config(model, config, options.clone()).await?;
    }
    control.load_model(model, options).await.map(drop)
}
