use std::time::Duration;

use gristmill_snapshot::Operator;

use super::*;
use crate::samples::{name, tenant};

const OPEN: &str = "a key that opens nothing";
const ACME: &str = "the key of acme";
const OLD: &str = "another key of acme, which an old log has";
const ADMIN: &str = "the admin token";
const OPERATOR: &str = "a token of an operator";
const ENDED: &str = "a token that has ended";

fn key(token: &str) -> Option<Key> {
    Some(gate(None).key(&snapshot(), token))
}

/// An open tenant "demo", and "acme" with one key.
fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::default();
    let hasher = gate(None).hasher;
    let keys = [hasher.hash(ACME), credentials::plain_hash(OLD)];
    let acme = Access::Keys(keys.to_vec());
    snapshot.tenants.insert_mut(name("demo"), Arc::new(tenant(Access::Open)));
    snapshot.tenants.insert_mut(name("acme"), Arc::new(tenant(acme)));
    snapshot.keys = keys.into_iter().map(|key| (key, name("acme"))).collect();
    snapshot.has_plain_keys = true;
    let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
    for (token, ends) in [(OPERATOR, now + hour), (ENDED, now - hour)] {
        let operator = Operator { name: name("ops"), version: 1, ends: Some(ends) };
        snapshot.operators.insert(hasher.hash(token), operator);
    }
    snapshot
}

fn gate(open_tenant: Option<&str>) -> Gate {
    let hasher = KeyHasher::new(&[5; 32]);
    Gate { open_tenant: open_tenant.map(name), admin_token: hasher.hash(ADMIN), hasher }
}

/// The tenant that the caller acts for, "operator", or the error.
fn caller(gate: &Gate, key: Option<Key>, tenant: Option<&str>) -> Result<String, AccessError> {
    gate.caller(&snapshot(), key, tenant).map(|caller| match caller {
        Caller::Tenant(tenant) => tenant.name.to_string(),
        Caller::Operator(None) => "operator".into(),
        Caller::Operator(Some(token)) => format!("operator {}", token.name),
    })
}

#[test]
fn a_key_determines_the_caller() {
    let gate = gate(Some("demo"));
    assert_eq!(caller(&gate, key(ACME), None), Ok("acme".into()));
    assert_eq!(caller(&gate, key(ACME), Some("acme")), Ok("acme".into()));
    assert_eq!(caller(&gate, key(ADMIN), None), Ok("operator".into()));
    assert_eq!(caller(&gate, key(ADMIN), Some("acme")), Ok("operator".into()));
    assert_eq!(caller(&gate, key(OLD), None), Ok("acme".into()));
    assert_eq!(caller(&gate, key(OLD), Some("acme")), Ok("acme".into()));
    assert_eq!(caller(&gate, key(OPERATOR), None), Ok("operator ops".into()));
    assert_eq!(caller(&gate, key(ENDED), None), Err(AccessError::UnknownKey));
    assert_eq!(caller(&gate, key(OPEN), None), Err(AccessError::UnknownKey));
    assert_eq!(caller(&gate, None, None), Ok("demo".into()));
}

#[test]
fn a_key_is_hashed_a_second_time_only_while_plain_hashes_are_kept() {
    let gate = gate(None);
    assert!(gate.key(&snapshot(), ACME).hashes.plain.is_some());
    let none = Snapshot::default();
    assert_eq!(gate.key(&none, ACME).hashes.plain, None);
    let plain = Gate { admin_token: credentials::plain_hash(ADMIN), ..gate };
    assert!(plain.operator(&none, &plain.key(&none, ADMIN)).is_some());
}

#[test]
fn a_call_without_a_key_needs_an_open_tenant() {
    assert_eq!(caller(&gate(None), None, None), Err(AccessError::KeyNeeded));
    assert_eq!(caller(&gate(Some("gone")), None, None), Err(AccessError::NoTenant("gone".into())));
    let basic = key("");
    assert_eq!(caller(&gate(Some("demo")), basic, None), Err(AccessError::KeyNeeded));
}

#[test]
fn a_tenant_that_does_not_exist_is_refused_like_one_whose_key_is_missing() {
    let gate = gate(None);
    for (tenant, key) in [("acme", key(OPEN)), ("acme", None), ("none", key(ACME)), ("none", None)]
    {
        let refused = caller(&gate, key, Some(tenant));
        assert_eq!(refused, Err(AccessError::KeyOfTenantNeeded(tenant.into())));
    }
    assert_eq!(caller(&gate, key(OPEN), Some("demo")), Ok("demo".into()));
}

#[test]
fn the_operator_runs_nothing_and_tenants_operate_nothing() {
    let (snapshot, gate) = (snapshot(), gate(None));
    let operator = gate.caller(&snapshot, key(ADMIN), None).unwrap();
    assert!(operator.operates().is_ok() && operator.budget().is_none());
    assert!(operator.owned().get().operates().is_ok());
    assert_eq!(operator.tenant().err(), Some(AccessError::OperatorRunsNothing));
    let acme = gate.caller(&snapshot, key(ACME), None).unwrap();
    assert!(acme.tenant().is_ok());
    let owned = acme.owned();
    assert_eq!(owned.get().name().map(Name::as_str), Some("acme"));
    assert_eq!(acme.operates(), Err(AccessError::OperatorOnly));
}
