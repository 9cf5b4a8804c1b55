//! The steps of making a change.

use gristmill_core::{Digest, Name};
use gristmill_state::{Desired, Difference, Model, Power};

use crate::load::at_hand::AtHand;
use crate::samples::shown::{ShownSample, ShownSamples};
use crate::samples::subject::SampleSubject;

/// A release that was made, or would be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// The number of the release.
    pub release: u64,
    /// The tag that the change gave to its subject. None if that was deleted, or if there were
    /// several changes.
    pub tag: Option<Digest>,
    /// The things that differ afterwards, if a list of changes was asked for.
    pub differences: Vec<Difference>,
    /// What may do more or less afterwards.
    pub power: Vec<Power>,
    /// What the samples got, if a dry run asked for it.
    pub samples: Vec<ShownSample>,
}

/// The outcome of planning a change once.
pub(super) enum NextStep {
    Made(Published),
    /// This state is to be served, but some plugins or models that it names are not loaded, or some
    /// of these unloaded models are not proven.
    Load(Desired, Vec<(Name, Model)>),
    /// The same for this state of the log, before the change is decided.
    LoadLog(Desired),
    /// The samples of these pipelines have to pass.
    RunSamples(Vec<SampleSubject>),
    /// These files must stay in the shared store until all have read the release.
    Refresh(Vec<Digest>),
}

/// The parts of a change that were prepared while the lock was free.
#[derive(Default)]
pub(super) struct Prepared {
    pub(super) at_hand: AtHand,
    /// The pipelines whose samples passed, or whose samples' answers are in `shown`.
    pub(super) proven: Vec<SampleSubject>,
    pub(super) shown: ShownSamples,
    /// The files that stay in the shared store.
    pub(super) fresh: Vec<Digest>,
}
