use async_trait::async_trait;
use gristmill_core::{ByteBudget, OverBudget};
use http_body_util::{BodyExt, Empty};
use parking_lot::Mutex;

use super::*;
use crate::outgoing::OUTGOING_AT_ONCE;

/// Keeps the calls, as if their answers did not end.
#[derive(Default)]
struct Endless(Mutex<Vec<OutgoingCall>>);

#[async_trait]
impl OutgoingHttp for Endless {
    async fn send(
        &self,
        call: OutgoingCall,
        _: Request<OutgoingBody>,
    ) -> Result<Response<OutgoingBody>, OutgoingFault> {
        self.0.lock().push(call);
        Ok(Response::new(body()))
    }
}

fn body() -> OutgoingBody {
    Empty::new().map_err(|error| match error {}).boxed_unsync()
}

fn granting(client: &Arc<Endless>, destinations: &[(&str, &[&str])]) -> Arc<TenantOutgoing> {
    let granted = destinations.iter().map(|(host, addresses)| Destination {
        scheme: Scheme::Https,
        host: host.parse().unwrap(),
        port: 443,
        addresses: addresses.iter().map(|range| range.parse().unwrap()).collect(),
    });
    let (tenant, permits) = ("acme".parse().unwrap(), Arc::new(Semaphore::new(OUTGOING_AT_ONCE)));
    let (granted, cpu) = (granted.collect(), Arc::default());
    Arc::new(TenantOutgoing::new(tenant, client.clone(), granted, permits, cpu))
}

#[tokio::test(start_paused = true)]
async fn a_request_takes_its_memory_and_its_place_until_the_client_is_done() {
    let client = Arc::new(Endless::default());
    let outgoing = granting(&client, &[("a.example", &[])]);
    let budget = ByteBudget::new(OUTGOING_AT_ONCE * OUTGOING_BYTES + OUTGOING_BYTES / 2);
    let send = || {
        let deadline = Instant::now() + Duration::from_secs(1);
        let to = (Scheme::Https, "a.example", 443);
        let sending = outgoing.sending(to, deadline, budget.hold(0)).unwrap();
        sending.send(Request::new(body()), Timeouts::default())
    };
    for _ in 0..OUTGOING_AT_ONCE {
        send().await.unwrap();
    }
    assert_eq!(budget.held(), OUTGOING_AT_ONCE * OUTGOING_BYTES);
    assert_eq!(send().await.unwrap_err(), OutgoingFault::TooMany);
    let _others = budget.hold(OUTGOING_BYTES);
    client.0.lock().pop();
    let refused = send().await.unwrap_err();
    assert!(matches!(refused, OutgoingFault::OverBudget(OverBudget { .. })), "{refused}");
    client.0.lock().clear();
    assert_eq!(budget.held(), OUTGOING_BYTES);
}

#[tokio::test]
async fn only_what_is_granted_may_be_sent_with_the_addresses_of_all_grants() {
    let client = Arc::new(Endless::default());
    let ranges = [("*.a.example", &["10.0.0.0/8"][..]), ("b.a.example", &["127.0.0.1"][..])];
    let outgoing = granting(&client, &ranges);
    let deadline = Instant::now() + Duration::from_secs(20);
    let budget = ByteBudget::new(OUTGOING_BYTES);
    let sending = |to| outgoing.sending(to, deadline, budget.hold(0));
    for (scheme, host, port) in [
        (Scheme::Http, "b.a.example", 443),
        (Scheme::Https, "b.a.example", 8443),
        (Scheme::Https, "a.example", 443),
        (Scheme::Https, "b.a.example.evil.test", 443),
    ] {
        assert!(sending((scheme, host, port)).is_none(), "{scheme:?} {host} {port}");
    }
    let sent = sending((Scheme::Https, "b.a.example", 443)).unwrap();
    sent.send(Request::new(body()), Timeouts::default()).await.unwrap();
    let calls = client.0.lock();
    let addresses: Vec<_> = calls[0].addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.0/8", "127.0.0.1"]);
}
