use gristmill_core::{ByteBudget, PluginLimits};
use rustix::time::{ClockId, clock_gettime};

use super::*;
use crate::idle::Keep;
use crate::long_calls::{CallFuture, NewCall};
use crate::pace::StaysLong;

fn account() -> Account {
    Account::new(2, 1, ByteBudget::new(1 << 20))
}

/// Run a call of a new export that takes this CPU time. Returns the name of its thread.
async fn thread_of(engine: &PluginEngine, account: &Account, cpu: Duration) -> String {
    thread_of_export(engine, account, &StaysLong::default(), cpu).await
}

/// Run a call that takes this CPU time. Returns the name of its thread.
async fn thread_of_export(
    engine: &PluginEngine,
    account: &Account,
    export: &StaysLong,
    cpu: Duration,
) -> String {
    let limits = PluginLimits::default();
    let grant = Grant { limits: &limits, account, lines: None, usage: None };
    let meter = Arc::new(Meter::new(limits.cpu));
    let guest = Guest::new(engine.store(grant, meter.clone(), false));
    let call: CallFuture<String> = Box::pin(async move {
        let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let until = used() + cpu;
        while used() < until {}
        (guest, Ok(std::thread::current().name().unwrap_or_default().to_owned()))
    });
    let places = engine.places(account).await.unwrap();
    let new = NewCall { call, meter, export, account, places, keep: Keep::Never };
    engine.long_calls().run(new).await.unwrap()
}

#[tokio::test]
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
async fn an_owners_short_exports_return_while_its_long_export_stays() {
    let config = SandboxConfig::new(std::env::temp_dir());
    let engine = PluginEngine::new(&config, BufferPool::new(0)).unwrap();
    let (owner, long) = (account(), StaysLong::default());
    let none = Duration::ZERO;
    let serving = thread_of(&engine, &owner, none).await;
    let call_long = || thread_of_export(&engine, &owner, &long, Duration::from_millis(20));
    for _ in 0..10 {
        call_long().await;
    }
    assert_eq!(thread_of(&engine, &owner, none).await, "long-calls");
    // The owner's debt is at most 10 seconds.
    for _ in 0..25 {
        tokio::time::advance(Duration::from_millis(400)).await;
        assert_eq!(call_long().await, "long-calls");
    }
    assert_eq!(thread_of(&engine, &owner, none).await, serving);
    assert_eq!(call_long().await, "long-calls");
    tokio::time::advance(Duration::from_millis(501)).await;
    assert_eq!(call_long().await, serving);
}
