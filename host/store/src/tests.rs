use bytes::Bytes;

use crate::{Appended, Store, digest_of};

#[tokio::test]
async fn blobs_come_back_by_their_digest_after_a_reopen() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_local(directory.path()).unwrap();
    let digest = store.put_blob(Bytes::from_static(b"grain")).await.unwrap();
    assert_eq!(digest, digest_of(b"grain"));
    assert_eq!(store.put_blob(Bytes::from_static(b"grain")).await.unwrap(), digest);
    let store = Store::open_local(directory.path()).unwrap();
    assert_eq!(store.blob(digest).await.unwrap(), "grain");
    assert!(store.blob(digest_of(b"chaff")).await.is_err());
}

#[tokio::test]
async fn a_damaged_blob_is_not_served() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_local(directory.path()).unwrap();
    let digest = store.put_blob(Bytes::from_static(b"grain")).await.unwrap();
    std::fs::write(directory.path().join("blobs").join(digest.hex()), b"chaff").unwrap();
    let error = store.blob(digest).await.unwrap_err().to_string();
    assert!(error.contains("damaged"), "{error}");
}

#[tokio::test]
async fn of_two_writers_of_a_number_one_wins() {
    let directory = tempfile::tempdir().unwrap();
    let one = Store::open_local(directory.path()).unwrap();
    let two = Store::open_local(directory.path()).unwrap();
    let (a, b) = tokio::join!(one.append(1, &"one"), two.append(1, &"two"));
    let outcomes = [a.unwrap(), b.unwrap()];
    assert!(outcomes.contains(&Appended::Yes) && outcomes.contains(&Appended::Lost));
    let winner = if outcomes[0] == Appended::Yes { "one" } else { "two" };
    assert_eq!(two.document::<String>(1).await.unwrap().unwrap(), winner);
    assert_eq!(one.document::<String>(2).await.unwrap(), None);
}
