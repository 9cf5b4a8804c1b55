//! A tenant: who may call it and what it owns.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{Digest, Late, Name, Named, Record, Sink, SinkNames};
use gristmill_metrics::RequestFigures;
use gristmill_metrics::usage::Counter;
use gristmill_sandbox::Plugin;

use crate::access::Access;
use crate::quota::{QuotaLimits, TenantQuota};
use crate::route::Pipeline;
use crate::versions::KeptVersion;

/// One tenant.
pub struct Tenant {
    /// Who may call it.
    pub access: Access,
    /// The models it may run directly.
    pub models: BTreeMap<Name, Arc<Direct>>,
    /// Its share of contended batches, against the weights of others.
    pub weight: u32,
    /// Whether its rows share batches with no other tenant's.
    pub keeps_apart: bool,
    /// The places and the memory that all of its requests share, and what they have used.
    pub quota: Arc<TenantQuota>,
    /// The limits that its document sets on its use over time.
    pub limits: QuotaLimits,
    /// The pipeline that serves if a request names none.
    pub default_pipeline: Option<Name>,
    /// Its pipelines by name.
    pub pipelines: HashMap<Name, Pipeline>,
    /// Its plugins by name.
    pub plugins: BTreeMap<Name, PluginState>,
}

/// What a tenant's requests to a model add to.
pub struct Direct {
    /// The tenant.
    pub tenant: Name,
    /// The model.
    pub model: Name,
    /// Their figures, which are the same in every snapshot.
    pub figures: Arc<RequestFigures>,
    /// Counts what they use.
    pub usage: Arc<Counter>,
}

impl Sink for Direct {
    fn record(&self, record: &Record, took: Duration) {
        self.figures.record(record, took);
        self.usage.record(record, took);
    }

    fn add_late(&self, late: &mut Late, _: &str) {
        late.add(self.figures.clone());
        late.add(self.usage.clone());
    }
}

impl Named for Direct {
    fn names(&self) -> SinkNames<'_> {
        SinkNames { tenant: Some(&self.tenant), pipeline: None, model: Some(&self.model) }
    }
}

/// A plugin and whether it is loaded.
#[derive(Clone)]
pub struct PluginState {
    /// The digest of the newest version's file.
    pub digest: Digest,
    /// The newest version: the release that brought this content.
    pub version: u64,
    /// The newest version, or why it is not loaded.
    pub plugin: Result<Arc<Plugin>, String>,
    /// The earlier versions that stay loaded.
    pub kept: BTreeMap<u64, KeptVersion<Arc<Plugin>>>,
}

impl PluginState {
    /// The versions that stay loaded, the newest first: each plugin, or why it is not loaded.
    pub fn versions(&self) -> impl Iterator<Item = (u64, &Result<Arc<Plugin>, String>)> {
        let kept = self.kept.iter().rev().map(|(version, kept)| (*version, &kept.loaded));
        std::iter::once((self.version, &self.plugin)).chain(kept)
    }

    /// A version, or the newest one. None if it does not stay loaded.
    pub fn of_version(&self, version: Option<u64>) -> Option<&Result<Arc<Plugin>, String>> {
        match version {
            None => Some(&self.plugin),
            Some(asked) => self.versions().find(|(own, _)| *own == asked).map(|(_, plugin)| plugin),
        }
    }
}
