//! From digests to assets, and the tenants that hold them.
//!
//! All tenants that name the same file share its bytes. Each tenant holds it, and each file that
//! one of its plugins brings, as a thing of its own, which counts against the tenant's budget.
//!
//! Invariants:
//! - a file counts before it is read, until the last snapshot, change and request that holds it is
//!   gone. A tenant may hold twice what it may have, because a release can replace all of its files
//!   while requests hold those before. What the log names is loaded in any case;
//! - all callers that ask for a file at the same time wait for one attempt and share its result. A
//!   later release does not try again to load a file that an earlier one could not load. Uploading
//!   it again does, and so do the tries of `releases::follow`.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use gristmill_core::{ByteBudget, Digest, HeldBytes};
use gristmill_sandbox::{Asset, Plugin};
use gristmill_state::{Desired, NeededFile, Needs, Serving};
use gristmill_store::{Received, Store};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::accounts::{Accounts, TenantId};
use crate::load::blob::{blob_bytes, read_blob, read_upload};
use crate::load::error::{LoadError, Loaded};

/// A file of a tenant: an asset or a plugin.
pub(crate) type FileKey = (TenantId, Digest);

/// The files that a plugin brings.
pub(crate) type Brought = gristmill_sandbox::Assets;

/// Minimum things that are known before those are looked for that nothing holds.
const KNOWN_MIN: usize = 64;

/// Loads assets.
pub(crate) struct Assets {
    store: Arc<Store>,
    accounts: Arc<Accounts>,
    /// Of one tenant.
    tenant_bytes_max: u64,
    records: Mutex<Records>,
}

/// The files that are held, are being loaded, or could not be loaded.
#[derive(Default)]
struct Records {
    /// The bytes, which all tenants share.
    files: Shared<Digest, Asset>,
    assets: Shared<FileKey, Asset>,
    brought: Shared<FileKey, Brought>,
    loading: Shared<FileKey, OnceCell<Loaded<Arc<Asset>>>>,
    /// Why files could not be loaded for a release.
    failed: HashMap<FileKey, Arc<LoadError>>,
}

/// Things that others hold.
struct Shared<K, T> {
    things: HashMap<K, Weak<T>>,
    /// The number at which those that nothing holds are forgotten. It grows with those that are
    /// held, so that each new thing takes the same time.
    full: usize,
}

/// A tenant that loads files.
#[derive(Clone)]
pub(crate) struct Payer {
    pub(crate) id: TenantId,
    budget: Arc<ByteBudget>,
    /// None for the state of the log.
    max: Option<u64>,
}

impl Assets {
    /// `tenant_bytes_max`: of the assets of one tenant.
    pub(crate) fn new(store: Arc<Store>, accounts: Arc<Accounts>, tenant_bytes_max: u64) -> Self {
        Self { store, accounts, tenant_bytes_max, records: Mutex::default() }
    }

    /// The tenant as one that loads files. `serving` is none for the state of the log.
    /// For a change that is being decided it bounds what the tenant may hold.
    pub(crate) fn payer(&self, id: TenantId, serving: Option<&Serving>) -> Payer {
        let has = |serving: &Serving| {
            let tenant = serving.snapshot.tenants.get(&id.0);
            tenant.map_or(0, |tenant| tenant.asset_bytes())
        };
        // What was there before the setting was lowered can be replaced, too.
        let max = serving.map(|serving| self.tenant_bytes_max.max(has(serving)).saturating_mul(2));
        Payer { budget: self.accounts.asset_bytes(&id), max, id }
    }

    /// The asset, or the reason why it is not loaded. None if neither is known. Never waits.
    pub(crate) fn known(&self, key: &FileKey) -> Option<Loaded<Arc<Asset>>> {
        let records = self.records.lock();
        records.assets.get(key).map(Ok).or_else(|| records.failed.get(key).cloned().map(Err))
    }

    /// The files that this plugin brings, or the reason why they are not held. None if neither is
    /// known. Never waits.
    pub(crate) fn known_brought(&self, key: &FileKey) -> Option<Loaded<Arc<Brought>>> {
        let records = self.records.lock();
        records.brought.get(key).map(Ok).or_else(|| records.failed.get(key).cloned().map(Err))
    }

    /// The asset of this digest, which a release names.
    pub(crate) async fn get(&self, payer: &Payer, digest: Digest) -> Loaded<Arc<Asset>> {
        let loaded = self.load_once(payer, digest, None).await;
        if let Err(fault) = &loaded {
            self.records.lock().failed.insert((payer.id.clone(), digest), fault.clone());
        }
        loaded
    }

    /// The asset in this file. Hold it until a release names it.
    pub(crate) async fn new_file(&self, payer: &Payer, file: &Received) -> Loaded<Arc<Asset>> {
        self.load_once(payer, file.digest(), Some(file)).await
    }

    /// The files that the plugin of this digest brings. Hold them as long as the plugin.
    pub(crate) fn bring(
        &self,
        payer: &Payer,
        digest: Digest,
        plugin: &Plugin,
    ) -> Loaded<Arc<Brought>> {
        let key = (payer.id.clone(), digest);
        let mut records = self.records.lock();
        if let Some(brought) = records.brought.get(&key) {
            return Ok(brought);
        }
        let hold = |file: &Asset| payer.hold(file.bytes().len() as u64);
        match plugin.assets().held_by(hold).map_err(Arc::new) {
            Ok(brought) => {
                records.failed.remove(&key);
                Ok(records.brought.get_or_insert(key, || Arc::new(brought)))
            }
            Err(fault) => {
                records.failed.insert(key, fault.clone());
                Err(fault)
            }
        }
    }

    /// Load the asset, once for all callers that ask at the same time. If the caller that loads it
    /// leaves, the next caller tries.
    async fn load_once(
        &self,
        payer: &Payer,
        digest: Digest,
        file: Option<&Received>,
    ) -> Loaded<Arc<Asset>> {
        let key = (payer.id.clone(), digest);
        let loading = {
            let mut records = self.records.lock();
            if let Some(asset) = records.assets.get(&key) {
                return Ok(asset);
            }
            records.loading.get_or_insert(key.clone(), Arc::default)
        };
        let load = || async { self.load(payer, digest, file).await.map_err(Arc::new) };
        let loaded = loading.get_or_init(load).await.clone();
        if let Ok(asset) = &loaded {
            let mut records = self.records.lock();
            records.failed.remove(&key);
            records.assets.get_or_insert(key, || asset.clone());
        }
        loaded
    }

    async fn load(
        &self,
        payer: &Payer,
        digest: Digest,
        file: Option<&Received>,
    ) -> Result<Arc<Asset>, LoadError> {
        let shared = self.records.lock().files.get(&digest);
        let bytes = match (&shared, file) {
            (Some(shared), _) => shared.bytes().len() as u64,
            (None, Some(file)) => file.bytes(),
            (None, None) => blob_bytes(&self.store, digest).await?,
        };
        let held = payer.hold(bytes)?;
        let shared = match (shared, file) {
            (Some(shared), _) => shared,
            (None, Some(file)) => self.shared(digest, read_upload(file).await?),
            (None, None) => self.shared(digest, read_blob(&self.store, digest).await?),
        };
        Ok(Arc::new(shared.held(held)))
    }

    /// The file with these bytes, or the one that was read meanwhile.
    fn shared(&self, digest: Digest, bytes: Bytes) -> Arc<Asset> {
        self.records.lock().files.get_or_insert(digest, || Arc::new(Asset::new(bytes)))
    }

    /// Forget why files could not be loaded that `desired` does not name.
    pub(crate) fn forget(&self, desired: &Desired) {
        let mut records = self.records.lock();
        if records.failed.is_empty() {
            return;
        }
        let tenants = records.failed.keys().map(|((tenant, _), _)| tenant.clone());
        let tenants: BTreeSet<_> = tenants.collect();
        let Needs { plugins, assets, .. } = Needs::of(desired, &tenants);
        records.failed.retain(|((tenant, since), digest), _| {
            let file = NeededFile { tenant, since: *since, digest: *digest };
            plugins.contains_key(&file) || assets.contains_key(&file)
        });
    }
}

impl Payer {
    /// Hold the bytes of a file.
    ///
    /// # Errors
    /// [`LoadError::AssetsHeld`]
    fn hold(&self, bytes: u64) -> Result<HeldBytes, LoadError> {
        let held = self.budget.hold(usize::try_from(bytes).unwrap_or(usize::MAX));
        let wanted = self.budget.held() as u64;
        match self.max {
            Some(max) if wanted > max => Err(LoadError::AssetsHeld { wanted, max }),
            _ => Ok(held),
        }
    }
}

impl<K, T> Default for Shared<K, T> {
    fn default() -> Self {
        Self { things: HashMap::new(), full: KNOWN_MIN }
    }
}

impl<K: Eq + Hash, T> Shared<K, T> {
    fn get(&self, key: &K) -> Option<Arc<T>> {
        self.things.get(key)?.upgrade()
    }

    /// The thing of this key, or a new one. Hold it, or it is forgotten.
    fn get_or_insert(&mut self, key: K, new: impl FnOnce() -> Arc<T>) -> Arc<T> {
        if let Some(thing) = self.get(&key) {
            return thing;
        }
        if self.things.len() >= self.full {
            self.things.retain(|_, thing| thing.strong_count() > 0);
            self.full = 2 * self.things.len() + KNOWN_MIN;
        }
        let new = new();
        self.things.insert(key, Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{digest, figure_parts, name};

    /// A loader whose tenants have at most so many bytes of assets, and an uploaded file.
    async fn loader(folder: &std::path::Path, max: u64, content: &[u8]) -> (Assets, Received) {
        let store = Arc::new(Store::open_local(folder).unwrap());
        let incoming = store.receive().await.unwrap();
        let incoming = incoming.write(Bytes::copy_from_slice(content)).await.unwrap();
        let file = incoming.finish().await.unwrap();
        let (accounts, _) = Accounts::new(1 << 20, 16, figure_parts());
        (Assets::new(store, accounts.into(), max), file)
    }

    #[tokio::test]
    async fn each_tenant_holds_a_file_that_all_of_them_share() {
        let folder = tempfile::tempdir().unwrap();
        let (assets, file) = loader(folder.path(), 10, b"0123456789abcde").await;
        let payer = |tenant: &str| assets.payer((name(tenant), 1), Some(&Serving::default()));
        let (one, other) = (payer("one"), payer("other"));
        let loaded = assets.new_file(&one, &file).await.unwrap();
        let same = assets.new_file(&one, &file).await.unwrap();
        assert!(Arc::ptr_eq(&loaded, &same));
        let others = assets.new_file(&other, &file).await.unwrap();
        assert_eq!(loaded.bytes().as_ptr(), others.bytes().as_ptr());
        assert_eq!((one.budget.held(), other.budget.held()), (15, 15));
        // The bytes count as long as a request reads them, although the asset is gone.
        let read = loaded.bytes().clone();
        drop((loaded, same));
        assert_eq!((one.budget.held(), other.budget.held()), (15, 15));
        assert!(assets.known(&(one.id.clone(), file.digest())).is_none());
        let refused = assets.new_file(&one, &file).await.unwrap_err();
        assert!(matches!(*refused, LoadError::AssetsHeld { wanted: 30, max: 20 }), "{refused}");
        drop(read);
        assert_eq!((one.budget.held(), other.budget.held()), (0, 15));
        assets.new_file(&one, &file).await.unwrap();
    }

    #[tokio::test]
    async fn what_the_log_names_is_held_in_any_case() {
        let folder = tempfile::tempdir().unwrap();
        let (assets, file) = loader(folder.path(), 1, b"0123456789").await;
        let payer = assets.payer((name("one"), 1), None);
        let loaded = assets.new_file(&payer, &file).await.unwrap();
        assert_eq!((payer.budget.held(), &loaded.bytes()[..]), (10, &b"0123456789"[..]));
    }

    #[tokio::test]
    async fn a_failure_is_known_until_no_release_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (assets, _) = loader(folder.path(), 10, b"").await;
        let payer = assets.payer((name("one"), 1), None);
        let key = (payer.id.clone(), digest(1));
        assert!(assets.get(&payer, digest(1)).await.unwrap_err().is_unread());
        assert!(assets.known(&key).unwrap().is_err());
        let mut desired = Desired::default();
        let (tenant, spec) = (name("one"), gristmill_state::TenantSpec::default());
        let put_tenant = gristmill_state::Change::PutTenant { tenant: tenant.clone(), spec };
        let (asset, digest) = (name("a"), digest(1));
        let put_asset = gristmill_state::Change::PutAsset { tenant, asset, digest };
        desired.apply(1, &[put_tenant, put_asset]).unwrap();
        assets.forget(&desired);
        assert!(assets.known(&key).is_some());
        assets.forget(&Desired::default());
        assert!(assets.known(&key).is_none());
    }

    #[test]
    fn things_that_nothing_holds_are_forgotten() {
        let mut shared = Shared::<usize, usize>::default();
        let held: Vec<_> = (0..10).map(|key| shared.get_or_insert(key, || key.into())).collect();
        (10..10_000).for_each(|key| drop(shared.get_or_insert(key, || key.into())));
        assert!(shared.things.len() <= shared.full && shared.full <= 2 * 10 + KNOWN_MIN);
        assert!((0..10).all(|key| shared.get(&key).as_ref() == Some(&held[key])));
    }
}
