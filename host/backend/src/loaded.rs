//! A model that is ready to run.

use std::sync::{Arc, Weak};

use gristmill_core::{BufferPool, Model, ModelInfo, Padding};

use crate::certificate::{Certified, PaddingProof};
use crate::health::ProviderHealth;
use crate::memory::SessionMemory;

/// A model ready to run.
pub struct LoadedModel {
    /// Its inputs and outputs.
    pub info: ModelInfo,
    /// Its instances, each for a thread of its own.
    pub instances: Vec<Box<dyn Model>>,
    /// Warnings for the uploader, such as differences from the configuration.
    pub warnings: Vec<String>,
    /// Whether the sizes of its inputs determine the work of a run, judged by its operators.
    pub is_steady: bool,
    /// Whether it has convolutions.
    pub has_convolutions: bool,
    /// The providers that run it, the best first.
    pub providers: Arc<[ProviderHealth]>,
    /// The pool in which batches should be copied together. For a GPU it has memory that the GPU
    /// reads directly; else it is the pool of the backends.
    pub staging: BufferPool,
    /// Whether its rows are independent on each provider. Empty if that was not asked.
    pub certificates: Vec<Certified>,
    /// How rows are padded. None if that was not asked, or is not proven on each provider.
    pub padding: Padding,
    /// Whether rows may be padded on each provider. Empty if that was not asked, or if requests
    /// share no batches and nothing is known against it.
    pub padding_proofs: Vec<PaddingProof>,
}

impl LoadedModel {
    /// Whether a submitting task may run a batch itself. It may only if the number of rows
    /// determines the batch's time: all dimensions except the first are fixed, and no input has
    /// texts, which can have any length.
    pub fn may_lead(&self) -> bool {
        self.is_steady && self.info.rows_are_alike() && !self.info.has_texts()
    }
}

/// A model on one provider.
pub(crate) struct Loaded {
    pub(crate) info: ModelInfo,
    pub(crate) instances: Vec<Box<dyn Model>>,
    /// The sizes of batches for which each instance has a session of its own.
    pub(crate) session_sizes: Vec<usize>,
    /// As in [`LoadedModel`]; none if the provider has no memory of its own for it.
    pub(crate) staging: Option<BufferPool>,
    /// Of each session.
    pub(crate) memory: Vec<Weak<SessionMemory>>,
}
