use std::os::unix::fs::MetadataExt;

use bytes::Bytes;
use gristmill_core::{Digest, ErrorCode};

use crate::{LogListing, Received, Removed, Store, StoreError};

fn open() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_local(directory.path()).unwrap();
    (directory, store)
}

async fn received(store: &Store, blob: &'static [u8]) -> Received {
    let mut incoming = store.receive().await.unwrap();
    for piece in blob.chunks(3) {
        incoming = incoming.write(Bytes::from_static(piece)).await.unwrap();
    }
    incoming.finish().await.unwrap()
}

async fn put(store: &Store, blob: &'static [u8]) -> Digest {
    let received = received(store, blob).await;
    let digest = received.digest();
    assert_eq!(digest, Digest::of(blob));
    store.keep(received).await.unwrap();
    digest
}

/// The files in a folder of the store.
fn names_in(directory: &tempfile::TempDir, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory.path().join(folder)).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn blobs_come_back_by_their_digest_after_a_reopen() {
    let (directory, store) = open();
    let digest = put(&store, b"grain").await;
    assert_eq!(put(&store, b"grain").await, digest);
    let store = Store::open_local(directory.path()).unwrap();
    assert_eq!(store.blob(digest).await.unwrap(), "grain");
    assert!(store.blob(Digest::of(b"chaff")).await.is_err());
    assert!(store.remove_blob(digest).await.unwrap());
    assert!(!store.remove_blob(digest).await.unwrap(), "it is gone already");
    assert!(matches!(store.blob(digest).await, Err(StoreError::Missing(_))));
}

#[tokio::test]
async fn a_damaged_blob_is_not_served() {
    let (directory, store) = open();
    let digest = put(&store, b"grain").await;
    std::fs::write(directory.path().join("blobs").join(digest.hex()), b"chaff").unwrap();
    let error = store.blob(digest).await.unwrap_err().to_string();
    assert!(error.contains("damaged"), "{error}");
}

/// All parts of a blob that is sent, and its error if it cannot be sent to its end.
async fn sent(store: &Store, digest: Digest) -> (Vec<u8>, Option<StoreError>) {
    let mut outgoing = store.send(digest).await.unwrap();
    let mut sent = Vec::new();
    loop {
        match outgoing.next().await {
            Ok(Some((part, rest))) => {
                sent.extend(part);
                outgoing = rest;
            }
            Ok(None) => return (sent, None),
            Err(error) => return (sent, Some(error)),
        }
    }
}

#[tokio::test]
async fn a_blob_is_sent_in_parts_and_a_damaged_one_never_as_a_whole() {
    let (directory, store) = open();
    let blob: &'static [u8] = Vec::leak((0..600_000u32).map(|at| at as u8).collect());
    let digest = put(&store, blob).await;
    assert_eq!(store.blob_bytes(digest).await.unwrap(), 600_000);
    assert_eq!(store.send(digest).await.unwrap().bytes(), 600_000);
    let (whole, error) = sent(&store, digest).await;
    assert!(whole == blob && error.is_none(), "{error:?}");
    let empty = put(&store, b"").await;
    assert!(matches!(sent(&store, empty).await, (none, None) if none.is_empty()));
    let mut damaged = blob.to_vec();
    damaged[7] ^= 1;
    std::fs::write(directory.path().join("blobs").join(digest.hex()), damaged).unwrap();
    let (begun, error) = sent(&store, digest).await;
    assert_eq!(begun.len(), 2 * (256 << 10), "all but the last part");
    assert!(matches!(error, Some(StoreError::Damaged(of)) if of == digest), "{error:?}");
    let none = Digest::of(b"chaff");
    assert!(matches!(store.send(none).await, Err(StoreError::Missing(_))));
    assert!(matches!(store.blob_bytes(none).await, Err(StoreError::Missing(_))));
}

#[tokio::test]
async fn a_damaged_blob_is_mended_and_a_whole_one_is_not_written_again() {
    let (directory, store) = open();
    let digest = put(&store, b"grain").await;
    let path = directory.path().join("blobs").join(digest.hex());
    let written = || std::fs::metadata(&path).unwrap().ino();
    let first = written();
    put(&store, b"grain").await;
    assert_eq!(written(), first);
    std::fs::write(&path, b"chaff").unwrap();
    put(&store, b"grain").await;
    assert_eq!(store.blob(digest).await.unwrap(), "grain");
}

#[tokio::test]
async fn a_file_that_arrives_is_aside_until_it_is_kept_and_gone_where_it_is_not() {
    let (directory, store) = open();
    let begun = store.receive().await.unwrap();
    let begun = begun.write(Bytes::from(vec![7; 1 << 20])).await.unwrap();
    let whole = received(&store, b"grain").await;
    assert_eq!(names_in(&directory, "incoming").len(), 2);
    assert_eq!(names_in(&directory, "blobs").len(), 0);
    assert_eq!((whole.read().await.unwrap(), whole.is_empty()), ("grain".into(), false));
    assert!(received(&store, b"").await.is_empty());
    drop((begun, whole));
    let removed = async {
        while !names_in(&directory, "incoming").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let bound = std::time::Duration::from_secs(10);
    tokio::time::timeout(bound, removed).await.expect("the files are not removed within 10 s");
    put(&store, b"grain").await;
    assert_eq!(names_in(&directory, "incoming").len(), 0);
}

#[tokio::test]
async fn the_logs_end_is_what_was_said_last() {
    let (directory, store) = open();
    assert_eq!(store.log_end().await.unwrap(), None);
    for end in ["one", "two"] {
        store.put_log_end(end.into()).await.unwrap();
    }
    let store = Store::open_local(directory.path()).unwrap();
    assert_eq!(store.log_end().await.unwrap().unwrap(), "two");
}

#[tokio::test]
async fn an_append_that_fails_may_have_left_its_documents() {
    let (_directory, store) = open();
    store.faults().fail_after_next_append();
    assert!(store.append(1, vec!["{}".into(), "[]".into()]).await.is_err());
    assert_eq!(store.document(1).await.unwrap().unwrap(), "{}");
    assert_eq!(store.document(2).await.unwrap().unwrap(), "[]");
    store.sync_document(2).await.unwrap();
    assert!(store.sync_document(3).await.is_err());
}

#[tokio::test]
async fn documents_are_appended_up_to_the_first_that_another_writer_has() {
    let (directory, store) = open();
    assert_eq!(store.append(3, vec!["theirs".into()]).await.unwrap(), 1);
    let documents = ["a", "b", "c", "d"].map(Bytes::from).to_vec();
    assert_eq!(store.append(1, documents).await.unwrap(), 2);
    assert_eq!(store.document(2).await.unwrap().unwrap(), "b");
    assert_eq!(store.document(3).await.unwrap().unwrap(), "theirs");
    assert_eq!(store.document(4).await.unwrap(), None);
    assert_eq!(names_in(&directory, "incoming").len(), 0);
}

#[tokio::test]
async fn of_two_writers_of_a_number_one_wins() {
    let (directory, one) = open();
    let two = Store::open_local(directory.path()).unwrap();
    let (first, second) = (Bytes::from_static(b"one"), Bytes::from_static(b"two"));
    let (a, b) = tokio::join!(one.append(1, vec![first]), two.append(1, vec![second]));
    let outcomes = [a.unwrap(), b.unwrap()];
    assert!(outcomes.contains(&1) && outcomes.contains(&0));
    let winner = if outcomes[0] == 1 { "one" } else { "two" };
    assert_eq!(two.document(1).await.unwrap().unwrap(), winner);
    assert_eq!(one.document(2).await.unwrap(), None);
}

#[tokio::test]
async fn the_logs_folder_is_listed_in_order_with_what_does_not_belong_there() {
    let (directory, store) = open();
    assert_eq!(store.log().await.unwrap(), LogListing::default());
    for number in [11, 2, 1] {
        store.append(number, vec!["{}".into()]).await.unwrap();
    }
    let log = directory.path().join("log");
    for name in ["3.json", "notes.txt", "00000000000000000004.json#1"] {
        std::fs::write(log.join(name), b"{}").unwrap();
    }
    let foreign = ["log/3.json", "log/notes.txt"].map(str::to_owned).to_vec();
    let expected = LogListing { numbers: vec![1, 2, 11], foreign };
    assert_eq!(store.log().await.unwrap(), expected);
}

#[tokio::test]
async fn leftovers_are_removed_and_nothing_else() {
    let (directory, store) = open();
    assert_eq!(store.remove_leftovers(|_| false).await.unwrap(), Removed::default());
    let (kept, unnamed) = (put(&store, b"grain").await, put(&store, b"chaff").await);
    store.append(1, vec!["{}".into()]).await.unwrap();
    let (blobs, log) = (directory.path().join("blobs"), directory.path().join("log"));
    std::fs::write(blobs.join(format!("{}#1", kept.hex())), b"gra").unwrap();
    std::fs::write(log.join("00000000000000000002.json#12"), b"{").unwrap();
    std::fs::write(directory.path().join("log-end.json#3"), b"{").unwrap();
    std::fs::write(directory.path().join("incoming/x"), b"gr").unwrap();
    for file in ["notes#x", "README", "ABCDEF"] {
        std::fs::write(blobs.join(file), b"mine").unwrap();
    }
    let removed = store.remove_leftovers(move |digest| *digest == kept).await.unwrap();
    assert_eq!(removed, Removed { files: 5, bytes: 12 });
    assert!(matches!(store.blob(unnamed).await, Err(StoreError::Missing(_))));
    assert_eq!(store.blob(kept).await.unwrap(), "grain");
    assert_eq!(store.log().await.unwrap().numbers, [1]);
    let mut left: Vec<_> = std::fs::read_dir(&blobs).unwrap().map(Result::unwrap).collect();
    left.retain(|entry| entry.file_name() != kept.hex().as_str());
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn errors_name_no_path_and_say_when_the_disk_takes_nothing() {
    use std::io::ErrorKind;
    let refused = |kind| {
        let source = std::io::Error::new(kind, "/srv/secret/place");
        StoreError::write(object_store::Error::Generic { store: "local", source: source.into() })
    };
    let full = refused(ErrorKind::StorageFull);
    assert_eq!(full.code(), ErrorCode::InsufficientStorage);
    assert!(full.to_string().contains("disk is full"), "{full}");
    let read_only = [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem].map(refused);
    for error in &read_only {
        assert_eq!(error.code(), ErrorCode::InsufficientStorage);
        assert!(error.to_string().contains("read-only"), "{error}");
    }
    let other = refused(ErrorKind::NotADirectory);
    assert_eq!(other.code(), ErrorCode::Internal);
    for error in read_only.into_iter().chain([full, other]) {
        assert!(!error.to_string().contains("/srv"), "{error}");
    }
}
