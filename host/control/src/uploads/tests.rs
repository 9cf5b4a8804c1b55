use bytes::Bytes;

use super::*;

const FILE: Bytes = Bytes::from_static(b"grain");

struct Fixture {
    _directory: tempfile::TempDir,
    store: Arc<Store>,
    uploads: Arc<Uploads>,
    digest: Digest,
}

fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open_local(directory.path()).unwrap());
    let uploads = Arc::new(Uploads::new(store.clone()));
    Fixture { _directory: directory, store, uploads, digest: Digest::of(&FILE) }
}

impl Fixture {
    async fn received(&self) -> Received {
        self.store.receive().await.unwrap().write(FILE).await.unwrap().finish().await.unwrap()
    }

    async fn is_there(&self) -> bool {
        self.store.blob(self.digest).await.is_ok()
    }

    /// Wait until nothing needs the file and it is removed.
    async fn gone(&self) {
        let gone = async {
            while self.uploads.is_needed(self.digest) || self.is_there().await {
                tokio::task::yield_now().await;
            }
        };
        let bound = std::time::Duration::from_secs(10);
        tokio::time::timeout(bound, gone).await.expect("the file is not removed within 10 s");
    }
}

#[tokio::test]
async fn a_file_stays_for_the_last_release_that_names_it_whenever_that_was_noted() {
    let Fixture { uploads, digest, .. } = fixture();
    uploads.name(20, [digest]);
    // A checkpoint that another server wrote.
    uploads.name(10, [digest]);
    uploads.forget(19, &HashSet::new()).await;
    assert!(uploads.is_named(digest));
    uploads.forget(20, &HashSet::new()).await;
    assert!(!uploads.is_named(digest));
}

#[tokio::test]
async fn only_a_file_that_nothing_needs_is_removed() {
    let here = fixture();
    let Fixture { uploads, digest, .. } = &here;
    let (one, two) = (uploads.begin(*digest).await, uploads.begin(*digest).await);
    one.keep(here.received().await).await.unwrap();
    uploads.end(one).await;
    assert!(here.is_there().await, "another upload of it is under way");
    let in_a_release = two.clone();
    uploads.end(two).await;
    assert!(here.is_there().await, "its release is being made");
    drop(in_a_release);
    uploads.end(uploads.begin(*digest).await).await;
    assert!(!here.is_there().await);

    let upload = uploads.begin(*digest).await;
    upload.keep(here.received().await).await.unwrap();
    uploads.name(1, [*digest]);
    uploads.end(upload).await;
    assert!(here.is_there().await, "a release names it");
    assert_eq!(uploads.named(), HashSet::from([*digest]));
}

#[tokio::test]
async fn the_file_of_a_client_that_left_is_removed() {
    let here = fixture();
    let upload = here.uploads.begin(here.digest).await;
    upload.keep(here.received().await).await.unwrap();
    let other = here.uploads.begin(here.digest).await;
    drop(upload);
    assert!(here.is_there().await, "another upload of it is under way");
    drop(other);
    // Removed by a task of its own.
    here.gone().await;
    // It can be uploaded anew.
    let upload = here.uploads.begin(here.digest).await;
    upload.keep(here.received().await).await.unwrap();
    assert!(here.is_there().await);
}

#[tokio::test]
async fn a_client_that_leaves_while_its_file_is_kept_leaves_nothing() {
    let here = fixture();
    let upload = here.uploads.begin(here.digest).await;
    // Polled once, it has begun to write.
    let mut keeping = Box::pin(upload.keep(here.received().await));
    let _ = polled_once(&mut keeping).await;
    drop(keeping);
    drop(upload);
    here.gone().await;
}

/// Poll once.
async fn polled_once<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    std::future::poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx)))
        .await
}
