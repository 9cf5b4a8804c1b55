//! The record of one model that is loaded, may be loaded or failed to load.
//!
//! The lane belongs to the snapshots that serve it and to changes under way; a slot only remembers
//! it. Two configurations that load a model in the same way share its instances and its queue: each
//! has a lane of its own settings over them.

use std::sync::{Arc, Weak};
use std::time::Instant;

use gristmill_batch::{Lane, LaneConfig};
use gristmill_snapshot::{ProviderHealth, ServedModel};
use parking_lot::Mutex;

use crate::load::error::{LoadError, Loaded};

/// The record of one model.
#[derive(Default)]
pub(crate) struct Slot {
    known: Mutex<Known>,
    /// Held by the one who loads it.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Known {
    served: Option<Served>,
    /// Kept so that it is not tried again with every other change.
    failed: Option<Failed>,
}

struct Served {
    /// Lanes over the same queue, with the settings that were asked for.
    lanes: Vec<(LaneConfig, Weak<Lane>)>,
    providers: Arc<[ProviderHealth]>,
    warnings: Arc<[String]>,
}

struct Failed {
    at: Instant,
    fault: Arc<LoadError>,
}

impl Slot {
    /// The model with these settings, if it is loaded. A lane that refuses requests gets no other
    /// settings: loading the model anew may mend it.
    pub(crate) fn served(&self, settings: &LaneConfig) -> Option<ServedModel> {
        let mut known = self.known.lock();
        let Served { lanes, providers, warnings } = known.served.as_mut()?;
        lanes.retain(|(_, lane)| lane.strong_count() > 0);
        let alive: Vec<_> =
            lanes.iter().filter_map(|(own, lane)| Some((own, lane.upgrade()?))).collect();
        let (providers, warnings) = (providers.clone(), warnings.clone());
        if let Some((_, lane)) = alive.iter().find(|(own, _)| *own == settings) {
            return Some(ServedModel { lane: lane.clone(), providers, warnings });
        }
        let (_, like) = alive.first().filter(|(_, lane)| lane.refusal().is_none())?;
        let lane = Arc::new(like.with_config(settings.clone()));
        drop(alive);
        lanes.push((settings.clone(), Arc::downgrade(&lane)));
        Some(ServedModel { lane, providers, warnings })
    }

    /// Whether the model is loaded, with any settings.
    pub(crate) fn is_served(&self) -> bool {
        let known = self.known.lock();
        let mut lanes = known.served.iter().flat_map(|served| &served.lanes);
        lanes.any(|(_, lane)| lane.strong_count() > 0)
    }

    /// Why it could not be loaded, where that was tried at `since` or later.
    pub(crate) fn failed(&self, since: Option<Instant>) -> Option<Arc<LoadError>> {
        let known = self.known.lock();
        let failed = known.failed.as_ref();
        failed
            .filter(|failed| since.is_none_or(|since| failed.at >= since))
            .map(|failed| failed.fault.clone())
    }

    /// Remember what loading it with these settings came to.
    pub(crate) fn note(&self, settings: LaneConfig, outcome: &Loaded<ServedModel>) {
        let mut known = self.known.lock();
        match outcome {
            Ok(served) => {
                let ServedModel { lane, providers, warnings } = served.clone();
                let lanes = vec![(settings, Arc::downgrade(&lane))];
                known.served = Some(Served { lanes, providers, warnings });
                known.failed = None;
            }
            Err(fault) => {
                known.failed = Some(Failed { at: Instant::now(), fault: fault.clone() });
            }
        }
    }
}

#[cfg(test)]
mod tests;
