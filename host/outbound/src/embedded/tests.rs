use std::fs;
use std::path::Path;

use gristmill_sandbox::StoreFaultKind;

use super::*;

const MAX_BYTES: u64 = 1 << 20;

fn start(directory: &Path) -> Embedded {
    let name = "features".parse().unwrap();
    Embedded::start(&name, directory.join("stores/features.redb"), MAX_BYTES).unwrap()
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn call(tenant: &str) -> StoreCall {
    StoreCall::of_operator(tenant.parse().unwrap(), "features".parse().unwrap(), later())
}

fn key(whole: &str) -> Key {
    let (prefix, rest) = whole.split_at(whole.find(':').map_or(0, |at| at + 1));
    Key::new(prefix, rest)
}

fn set(key_text: &str, value: &[u8], ttl_ms: Option<u64>) -> Change {
    Change::Set { key: key(key_text), value: Bytes::copy_from_slice(value), ttl_ms }
}

async fn change(store: &Embedded, changes: Vec<Change>) -> Result<usize, StoreFault> {
    let changed = store.change(call("acme"), later(), changes).await;
    changed.unwrap_or_else(|TooLate| panic!("no answer in a minute"))
}

async fn add(store: &Embedded, key_text: &str, delta: i64) -> Result<i64, StoreFault> {
    let sum = store.increment(call("acme"), later(), key(key_text), delta).await;
    sum.unwrap_or_else(|TooLate| panic!("no answer in a minute"))
}

async fn remove(store: &Embedded, key_text: &str) -> usize {
    change(store, vec![Change::Remove { key: key(key_text) }]).await.unwrap()
}

async fn read(store: &Embedded, keys: &[&str]) -> Result<Vec<Option<Bytes>>, StoreFault> {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    let wanted = WantedKeys { keys, most_bytes: 4, none_if_empty: false };
    let values = store.values(call("acme"), later(), wanted).await;
    values.unwrap_or_else(|TooLate| panic!("no answer in a minute"))
}

fn some(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

#[tokio::test]
async fn values_stay_when_the_store_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = start(directory.path());
    change(&store, vec![set("a:k", b"v", None), set("a:long", b"123456", None)]).await.unwrap();
    // One byte more than was wanted says that the value is longer.
    assert_eq!(
        read(&store, &["a:k", "b:k", "a:long"]).await,
        Ok(vec![some("v"), None, some("12345")])
    );
    drop(store);
    let store = start(directory.path());
    assert_eq!(read(&store, &["a:k"]).await, Ok(vec![some("v")]));
    assert_eq!(remove(&store, "a:k").await, 1);
    assert_eq!(remove(&store, "a:k").await, 0);
    assert_eq!(read(&store, &["a:k"]).await, Ok(vec![None]));
}

#[tokio::test]
async fn a_value_ends_and_an_end_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let store = start(directory.path());
    change(&store, vec![set("a:k", b"1", Some(1)), set("a:kept", b"1", Some(1))]).await.unwrap();
    change(&store, vec![set("a:kept", b"2", None)]).await.unwrap();
    let mut reads = 0;
    while read(&store, &["a:k"]).await != Ok(vec![None]) {
        reads += 1;
        assert!(reads < 1_000_000, "a value stays longer than its time");
    }
    assert_eq!(read(&store, &["a:kept"]).await, Ok(vec![some("2")]));
    // A number that has ended begins again.
    assert_eq!(add(&store, "a:k", 5).await, Ok(5));
    store.flush().await;
    assert_eq!(read(&store, &["a:k", "a:kept"]).await, Ok(vec![some("5"), some("2")]));
}

#[tokio::test]
async fn increments_are_one_step() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(start(directory.path()));
    let adding = (0..16).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                add(&store, "a:n", 3).await.unwrap();
            }
        })
    });
    for adding in adding.collect::<Vec<_>>() {
        adding.await.unwrap();
    }
    assert_eq!(add(&store, "a:n", 0).await, Ok(480));
    change(&store, vec![set("a:word", b"word", None)]).await.unwrap();
    let wrong = add(&store, "a:word", 1).await.unwrap_err();
    assert_eq!(wrong.kind, StoreFaultKind::InvalidArgument);
}

#[tokio::test]
async fn the_values_of_a_prefix_have_a_bound() {
    let directory = tempfile::tempdir().unwrap();
    let store = start(directory.path());
    // With its key it has pages of its own, whose number is a power of two.
    let half = vec![7; MAX_BYTES as usize / 2 - 1024];
    let more = vec![7; MAX_BYTES as usize / 2];
    let full = change(&store, vec![set("a:more", &more, None), set("a:k", b"v", None)]).await;
    assert!(full.unwrap_err().text.contains("max_bytes is 1048576"));
    change(&store, vec![set("a:1", &half, None)]).await.unwrap();
    let changes = || vec![set("a:small", b"v", None), set("a:2", &half, None)];
    let full = change(&store, changes()).await.unwrap_err();
    assert_eq!(full.kind, StoreFaultKind::Unavailable);
    assert!(full.text.contains("max_bytes is 1048576"), "{full}");
    // Of several changes none is made.
    assert_eq!(read(&store, &["a:small"]).await, Ok(vec![None]));
    change(&store, vec![set("b:1", &half, None)]).await.unwrap();
    // A value in place of another one, and after one that was removed.
    change(&store, vec![set("a:1", &half, None)]).await.unwrap();
    assert_eq!(remove(&store, "a:1").await, 1);
    change(&store, changes()).await.unwrap();
}

#[tokio::test]
async fn a_value_that_is_longer_than_wanted_ends_a_read() {
    let directory = tempfile::tempdir().unwrap();
    let store = start(directory.path());
    change(&store, vec![set("a:long", b"123456", None), set("a:k", b"v", None)]).await.unwrap();
    let values = read(&store, &["a:long", "a:k"]).await;
    assert_eq!(values, Ok(vec![some("12345"), None]));
}

#[tokio::test]
async fn a_prefix_full_of_ended_values_gets_room() {
    let directory = tempfile::tempdir().unwrap();
    let store = start(directory.path());
    // Far more than a change forgets.
    let ended = |prefix: &str| -> Vec<_> {
        (0..4000).map(|at| set(&format!("{prefix}:{at}"), b"v", Some(1))).collect()
    };
    for prefix in ["a", "b"] {
        change(&store, ended(prefix)).await.unwrap();
        let last = format!("{prefix}:3999");
        let mut reads = 0;
        while read(&store, &[last.as_str()]).await != Ok(vec![None]) {
            reads += 1;
            assert!(reads < 1_000_000, "a value stays longer than its time");
        }
    }
    // Each refused change forgets some of its own prefix.
    let half = vec![7; MAX_BYTES as usize / 2 - 1024];
    let fills = || vec![set("b:1", &half, None), set("b:2", &half, None)];
    let mut changes = 0;
    while change(&store, fills()).await.is_err() {
        changes += 1;
        assert!(changes < 100, "values whose time has passed are never forgotten");
    }
}

#[tokio::test]
async fn the_values_of_one_prefix_are_cleared() {
    let directory = tempfile::tempdir().unwrap();
    let store = start(directory.path());
    for prefix in ["a", "ab"] {
        let all = (0..1500).map(|at| set(&format!("{prefix}:{at}"), b"v", Some(1 << 40)));
        change(&store, all.collect()).await.unwrap();
    }
    let (mut cleared, mut is_all) = (Vec::new(), false);
    while !is_all {
        let step = store.clear(call("acme"), later(), "a:".to_owned()).await;
        let step = step.unwrap_or_else(|TooLate| panic!("no answer in a minute")).unwrap();
        is_all = step.is_all;
        cleared.push(step.values);
    }
    assert_eq!(cleared.iter().sum::<usize>(), 1500);
    assert!(cleared.len() > 1, "one step does not do all: {cleared:?}");
    assert_ne!(cleared.last(), Some(&0), "the step that reaches the end is the last");
    assert_eq!(read(&store, &["a:0", "a:1499", "ab:0"]).await, Ok(vec![None, None, some("v")]));
    let half = vec![7; MAX_BYTES as usize / 2 - 1024];
    change(&store, vec![set("a:1", &half, None), set("a:2", &half, None)]).await.unwrap();
}

#[tokio::test]
async fn a_damaged_file_is_an_error_of_calls() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("stores")).unwrap();
    fs::write(directory.path().join("stores/features.redb"), "no database").unwrap();
    let store = start(directory.path());
    let refused = read(&store, &["a:k"]).await.unwrap_err();
    assert_eq!(refused, file::failed());
    assert_eq!(change(&store, vec![set("a:k", b"v", None)]).await, Err(file::failed()));
}

#[tokio::test]
async fn a_call_that_is_too_late_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = start(directory.path());
    let late = store.change(call("acme"), Instant::now(), vec![set("a:k", b"v", None)]).await;
    assert!(matches!(late, Err(TooLate)));
    assert_eq!(read(&store, &["a:k"]).await, Ok(vec![None]));
}

async fn list(store: &Embedded, prefix: &str, after: Option<&str>) -> KeyPage {
    let listed = store.keys(call("acme"), later(), prefix.to_owned(), after.map(str::to_owned));
    listed.await.unwrap_or_else(|TooLate| panic!("no answer in a minute")).unwrap()
}

#[tokio::test]
async fn keys_are_listed_in_pages_of_one_prefix() {
    let directory = tempfile::tempdir().unwrap();
    let store = start(directory.path());
    assert_eq!(list(&store, "a:", None).await, KeyPage::default());
    let keys: Vec<_> = (0..1001).map(|at| format!("k{at:04}")).collect();
    let of_a = keys.iter().map(|key| set(&format!("a:{key}"), b"v", None));
    let others = [set("a", b"v", None), set("aa:k", b"v", None), set("b:k", b"v", None)];
    change(&store, of_a.chain(others).collect()).await.unwrap();
    let first = list(&store, "a:", None).await;
    assert_eq!((&first.keys[..], first.next.as_deref()), (&keys[..1000], Some("k0999")));
    let last = list(&store, "a:", first.next.as_deref()).await;
    assert_eq!(last, KeyPage { keys: vec!["k1000".to_owned()], next: None });
    // A cursor is a place, whether the key is there or not.
    assert_eq!(list(&store, "a:", Some("k0999x")).await, last);
    assert_eq!(list(&store, "a:", Some("z")).await, KeyPage::default());
    change(&store, vec![set("c:k", b"v", Some(1))]).await.unwrap();
    let mut lists = 0;
    while list(&store, "c:", None).await != KeyPage::default() {
        lists += 1;
        assert!(lists < 1_000_000, "a key is listed longer than its time");
    }
}

#[tokio::test]
async fn a_value_is_swapped_for_the_known_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = start(directory.path());
    let swap = async |expected: Option<&'static [u8]>, value: Vec<u8>| {
        let (expected, value) = (expected.map(Bytes::from_static), Bytes::from(value));
        let swapped =
            store.swap(call("acme"), later(), OwnedSwap { key: key("a:k"), expected, value });
        swapped.await.unwrap_or_else(|TooLate| panic!("no answer in a minute"))
    };
    assert_eq!(swap(Some(b"1"), b"2".to_vec()).await, Ok(Swapped::Other(None)));
    assert_eq!(swap(None, b"1".to_vec()).await, Ok(Swapped::Done));
    assert_eq!(swap(None, b"2".to_vec()).await, Ok(Swapped::Other(some("1"))));
    assert_eq!(swap(Some(b"1"), b"2".to_vec()).await, Ok(Swapped::Done));
    let full = swap(Some(b"2"), vec![7; MAX_BYTES as usize]).await.unwrap_err();
    assert_eq!(full.kind, StoreFaultKind::Unavailable);
    assert_eq!(read(&store, &["a:k"]).await, Ok(vec![some("2")]));
    // A value that has ended is none.
    change(&store, vec![set("a:k", b"3", Some(1))]).await.unwrap();
    while read(&store, &["a:k"]).await != Ok(vec![None]) {}
    assert_eq!(swap(None, b"4".to_vec()).await, Ok(Swapped::Done));
    assert_eq!(remove(&store, "a:k").await, 1);
}
