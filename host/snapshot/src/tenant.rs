//! A tenant: who may call it and what it owns.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{Digest, Late, Name, Named, Record, Sink, SinkNames, Slowest};
use gristmill_metrics::RequestFigures;
use gristmill_metrics::usage::Counter;
use gristmill_sandbox::{Asset, Assets, Plugin};

use crate::access::Access;
use crate::cors::Cors;
use crate::quota::{QuotaLimits, TenantQuota};
use crate::route::Pipeline;
use crate::versions::KeptVersion;

/// One tenant.
pub struct Tenant {
    /// Who may call it.
    pub access: Access,
    /// Which web pages may call it. None if its document does not say it: then the server does.
    pub cors: Option<Cors>,
    /// Whether it has a page on which anyone tries its pipelines. Only an open tenant has.
    pub has_try_page: bool,
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
    /// The files that its plugins bring, by the digests of the plugins. They count against its
    /// budget of assets, as its assets do.
    pub brought: HashMap<Digest, Arc<Assets>>,
    /// Its assets by name.
    pub assets: BTreeMap<Name, AssetState>,
}

impl Tenant {
    /// The files that its plugins can open: the loaded assets, and what its plugins bring. One that
    /// has several names is there several times.
    pub fn asset_files(&self) -> impl Iterator<Item = &Arc<Asset>> {
        let assets = self.assets.values().flat_map(|state| state.versions());
        let assets = assets.filter_map(|(_, asset)| asset.as_ref().ok());
        assets.chain(self.brought.values().flat_map(|files| files.files()))
    }

    /// The bytes of these files.
    pub fn asset_bytes(&self) -> u64 {
        let bytes = |asset: &Arc<Asset>| (Arc::as_ptr(asset), asset.bytes().len() as u64);
        self.asset_files().map(bytes).collect::<HashMap<_, _>>().values().sum()
    }
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
    /// The tenant's slowest requests.
    pub slowest: Arc<Slowest>,
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

    fn slowest(&self) -> Option<&Slowest> {
        Some(&self.slowest)
    }
}

impl Named for Direct {
    fn names(&self) -> SinkNames<'_> {
        SinkNames { tenant: Some(&self.tenant), pipeline: None, model: Some(&self.model) }
    }
}

/// A plugin and whether it is loaded.
pub type PluginState = FileState<Plugin>;

/// An asset and whether it is loaded.
pub type AssetState = FileState<Asset>;

/// A file of a tenant with its versions, each loaded as a `T` or with the reason why it is not.
pub struct FileState<T> {
    /// The digest of the newest version's file.
    pub digest: Digest,
    /// The newest version: the release that brought this content.
    pub version: u64,
    /// The newest version, or why it is not loaded.
    pub newest: Result<Arc<T>, String>,
    /// The earlier versions that stay loaded.
    pub kept: BTreeMap<u64, KeptVersion<Arc<T>>>,
}

impl<T> FileState<T> {
    /// The versions that stay loaded, the newest first: each loaded, or why it is not.
    pub fn versions(&self) -> impl Iterator<Item = (u64, &Result<Arc<T>, String>)> {
        let kept = self.kept.iter().rev().map(|(version, kept)| (*version, &kept.loaded));
        std::iter::once((self.version, &self.newest)).chain(kept)
    }

    /// A version, or the newest one. None if it does not stay loaded.
    pub fn of_version(&self, version: Option<u64>) -> Option<&Result<Arc<T>, String>> {
        match version {
            None => Some(&self.newest),
            Some(asked) => self
                .versions()
                .find(|(own_version, _)| *own_version == asked)
                .map(|(_, loaded)| loaded),
        }
    }

    /// The files of all versions, each loaded or with the reason why it is not.
    pub fn files(&self) -> impl Iterator<Item = (Digest, &Result<Arc<T>, String>)> {
        let kept = self.kept.values().map(|kept| (kept.digest, &kept.loaded));
        std::iter::once((self.digest, &self.newest)).chain(kept)
    }
}
