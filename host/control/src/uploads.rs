//! Keeps account of the uploaded files that are needed, so that files of refused uploads can be
//! removed.
//!
//! A file is needed while an upload of it is under way. When a release names it, it is needed for
//! as long as that release is kept, even if a later one deletes the plugin or model.
//!
//! Invariant: a file is removed only if no upload under way, no kept release and not the checkpoint
//! names it. An upload is under way until its last write and its release have ended, whether or not
//! its client still waits.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gristmill_core::Digest;
use gristmill_store::{Received, Store};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use crate::error::ControlError;
use crate::task::joined;

/// The needed files.
pub(crate) struct Uploads {
    store: Arc<Store>,
    needed: Mutex<Needed>,
    /// Held while a file is removed and while an upload begins, so that an upload does not rely on
    /// a file that is being removed.
    removing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Needed {
    /// Files that releases name, each with the last one that does.
    named: HashMap<Digest, u64>,
    /// Files with uploads under way.
    under_way: HashMap<Digest, UnderWay>,
}

/// The uploads of one file.
#[derive(Default)]
struct UnderWay {
    uploads: usize,
    /// Set when one of them has kept the file.
    kept: Arc<OnceCell<()>>,
}

/// An upload under way. When the last clone of the last upload of a file is dropped, the file is
/// removed if no release names it. This does not depend on the client's staying.
#[derive(Clone)]
pub(crate) struct Upload(Arc<SharedUpload>);

struct SharedUpload {
    uploads: Arc<Uploads>,
    digest: Digest,
    kept: Arc<OnceCell<()>>,
}

impl Uploads {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, needed: Mutex::default(), removing: tokio::sync::Mutex::default() }
    }

    /// Note that this release names these files. A file keeps the last of its releases: that of a
    /// checkpoint may be noted after later ones.
    pub(crate) fn name(&self, release: u64, digests: impl IntoIterator<Item = Digest>) {
        let mut needed = self.needed.lock();
        for digest in digests {
            let last = needed.named.entry(digest).or_insert(release);
            *last = release.max(*last);
        }
    }

    /// Note that releases up to `base` are no longer kept. Files that only they named are removed,
    /// but for those of the state that they led to.
    pub(crate) async fn forget(self: &Arc<Self>, base: u64, state: &HashSet<Digest>) {
        let is_old = |digest: &Digest, release: &u64| *release <= base && !state.contains(digest);
        let old: Vec<_> = self
            .needed
            .lock()
            .named
            .extract_if(|digest, release| is_old(digest, release))
            .collect();
        for (digest, _) in old {
            self.clone().remove_unneeded(digest).await;
        }
    }

    /// The files that releases name.
    pub(crate) fn named(&self) -> HashSet<Digest> {
        self.needed.lock().named.keys().copied().collect()
    }

    /// Whether a release names the file.
    pub(crate) fn is_named(&self, digest: Digest) -> bool {
        self.needed.lock().named.contains_key(&digest)
    }

    /// The files with uploads under way.
    pub(crate) fn under_way(&self) -> Vec<Digest> {
        self.needed.lock().under_way.keys().copied().collect()
    }

    /// Begin an upload. Its file need not exist yet.
    pub(crate) async fn begin(self: &Arc<Self>, digest: Digest) -> Upload {
        let _removing = self.removing.lock().await;
        let mut needed = self.needed.lock();
        let under_way = needed.under_way.entry(digest).or_default();
        under_way.uploads += 1;
        let kept = under_way.kept.clone();
        Upload(Arc::new(SharedUpload { uploads: self.clone(), digest, kept }))
    }

    /// End the upload. If nothing needs its file, the file is removed when this returns.
    pub(crate) async fn end(self: &Arc<Self>, upload: Upload) {
        let digest = upload.digest();
        drop(upload);
        if let Err(error) = tokio::spawn(self.clone().remove_unneeded(digest)).await {
            tracing::error!(%digest, %error, "a file that no release names stays");
        }
    }

    /// Runs to its end once it has begun. The file must not be uploaded again meanwhile.
    async fn remove_unneeded(self: Arc<Self>, digest: Digest) {
        let _removing = self.removing.lock().await;
        if self.is_needed(digest) {
            return;
        }
        match self.store.remove_blob(digest).await {
            Ok(true) => tracing::info!(%digest, "removed a file that no release names"),
            // The upload was refused before its file was kept, or the file is removed already.
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%digest, ?error, "a file that no release names stays");
            }
        }
    }

    fn is_needed(&self, digest: Digest) -> bool {
        let needed = self.needed.lock();
        needed.named.contains_key(&digest) || needed.under_way.contains_key(&digest)
    }
}

impl Upload {
    /// The file's name.
    pub(crate) fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Keep the file, once for all who upload it at the same time. Runs to its end even if the
    /// caller is cancelled: until then the upload is under way.
    pub(crate) async fn keep(&self, file: Received) -> Result<(), ControlError> {
        let upload = self.clone();
        let keeping = tokio::spawn(async move {
            let SharedUpload { uploads, kept, .. } = &*upload.0;
            kept.get_or_try_init(|| uploads.store.keep(file)).await.copied()
        });
        Ok(joined("kept a file", keeping).await??)
    }

    /// Let later uploads of the same file keep it anew, so that one that was damaged meanwhile is
    /// replaced.
    pub(crate) fn settle(&self) {
        let mut needed = self.0.uploads.needed.lock();
        if let Some(under_way) = needed.under_way.get_mut(&self.0.digest) {
            under_way.kept = Arc::default();
        }
    }
}

impl Drop for SharedUpload {
    fn drop(&mut self) {
        let mut needed = self.uploads.needed.lock();
        if let Some(under_way) = needed.under_way.get_mut(&self.digest) {
            under_way.uploads -= 1;
            if under_way.uploads == 0 {
                needed.under_way.remove(&self.digest);
            }
        }
        drop(needed);
        // If the runtime has ended, the next start removes the file.
        if let Ok(runtime) = Handle::try_current()
            && !self.uploads.is_needed(self.digest)
        {
            runtime.spawn(self.uploads.clone().remove_unneeded(self.digest));
        }
    }
}

#[cfg(test)]
mod tests;
