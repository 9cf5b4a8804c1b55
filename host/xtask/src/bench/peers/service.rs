//! The services that Gristmill and each peer offer, with the request that the client repeats.

use anyhow::{Context, Result};

use crate::shell::root;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Service {
    /// JSON to a tensor, a small model, its scores to JSON.
    Ranker,
    /// A JPEG to a tensor, a picture classifier, its best labels to JSON.
    Photos,
}

impl Service {
    pub(super) const ALL: [Self; 2] = [Self::Ranker, Self::Photos];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ranker => "ranker",
            Self::Photos => "photos",
        }
    }

    /// The JSON or the JPEG.
    pub(super) fn body(self) -> Result<Vec<u8>> {
        let file = match self {
            Self::Ranker => "benches/scenarios/ranker.json",
            Self::Photos => "benches/scenarios/photo.jpg",
        };
        std::fs::read(root().join(file)).with_context(|| format!("cannot read {file}"))
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Ranker => "application/json",
            Self::Photos => "image/jpeg",
        }
    }
}
