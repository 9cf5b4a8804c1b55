//! The immutable picture of everything that serves, and the cell it is swapped in.
//!
//! The control plane builds a [`Snapshot`] and publishes it; the data plane takes it from the
//! [`Cell`], one for each request. The two planes meet only here. Refuses to know how a snapshot is
//! built.
//!
//! Invariants:
//! - a snapshot never changes: whatever changes is a new one;
//! - a request holds an owned `Arc` of one snapshot from its first look-up to its answer, never an
//!   ArcSwap guard, so what it began with stays loaded until it is done.

#![forbid(unsafe_code)]

mod statistics;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arc_swap::ArcSwap;
pub use gristmill_backend::ProviderHealth;
use gristmill_batch::Lane;
use gristmill_core::{ByteBudget, Digest, Name, PipelineLimits};
use gristmill_sandbox::{Account, Plugin};
pub use statistics::{PipelineStatistics, StageDurations};
use subtle::{Choice, ConstantTimeEq};

/// The cell that holds the current snapshot.
pub struct Cell(ArcSwap<Snapshot>);

impl Cell {
    pub fn new(snapshot: Snapshot) -> Self {
        Self(ArcSwap::from_pointee(snapshot))
    }

    /// The current snapshot.
    pub fn load(&self) -> Arc<Snapshot> {
        self.0.load_full()
    }

    /// Make `snapshot` the current one. Requests under way keep theirs.
    pub fn publish(&self, snapshot: Snapshot) {
        self.0.store(Arc::new(snapshot));
    }
}

/// Everything that serves, as of one release.
#[derive(Default)]
pub struct Snapshot {
    /// The release it shows; 0 before the first.
    pub release: u64,
    pub tenants: HashMap<Name, Tenant>,
    /// The tenant that a key opens, by the key's digest.
    pub keys: HashMap<Digest, Name>,
    pub models: BTreeMap<Name, ModelState>,
}

/// One tenant.
pub struct Tenant {
    pub access: Access,
    /// The models it may run directly.
    pub models: BTreeSet<Name>,
    /// Its share of contended batches.
    pub weight: u32,
    pub share: Arc<Share>,
    pub default_pipeline: Option<Name>,
    pub pipelines: HashMap<Name, Pipeline>,
    pub plugins: BTreeMap<Name, PluginState>,
}

/// What a tenant may have of the host at the same time; the same in every snapshot.
pub struct Share {
    /// Plugin calls beyond its places wait for one another, not for those of others.
    pub calls: Account,
    /// Of requests and answers, and of what plugin calls hold.
    pub bytes: Arc<ByteBudget>,
}

/// Who may call a tenant's pipelines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anyone.
    Open,
    /// Whoever holds one of the keys with these digests.
    Keys(Vec<Digest>),
}

impl Access {
    /// Whether a key with this digest opens the tenant. Takes the same time for every key.
    pub fn admits(&self, key: Digest) -> bool {
        match self {
            Self::Open => true,
            Self::Keys(keys) => {
                let any =
                    keys.iter().fold(Choice::from(0), |found, known| found | same(*known, key));
                any.into()
            }
        }
    }
}

/// Whether two keys are the same, by their digests. Takes the same time for every key.
pub fn same_key(a: Digest, b: Digest) -> bool {
    same(a, b).into()
}

fn same(a: Digest, b: Digest) -> Choice {
    a.as_bytes().ct_eq(b.as_bytes())
}

/// A pipeline, or why it cannot serve.
pub enum Pipeline {
    Ready(Arc<Route>),
    Unavailable(String),
}

/// A pipeline with everything resolved that a request needs.
pub struct Route {
    pub tenant: Name,
    pub pipeline: Name,
    pub pre: Arc<Plugin>,
    pub pre_name: Name,
    pub model: Arc<Lane>,
    pub post: Arc<Plugin>,
    pub post_name: Name,
    /// A JSON document.
    pub settings: Arc<str>,
    /// The tenant's share of contended batches.
    pub weight: u32,
    /// The model's priority level for these requests; none: its default.
    pub priority: Option<u32>,
    pub limits: PipelineLimits,
    /// The tenant's: one for all of its pipelines.
    pub share: Arc<Share>,
    /// The same in every snapshot.
    pub statistics: Arc<PipelineStatistics>,
}

/// A model and whether it is loaded.
#[derive(Clone)]
pub struct ModelState {
    pub digest: Digest,
    /// The release that brought this content.
    pub version: u64,
    /// The releases that brought earlier content, in order.
    pub earlier_versions: Vec<u64>,
    /// What serves it, or why nothing does.
    pub served: Result<ServedModel, String>,
}

/// A model's lane, and what runs its batches.
#[derive(Clone)]
pub struct ServedModel {
    pub lane: Arc<Lane>,
    /// The best first.
    pub providers: Arc<[ProviderHealth]>,
    /// What whoever put it should know.
    pub warnings: Arc<[String]>,
}

/// A plugin and whether it is loaded.
#[derive(Clone)]
pub struct PluginState {
    pub digest: Digest,
    /// The plugin, or why it is not loaded.
    pub plugin: Result<Arc<Plugin>, String>,
}
