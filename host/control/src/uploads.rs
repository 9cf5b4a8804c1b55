//! Which uploaded files are needed, so that those of refused uploads can be removed.
//!
//! A file is needed while an upload of it is under way, and for good once a release of the log
//! names it, although a later one may have deleted what it was.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_core::Digest;
use gristmill_store::Store;

/// The needed files.
#[derive(Default)]
pub(crate) struct Uploads {
    needed: Mutex<Needed>,
    /// Held while a file is removed and while an upload begins: a file that is being removed is not
    /// taken for one that is there.
    removing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Needed {
    /// By releases.
    named: HashSet<Digest>,
    /// By how many uploads.
    under_way: HashMap<Digest, usize>,
}

/// An upload under way; over when its last clone is dropped.
#[derive(Clone)]
pub(crate) struct Upload(Arc<UnderWay>);

struct UnderWay {
    uploads: Arc<Uploads>,
    digest: Digest,
}

impl Uploads {
    /// From now on releases name these files.
    pub(crate) fn name(&self, digests: impl IntoIterator<Item = Digest>) {
        self.needed().named.extend(digests);
    }

    /// The files that releases name.
    pub(crate) fn named(&self) -> HashSet<Digest> {
        self.needed().named.clone()
    }

    /// An upload begins, of a file that need not be there yet.
    pub(crate) async fn begin(self: &Arc<Self>, digest: Digest) -> Upload {
        let _removing = self.removing.lock().await;
        *self.needed().under_way.entry(digest).or_default() += 1;
        Upload(Arc::new(UnderWay { uploads: self.clone(), digest }))
    }

    /// The upload is over: remove its file where nothing needs it.
    pub(crate) async fn end(&self, upload: Upload, store: &Store) {
        let digest = upload.digest();
        drop(upload);
        let _removing = self.removing.lock().await;
        if self.is_needed(digest) {
            return;
        }
        match store.remove_blob(digest).await {
            Ok(()) => tracing::info!(%digest, "removed the file of a refused upload"),
            Err(error) => {
                tracing::warn!(%digest, ?error, "the file of a refused upload stays");
            }
        }
    }

    fn is_needed(&self, digest: Digest) -> bool {
        let needed = self.needed();
        needed.named.contains(&digest) || needed.under_way.contains_key(&digest)
    }

    fn needed(&self) -> MutexGuard<'_, Needed> {
        self.needed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upload {
    /// The file's name.
    pub(crate) fn digest(&self) -> Digest {
        self.0.digest
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut needed = self.uploads.needed();
        if let Some(count) = needed.under_way.get_mut(&self.digest) {
            *count -= 1;
            if *count == 0 {
                needed.under_way.remove(&self.digest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gristmill_store::digest_of;

    use super::*;

    #[tokio::test]
    async fn only_a_file_that_nothing_needs_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open_local(directory.path()).unwrap();
        let uploads = Arc::new(Uploads::default());
        let file = Bytes::from_static(b"grain");
        let digest = digest_of(&file);
        let is_there = async || store.blob(digest).await.is_ok();

        let (one, two) = (uploads.begin(digest).await, uploads.begin(digest).await);
        store.put_blob(digest, file.clone()).await.unwrap();
        uploads.end(one, &store).await;
        assert!(is_there().await, "another upload of it is under way");
        let in_a_release = two.clone();
        uploads.end(two, &store).await;
        assert!(is_there().await, "its release is being made");
        drop(in_a_release);
        uploads.end(uploads.begin(digest).await, &store).await;
        assert!(!is_there().await);

        let upload = uploads.begin(digest).await;
        store.put_blob(digest, file).await.unwrap();
        uploads.name([digest]);
        uploads.end(upload, &store).await;
        assert!(is_there().await, "a release names it");
        assert_eq!(uploads.named(), HashSet::from([digest]));
    }
}
