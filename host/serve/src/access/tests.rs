use super::*;
use crate::samples::{name, tenant};

const OPEN: [u8; 32] = [1; 32];
const ACME: [u8; 32] = [2; 32];
const ADMIN: [u8; 32] = [3; 32];

fn key(digest: [u8; 32]) -> Option<Key> {
    Some(Key { digest: Digest::from_bytes(digest), is_bearer: true })
}

/// An open tenant "demo", and "acme" with one key.
fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::default();
    let acme = Access::Keys(vec![Digest::from_bytes(ACME)]);
    snapshot.tenants.insert(name("demo"), Arc::new(tenant(Access::Open)));
    snapshot.tenants.insert(name("acme"), Arc::new(tenant(acme)));
    snapshot.keys.insert(Digest::from_bytes(ACME), name("acme"));
    snapshot
}

fn gate(open_tenant: Option<&str>) -> Gate {
    Gate { open_tenant: open_tenant.map(name), admin_token: Digest::from_bytes(ADMIN) }
}

/// The tenant that the caller acts for, "operator", or the error.
fn caller(gate: &Gate, key: Option<Key>, tenant: Option<&str>) -> Result<String, AccessError> {
    gate.caller(&snapshot(), key, tenant).map(|caller| match caller {
        Caller::Tenant(own) => own.name.to_string(),
        Caller::Operator => "operator".into(),
    })
}

#[test]
fn a_key_determines_the_caller() {
    let gate = gate(Some("demo"));
    assert_eq!(caller(&gate, key(ACME), None), Ok("acme".into()));
    assert_eq!(caller(&gate, key(ACME), Some("acme")), Ok("acme".into()));
    assert_eq!(caller(&gate, key(ADMIN), None), Ok("operator".into()));
    assert_eq!(caller(&gate, key(ADMIN), Some("acme")), Ok("operator".into()));
    assert_eq!(caller(&gate, key(OPEN), None), Err(AccessError::UnknownKey));
    assert_eq!(caller(&gate, None, None), Ok("demo".into()));
}

#[test]
fn a_call_without_a_key_needs_an_open_tenant() {
    assert_eq!(caller(&gate(None), None, None), Err(AccessError::KeyNeeded));
    assert_eq!(caller(&gate(Some("gone")), None, None), Err(AccessError::NoTenant("gone".into())));
    let basic = Some(Key { digest: Digest::from_bytes(OPEN), is_bearer: false });
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
