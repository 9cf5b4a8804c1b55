use std::path::Path;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use gristmill_core::{Digest, ErrorCode, Name};

use crate::{Removed, Store, StoreError};

/// A server of the store in `directory`, with a local folder of its own.
fn server(directory: &Path, name: &str) -> Store {
    let url = format!("file://{}", directory.join("shared").display());
    Store::open_shared(&url.parse().unwrap(), &directory.join(name), 1 << 30).unwrap()
}

async fn put(store: &Store, blob: Bytes) -> Digest {
    let received =
        store.receive().await.unwrap().write(blob).await.unwrap().finish().await.unwrap();
    let digest = received.digest();
    store.keep(received).await.unwrap();
    digest
}

fn make_old(path: &Path, hours: u64) {
    let then = SystemTime::now() - Duration::from_secs(hours * 3600);
    std::fs::File::open(path).unwrap().set_modified(then).unwrap();
}

#[tokio::test]
async fn a_blob_of_one_server_is_read_by_another_which_keeps_a_copy() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (server(directory.path(), "one"), server(directory.path(), "two"));
    // More than one part.
    let blob = Bytes::from_iter((0..20_000_000u32).map(|at| (at >> 8) as u8 ^ at as u8));
    let digest = put(&one, blob.clone()).await;
    assert_eq!(two.blob_bytes(digest).await.unwrap(), 20_000_000);
    assert!(two.blob(digest).await.unwrap() == blob);
    let shared = directory.path().join("shared/blobs").join(digest.hex());
    std::fs::remove_file(&shared).unwrap();
    assert!(two.blob(digest).await.unwrap() == blob, "the copy is there");
    assert_eq!(two.send(digest).await.unwrap().bytes(), 20_000_000);
    // A release that names it sends it again.
    two.refresh(digest).await.unwrap();
    assert!(std::fs::read(&shared).unwrap() == blob);
    let none = Digest::of(b"chaff");
    assert!(matches!(two.blob(none).await, Err(StoreError::Missing(_))));
    assert!(matches!(two.refresh(none).await, Err(StoreError::Missing(_))));
    std::fs::write(&shared, b"chaff").unwrap();
    let third = server(directory.path(), "three");
    assert!(matches!(third.blob(digest).await, Err(StoreError::Damaged(_))));
}

#[tokio::test]
async fn only_blobs_that_were_sent_long_ago_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = server(directory.path(), "one");
    let [named, young, old, again] = ["named", "young", "old", "again"];
    let mut digests = Vec::new();
    for blob in [named, young, old, again] {
        digests.push(put(&store, blob.into()).await);
    }
    let path = |digest: Digest| directory.path().join("shared/blobs").join(digest.hex());
    for (digest, hours) in digests.iter().zip([90, 23, 25, 25]) {
        make_old(&path(*digest), hours);
    }
    assert!(!store.remove_blob(digests[2]).await.unwrap(), "another server may need it");
    store.refresh(digests[3]).await.unwrap();
    store.refresh(digests[1]).await.unwrap();
    let kept = digests[0];
    let removed = store.remove_leftovers(move |digest| *digest == kept).await.unwrap();
    assert_eq!(removed, Removed { files: 1, bytes: 3 });
    let there: Vec<_> = digests.iter().map(|digest| path(*digest).exists()).collect();
    assert_eq!(there, [true, true, false, true]);
}

#[tokio::test]
async fn the_checkpoint_with_the_highest_number_counts() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (server(directory.path(), "one"), server(directory.path(), "two"));
    assert_eq!(one.checkpoint().await.unwrap(), None);
    one.put_checkpoint(7, "seven".into()).await.unwrap();
    two.put_checkpoint(12, "twelve".into()).await.unwrap();
    one.put_checkpoint(9, "nine, late".into()).await.unwrap();
    assert_eq!(one.checkpoint().await.unwrap().unwrap(), "twelve");
}

#[tokio::test]
async fn the_log_is_one_and_its_end_is_what_each_server_has_seen() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (server(directory.path(), "one"), server(directory.path(), "two"));
    assert_eq!(one.next_after(0).await.unwrap(), None);
    assert_eq!(one.append(1, vec!["one".into()]).await.unwrap(), 1);
    assert_eq!(two.append(1, vec!["two".into(), "lost".into()]).await.unwrap(), 0);
    assert_eq!(one.append(11, vec!["more".into()]).await.unwrap(), 1);
    assert_eq!(two.append(2, vec!["more".into(); 2]).await.unwrap(), 2);
    assert_eq!(one.next_after(1).await.unwrap(), Some(2));
    assert_eq!(one.next_after(3).await.unwrap(), Some(11));
    assert_eq!(one.next_after(11).await.unwrap(), None);
    one.put_log_end("seen by one".into()).await.unwrap();
    assert_eq!(two.log_end().await.unwrap(), None);
    one.put_last_state("state".into()).await.unwrap();
    assert_eq!(server(directory.path(), "one").last_state().await.unwrap().unwrap(), "state");
}

#[tokio::test]
async fn leases_are_put_again_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (server(directory.path(), "one"), server(directory.path(), "two"));
    let name = |text: &str| text.parse::<Name>().unwrap();
    for (store, server) in [(&one, "one"), (&two, "two"), (&one, "one")] {
        store.put_lease(&name(server), format!("lease of {server}").into()).await.unwrap();
    }
    std::fs::write(directory.path().join("shared/replicas/notes.txt"), "x").unwrap();
    let names: Vec<_> = two.leases().await.unwrap().into_iter().map(|lease| lease.name).collect();
    assert_eq!(names, [name("one"), name("two")]);
    assert_eq!(two.lease(&name("one")).await.unwrap().unwrap(), "lease of one");
    one.remove_lease(&name("one")).await.unwrap();
    one.remove_lease(&name("one")).await.unwrap();
    assert_eq!(two.lease(&name("one")).await.unwrap(), None);
}

#[tokio::test]
async fn a_store_that_fails_is_unreachable_and_names_no_place() {
    let directory = tempfile::tempdir().unwrap();
    let store = server(directory.path(), "one");
    // A file in the place of a folder.
    std::fs::write(directory.path().join("shared/replicas"), "x").unwrap();
    let error = store.put_lease(&"one".parse().unwrap(), "lease".into()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable(_)), "{error:?}");
    assert_eq!(error.code(), ErrorCode::Unavailable);
    assert!(!error.to_string().contains('/'), "{error}");
}
