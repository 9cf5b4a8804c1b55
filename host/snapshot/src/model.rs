//! A model and the lane that serves it.

use std::sync::Arc;

use gristmill_backend::ProviderHealth;
use gristmill_batch::Lane;
use gristmill_core::Digest;

/// A model and whether it is loaded.
#[derive(Clone)]
pub struct ModelState {
    /// The digest of its file.
    pub digest: Digest,
    /// The release that brought this content.
    pub version: u64,
    /// The releases that brought earlier content, in order.
    pub earlier_versions: Vec<u64>,
    /// The lane that serves it, or why it is not served.
    pub served: Result<ServedModel, String>,
}

/// A model's lane, and the providers that run its batches.
#[derive(Clone)]
pub struct ServedModel {
    /// The queue and the instances.
    pub lane: Arc<Lane>,
    /// The best first.
    pub providers: Arc<[ProviderHealth]>,
    /// Warnings for the operator who put the model.
    pub warnings: Arc<[String]>,
}
