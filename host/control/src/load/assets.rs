//! From digests to assets. All that name the same file share its bytes.
//!
//! Invariant: a file is let go with the last snapshot, change or request that holds it. A file that
//! could not be read is tried again by the next release that needs it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use gristmill_core::Digest;
use gristmill_sandbox::Asset;
use gristmill_store::{Received, Store};
use parking_lot::Mutex;

use crate::load::blob::{read_blob, read_upload};
use crate::load::error::{LoadError, Loaded};

/// Loads assets.
pub(crate) struct Assets {
    store: Arc<Store>,
    loaded: Mutex<HashMap<Digest, Weak<Asset>>>,
}

impl Assets {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, loaded: Mutex::default() }
    }

    /// The asset of this digest, if it is loaded. Never waits.
    pub(crate) fn known(&self, digest: Digest) -> Option<Arc<Asset>> {
        self.loaded.lock().get(&digest)?.upgrade()
    }

    /// The asset of this digest, which a release names.
    pub(crate) async fn get(&self, digest: Digest) -> Loaded<Arc<Asset>> {
        match self.known(digest) {
            Some(asset) => Ok(asset),
            None => self.shared(digest, read_blob(&self.store, digest).await),
        }
    }

    /// The asset in this file. Hold it until a release names it.
    pub(crate) async fn new_file(&self, file: &Received) -> Loaded<Arc<Asset>> {
        match self.known(file.digest()) {
            Some(asset) => Ok(asset),
            None => self.shared(file.digest(), read_upload(file).await),
        }
    }

    /// The asset with these bytes, or one that was loaded meanwhile.
    fn shared(&self, digest: Digest, read: Result<Bytes, LoadError>) -> Loaded<Arc<Asset>> {
        let bytes = read?;
        let mut loaded = self.loaded.lock();
        loaded.retain(|_, asset| asset.strong_count() > 0);
        if let Some(asset) = loaded.get(&digest).and_then(Weak::upgrade) {
            return Ok(asset);
        }
        let asset = Arc::new(Asset::new(bytes));
        loaded.insert(digest, Arc::downgrade(&asset));
        Ok(asset)
    }
}
