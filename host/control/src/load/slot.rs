//! The record of one model that is loaded, may be loaded or failed to load.
//!
//! The lane belongs to the snapshots that serve it and to changes under way; a slot only remembers
//! it. Two configurations that load a model in the same way share its instances and its queue. Each
//! has its own lane over them, with its own settings.

use std::sync::{Arc, Weak};
use std::time::Instant;

use gristmill_backend::Sizing;
use gristmill_batch::{Lane, LaneConfig};
use gristmill_snapshot::{Certified, PaddingProof, ProviderHealth, ServedModel};
use parking_lot::Mutex;

use crate::load::error::{LoadError, Loaded};

/// The record of one model.
#[derive(Default)]
pub(crate) struct Slot {
    outcomes: Mutex<Known>,
    /// Held by the caller that loads it.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Known {
    /// The known lanes, each with the requested settings.
    lanes: Vec<KnownLane>,
    /// The last failure. It is kept so that other changes do not try again.
    failed: Option<Failed>,
}

/// A lane, which serves while others hold it.
struct KnownLane {
    settings: LaneConfig,
    lane: Weak<Lane>,
    providers: Arc<[ProviderHealth]>,
    file_bytes: u64,
    certificates: Arc<[Certified]>,
    padding_proofs: Arc<[PaddingProof]>,
    sizes: Arc<Sizing>,
    warnings: Arc<[String]>,
}

struct Failed {
    at: Instant,
    fault: Arc<LoadError>,
}

impl Slot {
    /// The model with these settings, if it is loaded. The newest lane is preferred. A lane that
    /// refuses requests is used only for its own settings, and only if no other lane serves: to
    /// load the model again may fix it. A lane whose measured maximum is below a preferred size is
    /// not used for other settings: the model is loaded again, with that size as its maximum.
    pub(crate) fn served(&self, settings: &LaneConfig) -> Option<ServedModel> {
        let mut outcomes = self.outcomes.lock();
        outcomes.lanes.retain(KnownLane::is_alive);
        let lanes = || outcomes.lanes.iter().rev();
        let same = || lanes().filter(|lane| lane.settings == *settings);
        if let Some(served) = same().find_map(KnownLane::serving) {
            return Some(served);
        }
        let serving = || lanes().filter_map(KnownLane::serving);
        let Some(like) = serving().find(|served| served.lane.can_prefer(settings)) else {
            return same().find_map(KnownLane::served);
        };
        let served =
            ServedModel { lane: Arc::new(like.lane.with_config(settings.clone())), ..like };
        outcomes.lanes.push(KnownLane::of(&served, settings.clone()));
        Some(served)
    }

    /// Whether the model is loaded, with any settings.
    pub(crate) fn is_served(&self) -> bool {
        self.outcomes.lock().lanes.iter().any(KnownLane::is_alive)
    }

    /// Why it could not be loaded, if that was tried at `since` or later.
    pub(crate) fn failed(&self, since: Option<Instant>) -> Option<Arc<LoadError>> {
        let outcomes = self.outcomes.lock();
        let failed = outcomes.failed.as_ref();
        failed
            .filter(|failed| since.is_none_or(|since| failed.at >= since))
            .map(|failed| failed.fault.clone())
    }

    /// Remember the outcome of loading it with these settings. Earlier lanes stay known, because
    /// the change that loaded the model again may be refused: then they still serve.
    pub(crate) fn note(&self, settings: LaneConfig, outcome: &Loaded<ServedModel>) {
        let mut outcomes = self.outcomes.lock();
        match outcome {
            Ok(served) => {
                outcomes.lanes.push(KnownLane::of(served, settings));
                outcomes.failed = None;
            }
            Err(fault) => {
                outcomes.failed = Some(Failed { at: Instant::now(), fault: fault.clone() });
            }
        }
    }
}

impl KnownLane {
    fn of(served: &ServedModel, settings: LaneConfig) -> Self {
        let ServedModel {
            lane,
            providers,
            file_bytes,
            certificates,
            padding_proofs,
            sizes,
            warnings,
        } = served.clone();
        Self {
            settings,
            lane: Arc::downgrade(&lane),
            providers,
            file_bytes,
            certificates,
            padding_proofs,
            sizes,
            warnings,
        }
    }

    fn is_alive(&self) -> bool {
        self.lane.strong_count() > 0
    }

    /// The model, if its lane does not refuse requests.
    fn serving(&self) -> Option<ServedModel> {
        self.served().filter(|served| served.lane.refusal().is_none())
    }

    fn served(&self) -> Option<ServedModel> {
        let Self { providers, certificates, padding_proofs, sizes, warnings, .. } = self;
        Some(ServedModel {
            lane: self.lane.upgrade()?,
            providers: providers.clone(),
            file_bytes: self.file_bytes,
            certificates: certificates.clone(),
            padding_proofs: padding_proofs.clone(),
            sizes: sizes.clone(),
            warnings: warnings.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
