//! A model and the lanes that serve its versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_backend::{Certified, PaddingProof, ProviderHealth, Sizing};
use gristmill_batch::Lane;
use gristmill_core::Digest;

use crate::versions::KeptVersion;

/// A model and whether it is loaded.
#[derive(Clone)]
pub struct ModelState {
    /// The digest of the newest version's file.
    pub digest: Digest,
    /// The newest version: the release that brought this content.
    pub version: u64,
    /// The releases that brought earlier content, in order.
    pub earlier_versions: Vec<u64>,
    /// The lane that serves the newest version, or why it is not served.
    pub served: Result<ServedModel, String>,
    /// The earlier versions that stay loaded, each with its own lane.
    pub kept: BTreeMap<u64, KeptVersion<ServedModel>>,
    /// What its configuration says of its inputs and outputs.
    pub notes: Arc<TensorNotes>,
}

/// What a model's configuration says of its inputs and outputs. It may name some that the model
/// does not have.
#[derive(Clone, Debug, Default)]
pub struct TensorNotes {
    /// The formats of inputs.
    pub formats: BTreeMap<String, Format>,
    /// The names of the places in a row, by output.
    pub labels: BTreeMap<String, Arc<[Box<str>]>>,
}

/// The order of a picture's dimensions, apart from the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// It is not a picture.
    None,
    /// Height, width, channels.
    Nhwc,
    /// Channels, height, width.
    Nchw,
}

/// A model's lane, and the providers that run its batches.
#[derive(Clone)]
pub struct ServedModel {
    /// The queue and the instances.
    pub lane: Arc<Lane>,
    /// The best first.
    pub providers: Arc<[ProviderHealth]>,
    /// The size of its file.
    pub file_bytes: u64,
    /// Whether its rows are independent on each provider. Empty if that was not asked.
    pub certificates: Arc<[Certified]>,
    /// Whether its rows may be padded on each provider. Empty if that was not asked.
    pub padding_proofs: Arc<[PaddingProof]>,
    /// Its instances, the threads of a run and the most rows of a batch.
    pub sizes: Arc<Sizing>,
    /// Warnings for the operator who put the model.
    pub warnings: Arc<[String]>,
}

impl ModelState {
    /// The versions that stay loaded, the newest first: the lane that serves each, or why it is not
    /// served.
    pub fn versions(&self) -> impl Iterator<Item = (u64, &Result<ServedModel, String>)> {
        let kept = self.kept.iter().rev().map(|(version, kept)| (*version, &kept.loaded));
        std::iter::once((self.version, &self.served)).chain(kept)
    }

    /// A version, or the newest one. None if it does not stay loaded.
    pub fn of_version(&self, version: Option<u64>) -> Option<&Result<ServedModel, String>> {
        match version {
            None => Some(&self.served),
            Some(asked) => self
                .versions()
                .find(|(own_version, _)| *own_version == asked)
                .map(|(_, served)| served),
        }
    }
}
