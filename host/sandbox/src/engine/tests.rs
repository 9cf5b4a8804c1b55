use gristmill_core::{ByteBudget, PluginLimits};
use rustix::time::{ClockId, clock_gettime};

use super::*;
use crate::idle::Keep;
use crate::long_calls::{CallFuture, NewCall};
use crate::pace::Export;
use crate::pause::HeldPermits;
use crate::queue::Half;

fn account() -> Account {
    Account::new(2, 1, ByteBudget::new(1 << 20))
}

/// Run a call of a new export that takes this CPU time. Returns the name of its thread.
async fn thread_of(engine: &PluginEngine, account: &Account, cpu: Duration) -> String {
    thread_of_export(engine, account, &Export::default(), cpu).await
}

/// Run a call that takes this CPU time. Returns the name of its thread.
async fn thread_of_export(
    engine: &PluginEngine,
    account: &Account,
    export: &Export,
    cpu: Duration,
) -> String {
    let limits = PluginLimits::default();
    let grant = Grant::new(&limits, account);
    let meter = Arc::new(Meter::new(limits.cpu));
    let guest = Guest::new(engine.store(grant, meter.clone(), false));
    let call: CallFuture<String> = Box::pin(async move {
        let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let until = used() + cpu;
        while used() < until {}
        (guest, Ok(std::thread::current().name().unwrap_or_default().to_owned()))
    });
    let begins_long = engine.long_calls().begins(export, account, Half::First);
    let wanted = Wanted { half: Half::First, is_long: begins_long, rests: false, latest: None };
    let (permits, _) = engine.permits(account, wanted, export.round()).await.unwrap();
    let (permits, keep) = (HeldPermits::Whole(permits), Keep::Never);
    let (usage, threads) = (None, engine.long_calls());
    let new = NewCall { call, meter, usage, export, account, threads, begins_long, permits, keep };
    new.run().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_owner_with_many_exports_has_no_more_of_the_serving_threads() {
    let config = SandboxConfig::new(std::env::temp_dir());
    let engine = PluginEngine::new(&config, BufferPool::new(0)).unwrap();
    let (owner, other) = (account(), account());
    let none = Duration::ZERO;
    let serving = thread_of(&engine, &other, none).await;
    assert_eq!(thread_of(&engine, &owner, none).await, serving);
    for _ in 0..10 {
        thread_of(&engine, &owner, Duration::from_millis(20)).await;
    }
    assert_eq!(thread_of(&engine, &owner, none).await, "long-calls");
    assert_eq!(thread_of(&engine, &other, none).await, serving);
}

#[tokio::test(start_paused = true)]
async fn a_long_export_stays_off_the_serving_threads_and_the_owners_others_do_not() {
    let config = SandboxConfig::new(std::env::temp_dir());
    let engine = PluginEngine::new(&config, BufferPool::new(0)).unwrap();
    let (owner, long, short) = (account(), Export::default(), Export::default());
    let none = Duration::ZERO;
    let serving = thread_of_export(&engine, &owner, &short, none).await;
    for _ in 0..100 {
        thread_of_export(&engine, &owner, &long, Duration::from_millis(20)).await;
    }
    assert_eq!(thread_of_export(&engine, &owner, &long, none).await, "long-calls");
    assert_eq!(thread_of_export(&engine, &owner, &short, none).await, serving);
    // Its calls have become short.
    for _ in 0..100 {
        thread_of_export(&engine, &owner, &long, none).await;
    }
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(thread_of_export(&engine, &owner, &long, none).await, serving);
}

#[tokio::test(start_paused = true)]
async fn short_calls_have_a_share_of_the_serving_threads_in_sum() {
    let config = SandboxConfig::new(std::env::temp_dir());
    let engine = PluginEngine::new(&config, BufferPool::new(0)).unwrap();
    let (owner, other, none) = (account(), account(), Duration::ZERO);
    let exports = [Export::default(), Export::default()];
    let serving = thread_of(&engine, &other, none).await;
    let mut threads = Vec::new();
    for number in 0..100 {
        let (export, cpu) = (&exports[number % 2], Duration::from_millis(2));
        threads.push(thread_of_export(&engine, &owner, export, cpu).await);
    }
    let served = threads.iter().filter(|thread| **thread == serving).count();
    assert!((1..=20).contains(&served), "{served} calls of 2 ms ran on the serving thread");
    assert_eq!(threads.last().unwrap(), "long-calls");
    assert_eq!(thread_of_export(&engine, &other, &exports[0], none).await, serving);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(thread_of_export(&engine, &owner, &exports[0], none).await, serving);
}
