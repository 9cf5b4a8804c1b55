use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::{ByteBudget, RateLimit};

use super::*;
use crate::stores::Cleared;

/// Has each value that is asked for: the key's own bytes. Refuses changes of the key `kept`.
struct Echo;

#[async_trait]
impl Stores for Echo {
    fn prefix_bytes(&self, bucket: &str, _: &Name) -> Option<usize> {
        (bucket != "elsewhere").then_some(5)
    }

    async fn get_many(
        &self,
        _: StoreCall,
        WantedValues { keys, .. }: WantedValues<'_>,
    ) -> Result<Vec<Option<Bytes>>, StoreFault> {
        let value = |key: &&str| (*key != "none").then(|| Bytes::copy_from_slice(key.as_bytes()));
        Ok(keys.iter().map(value).collect())
    }

    async fn set(
        &self,
        _: StoreCall,
        values: &[(&str, &[u8])],
        _: Option<u64>,
    ) -> Result<(), StoreFault> {
        assert!(values.iter().all(|(key, _)| *key != "kept"));
        Ok(())
    }

    async fn increment(&self, _: StoreCall, key: &str, by: i64) -> Result<i64, StoreFault> {
        assert_ne!(key, "7");
        Ok(by)
    }

    async fn remove(&self, _: StoreCall, keys: &[&str]) -> Result<usize, StoreFault> {
        assert!(!keys.contains(&"kept"));
        Ok(keys.len())
    }

    async fn keys(&self, _: StoreCall, _: Option<&str>) -> Result<KeyPage, StoreFault> {
        Ok(KeyPage { keys: vec!["a".to_owned()], next: None })
    }

    async fn swap(&self, _: StoreCall, swap: Swap<'_>) -> Result<Swapped, StoreFault> {
        assert_ne!(swap.key, "kept");
        Ok(Swapped::Done)
    }

    async fn clear(&self, _: StoreCall) -> Result<Cleared, StoreFault> {
        Ok(Cleared { values: 0, is_all: true })
    }
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn stores(kib: usize) -> TenantStores {
    let granted = [
        (name("features"), StoreAccess::Read),
        (name("sessions"), StoreAccess::Write),
        (name("elsewhere"), StoreAccess::Read),
    ];
    let kib = Arc::new(Semaphore::new(kib));
    TenantStores::new(name("acme"), Arc::new(Echo), granted.into(), kib)
}

fn in_bucket(bucket: &str, budget: &Arc<ByteBudget>) -> StoreUse {
    StoreUse {
        bucket: bucket.to_owned(),
        deadline: Instant::now() + Duration::from_secs(10),
        is_trial: false,
        held: budget.hold(0),
        meter: Arc::new(Meter::new(Duration::ZERO)),
    }
}

fn wanted<'a>(keys: &'a [&'a str]) -> WantedValues<'a> {
    WantedValues { keys, most_bytes: 10, none_if_empty: false }
}

#[track_caller]
fn fault(error: NoAnswer) -> StoreFault {
    match error {
        NoAnswer::Fault(fault) => fault,
        NoAnswer::OverBudget(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_tenant_has_the_buckets_that_are_granted() {
    let (stores, budget) = (stores(STORE_KIB), ByteBudget::new(1 << 20));
    let within = |bucket| in_bucket(bucket, &budget);
    let values = stores.get_many(within("features"), wanted(&["a", "none"])).await.unwrap();
    assert_eq!(values, [Some(Bytes::from_static(b"a")), None]);
    assert!(stores.get_many(within("features"), wanted(&[])).await.unwrap().is_empty());
    let refused = stores.get_many(within("secrets"), wanted(&["a"])).await;
    let refused = fault(refused.unwrap_err());
    assert_eq!(refused.kind, StoreFaultKind::NotGranted);
    let named = "it grants \"elsewhere\", \"features\", \"sessions\"";
    assert!(refused.text.contains(named), "{refused}");
    let refused = stores.get_many(within("elsewhere"), wanted(&["a"])).await;
    let refused = fault(refused.unwrap_err());
    assert_eq!(refused.kind, StoreFaultKind::Unavailable);
    assert!(refused.text.contains("[stores.elsewhere]"), "{refused}");
    assert_eq!(budget.held(), 0);
}

#[tokio::test]
async fn only_a_bucket_that_may_be_written_is_changed() {
    let (stores, budget) = (stores(STORE_KIB), ByteBudget::new(2 << 20));
    let within = |bucket| in_bucket(bucket, &budget);
    const VALUES: &[(&str, &[u8])] = &[("k", b"v")];
    const SWAP: Swap<'_> = Swap { key: "k", expected: None, value: b"v" };
    stores.set(within("sessions"), VALUES, None).await.unwrap();
    stores.remove(within("sessions"), &["k"]).await.unwrap();
    assert_eq!(stores.swap(within("sessions"), SWAP).await.unwrap(), Swapped::Done);
    assert_eq!(stores.increment(within("sessions"), "k", 3).await.unwrap(), 3);
    for is_trial in [false, true] {
        let by = || StoreUse { is_trial, ..within("features") };
        let refused = fault(stores.set(by(), VALUES, None).await.unwrap_err());
        assert_eq!(refused.kind, StoreFaultKind::ReadOnly);
        assert!(refused.text.contains("{\"features\": \"write\"}"), "{refused}");
        for refused in [
            stores.set(by(), &[], None).await.unwrap_err(),
            stores.remove(by(), &["k"]).await.unwrap_err(),
            stores.remove(by(), &[]).await.unwrap_err(),
            stores.swap(by(), SWAP).await.unwrap_err(),
        ] {
            assert_eq!(fault(refused).kind, StoreFaultKind::ReadOnly);
        }
    }
}

#[tokio::test]
async fn a_trial_changes_nothing() {
    let (stores, budget) = (stores(STORE_KIB), ByteBudget::new(2 << 20));
    let trial = || StoreUse { is_trial: true, ..in_bucket("sessions", &budget) };
    stores.set(trial(), &[("kept", b"v")], None).await.unwrap();
    stores.remove(trial(), &["kept"]).await.unwrap();
    let swap = |expected| Swap { key: "kept", expected, value: b"v" };
    assert_eq!(stores.swap(trial(), swap(Some(b"kept"))).await.unwrap(), Swapped::Done);
    let other = Swapped::Other(Some(Bytes::from_static(b"kept")));
    assert_eq!(stores.swap(trial(), swap(None)).await.unwrap(), other);
    assert_eq!(stores.increment(trial(), "7", 3).await.unwrap(), 10);
    assert_eq!(stores.increment(trial(), "none", 3).await.unwrap(), 3);
    let refused = fault(stores.increment(trial(), "word", 3).await.unwrap_err());
    assert_eq!(refused.kind, StoreFaultKind::InvalidArgument);
}

#[tokio::test]
async fn a_call_that_gets_no_permit_ends_at_the_deadline() {
    let (stores, budget) = (stores(0), ByteBudget::new(1 << 20));
    let by = StoreUse { deadline: Instant::now(), ..in_bucket("features", &budget) };
    let late = fault(stores.get_many(by, wanted(&["a"])).await.unwrap_err());
    assert_eq!(late.kind, StoreFaultKind::Unavailable);
}

#[tokio::test]
async fn the_memory_of_a_call_counts_until_it_ends() {
    let (stores, budget) = (stores(STORE_KIB), ByteBudget::new(600));
    let size = Size { keys: 1, request_bytes: 2, answer_bytes: 11 };
    assert_eq!(size.memory(5), 11 + 4 * 7 + 512);
    let call = stores.call(in_bucket("features", &budget), StoreAccess::Read, size).await.unwrap();
    assert_eq!(budget.held(), size.memory(5));
    let refused = stores.get_many(in_bucket("features", &budget), wanted(&["a"])).await;
    assert!(matches!(refused, Err(NoAnswer::OverBudget(_))), "{refused:?}");
    drop(call);
    stores.get_many(in_bucket("features", &budget), wanted(&["a"])).await.unwrap();
    assert_eq!(budget.held(), 0);
}

#[tokio::test]
async fn the_work_for_a_call_is_charged_to_its_tenant_and_to_the_plugins_call() {
    let (now, second) = (Instant::now(), Duration::from_secs(1));
    let cpu = Arc::<Rate>::default();
    cpu.set(Some(RateLimit { tokens: 1_000_000_000, every: second, burst: 1_000_000_000 }), now);
    let (stores, budget) = (stores(STORE_KIB).charging(cpu.clone()), ByteBudget::new(1 << 20));
    let size = Size::of_changes(1, 2);
    let by = in_bucket("sessions", &budget);
    let meter = by.meter.clone();
    let call = stores.call(by, StoreAccess::Write, size).await.unwrap();
    cpu.check(Instant::now()).unwrap();
    call.charge(60 * second);
    cpu.check(Instant::now()).unwrap_err();
    assert_eq!(meter.usage().cpu, 60 * second);
}
