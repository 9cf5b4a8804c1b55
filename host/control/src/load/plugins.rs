//! From digests to loaded plugins; each is loaded once.
//!
//! Invariant: all callers that ask for a plugin at the same time wait for one attempt and share its
//! result. A later release does not try again to load a plugin that an earlier one could not load;
//! uploading the plugin again does.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use gristmill_core::{Digest, Name, PluginLimits};
use gristmill_sandbox::{Grant, JobStatus, Plugin, RuntimeStatus, Sandbox};
use gristmill_state::Desired;
use gristmill_store::{Received, Store};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::accounts::Accounts;
use crate::load::blob::{read_blob, read_upload};
use crate::load::error::{LoadError, Loaded};

/// Loads plugins. Errors are written for the person who deployed the plugin.
pub(crate) struct Plugins {
    store: Arc<Store>,
    sandbox: Arc<Sandbox>,
    accounts: Arc<Accounts>,
    slots: Mutex<HashMap<Digest, PluginSlot>>,
    /// The plugins that releases may not name: those that were loaded, or tried, since they were
    /// looked at last, and those that a release dropped. All others that have compiled code or a
    /// slot are named.
    unnamed: Mutex<HashSet<Digest>>,
    /// The limits of a plugin's first instantiation.
    probe_limits: PluginLimits,
}

/// The record of a plugin. The plugin itself is held by the snapshots that serve it and by changes
/// under way.
#[derive(Default)]
struct PluginSlot {
    loaded: Weak<Plugin>,
    /// All callers that ask for it at the same time wait for one attempt and share its result.
    loading: Weak<OnceCell<Loaded<Arc<Plugin>>>>,
    /// The reason why it could not be loaded for a release. Later releases do not try again,
    /// because an attempt may take a minute. Uploading the plugin again does.
    failed: Option<Arc<LoadError>>,
}

impl Plugins {
    pub(crate) fn new(
        store: Arc<Store>,
        sandbox: Arc<Sandbox>,
        accounts: Arc<Accounts>,
        probe_limits: PluginLimits,
    ) -> Self {
        let (slots, unnamed) = (Mutex::default(), Mutex::default());
        Self { store, sandbox, accounts, slots, unnamed, probe_limits }
    }

    /// Plugins that are being compiled, or wait for it.
    pub(crate) fn jobs(&self) -> Vec<JobStatus> {
        self.sandbox.jobs()
    }

    /// The runtimes of languages, and how many plugins were loaded into another one before.
    pub(crate) fn runtimes(&self) -> (Vec<RuntimeStatus>, u64) {
        (self.sandbox.runtimes(), self.sandbox.reloaded_plugins())
    }

    /// The plugin of this digest, or the reason why it is not loaded. None if neither is known.
    /// Never waits.
    pub(crate) fn known(&self, digest: Digest) -> Option<Loaded<Arc<Plugin>>> {
        let slots = self.slots.lock();
        let slot = slots.get(&digest)?;
        slot.loaded.upgrade().map(Ok).or_else(|| slot.failed.clone().map(Err))
    }

    /// The plugin of this digest, which a release names.
    pub(crate) async fn get(&self, digest: Digest) -> Loaded<Arc<Plugin>> {
        let loaded = self.load_once(digest, None).await;
        if let Err(fault) = &loaded {
            self.slots.lock().entry(digest).or_default().failed = Some(fault.clone());
        }
        loaded
    }

    /// The plugin in this file. Hold it until a release names it.
    pub(crate) async fn new_file(&self, file: &Received) -> Loaded<Arc<Plugin>> {
        self.load_once(file.digest(), Some(file)).await
    }

    /// Load the plugin, once for all callers that ask at the same time. If the caller that loads it
    /// leaves, the next caller tries.
    async fn load_once(&self, digest: Digest, file: Option<&Received>) -> Loaded<Arc<Plugin>> {
        self.unnamed.lock().insert(digest);
        let loading = {
            let mut slots = self.slots.lock();
            let slot = slots.entry(digest).or_default();
            if let Some(plugin) = slot.loaded.upgrade() {
                return Ok(plugin);
            }
            slot.loading.upgrade().unwrap_or_else(|| {
                let loading = Arc::default();
                slot.loading = Arc::downgrade(&loading);
                loading
            })
        };
        let load = || async { self.load(digest, file).await.map_err(Arc::new) };
        let loaded = loading.get_or_init(load).await.clone();
        let mut slots = self.slots.lock();
        match &loaded {
            Ok(plugin) => {
                let slot = slots.entry(digest).or_default();
                (slot.loaded, slot.failed) = (Arc::downgrade(plugin), None);
            }
            // A failure is not kept: a later caller tries again.
            Err(_) => {
                drop(loading);
                if slots.get(&digest).is_some_and(|slot| !slot.is_of_use()) {
                    slots.remove(&digest);
                }
            }
        }
        loaded
    }

    /// Compile the plugin if its code is not cached, and instantiate it once.
    async fn load(
        &self,
        digest: Digest,
        file: Option<&Received>,
    ) -> Result<Arc<Plugin>, LoadError> {
        let file = match file {
            Some(file) => read_upload(file).await?,
            None => read_blob(&self.store, digest).await?,
        };
        let plugin = Arc::new(self.sandbox.load(digest, file).await?);
        // On a separate account, so that a busy tenant can deploy, too.
        let quota = self.accounts.new_quota();
        let (limits, account) = (&self.probe_limits, &quota.calls);
        let grant = Grant::new(limits, account);
        plugin.probe(grant).await.map_err(LoadError::Probe)?;
        Ok(plugin)
    }

    /// The bytes of the compiled code that all versions of the tenant's plugins have on disk.
    pub(crate) async fn compiled_bytes(
        &self,
        desired: &Desired,
        tenant: &Name,
    ) -> Result<u64, LoadError> {
        let plugins = desired.tenants.get(tenant).map(|tenant| tenant.plugins.values());
        let versions =
            plugins.into_iter().flatten().flat_map(gristmill_state::TenantFile::versions);
        // A file that has two names is compiled once.
        let digests = versions.map(|(_, digest)| digest).collect();
        Ok(self.sandbox.compiled_bytes(digests).await?)
    }

    /// Note that a release dropped these files, so that no plugin may have them.
    pub(crate) fn dropped(&self, files: impl IntoIterator<Item = Digest>) {
        self.unnamed.lock().extend(files);
    }

    /// Forget plugins that `desired` does not name, with their compiled code, unless a snapshot or
    /// a change holds them or they are among those `also` kept: those are looked at again the next
    /// time. Requests under way keep what they hold.
    pub(crate) async fn forget(&self, desired: &Desired, also: &[Digest]) {
        let unused: HashSet<Digest> = {
            let (mut unnamed, mut slots) = (self.unnamed.lock(), self.slots.lock());
            unnamed.retain(|digest| !desired.has_plugin(*digest));
            let is_unused = |digest: &Digest| {
                let slot = slots.get_mut(digest);
                let is_held = slot.is_some_and(|slot| {
                    slot.failed = None;
                    slot.is_of_use()
                });
                !is_held && !also.contains(digest)
            };
            let unused: HashSet<_> = unnamed.extract_if(is_unused).collect();
            unused.iter().for_each(|digest| drop(slots.remove(digest)));
            unused
        };
        if unused.is_empty() {
            return;
        }
        if let Err(error) = self.sandbox.remove_compiled(unused.clone()).await {
            tracing::warn!(error = error.in_full(), "unused compiled code cannot be removed");
            self.unnamed.lock().extend(unused);
        }
    }

    /// Remove all compiled code on disk that `desired` does not name.
    pub(crate) async fn remove_leftovers(&self, desired: &Desired) {
        let desired = desired.clone();
        let is_named = move |digest| desired.has_plugin(digest);
        if let Err(error) = self.sandbox.retain_compiled(is_named).await {
            tracing::warn!(error = error.in_full(), "unused compiled code cannot be removed");
        }
    }
}

impl PluginSlot {
    fn is_of_use(&self) -> bool {
        let holders = self.loaded.strong_count() + self.loading.strong_count();
        holders > 0 || self.failed.is_some()
    }
}
