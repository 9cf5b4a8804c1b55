//! A model that is ready to run.

use std::sync::Arc;

use gristmill_core::{BufferPool, Model, ModelInfo};

use crate::health::ProviderHealth;

/// A model ready to run.
pub struct LoadedModel {
    /// Its inputs and outputs.
    pub info: ModelInfo,
    /// Its instances, each for a thread of its own.
    pub instances: Vec<Box<dyn Model>>,
    /// Differences from what was asked for, and what else the uploader should know.
    pub warnings: Vec<String>,
    /// Whether the sizes of its inputs say how much work a run is, as far as operators tell.
    pub is_steady: bool,
    /// The providers that run it, the best first.
    pub providers: Arc<[ProviderHealth]>,
    /// The pool in which batches are best put together: of memory that the device reads directly,
    /// where there is a device, else the pool of the backends.
    pub staging: BufferPool,
}

/// A model on one provider.
pub(crate) struct Loaded {
    pub(crate) info: ModelInfo,
    pub(crate) instances: Vec<Box<dyn Model>>,
    /// As of [`LoadedModel`], where the provider has memory of its own for it.
    pub(crate) staging: Option<BufferPool>,
}
