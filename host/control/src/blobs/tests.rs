use super::*;
use crate::testing::name;

#[tokio::test]
async fn files_that_arrive_together_do_not_go_over_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open_local(directory.path()).unwrap());
    let blobs = Blobs::new(store.clone(), Arc::new(Uploads::new(store.clone())), 1 << 20);
    let holder = Holder { token: Some(name("ci")), sees_others: false };
    let keep = async |text: String| {
        let incoming = store.receive().await.unwrap();
        let file = incoming.write(text.into_bytes().into()).await.unwrap().finish().await.unwrap();
        blobs.keep(&holder, file.digest(), file).await
    };
    // A token has an eighth of the places.
    let max = FILES_MAX / 8;
    for number in 1..max {
        keep(number.to_string()).await.unwrap();
    }
    let all = (max..max + 4).map(|number| keep(number.to_string()));
    let outcomes = futures_util::future::join_all(all).await;
    let kept = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(kept, 1, "{outcomes:?}");
    // The one that was kept can come again, and a place that is free is taken.
    assert!(keep("x".into()).await.is_err());
    assert!(blobs.forget(&holder, Digest::of(b"1")));
    keep("x".into()).await.unwrap();
    assert!(blobs.files.lock().arriving.is_empty());
}
