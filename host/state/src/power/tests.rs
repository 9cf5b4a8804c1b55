use serde_json::{Value, json};

use super::*;
use crate::release::change::Change;
use crate::release::token::TokenSpec;
use crate::testing::{digest, name};

fn tenant_change(document: Value) -> Change {
    Change::PutTenant { tenant: name("acme"), spec: serde_json::from_value(document).unwrap() }
}

fn pipeline_change(document: Value) -> Change {
    let spec = serde_json::from_value(document).unwrap();
    Change::PutPipeline { tenant: name("acme"), pipeline: name("main"), spec: Box::new(spec) }
}

fn plugin_change(file: u8) -> Change {
    Change::PutPlugin { tenant: name("acme"), plugin: name("reader"), digest: digest(file) }
}

/// The plugins that are loaded: 1 and 2 are components, 3 and 4 are sources, and 9 is not loaded.
fn loaded(file: Digest) -> Option<LoadedPlugin> {
    let plugin = |imports: &[&str], world, bytes, runtime| {
        let imports = imports.iter().map(ToString::to_string).collect();
        Some(LoadedPlugin { imports, world, bytes, runtime })
    };
    match () {
        () if file == digest(1) => {
            plugin(&["gristmill:plugin/log@0.2.0", "wasi:io/poll@0.2.0"], "processor", 700, None)
        }
        () if file == digest(2) => plugin(
            &["gristmill:plugin/log@0.3.0", "wasi:http/outgoing-handler@0.2.0"],
            "handler",
            900,
            None,
        ),
        () if file == digest(3) => plugin(&["wasi:io/poll@0.2.0"], "handler", 5, Some("python")),
        () if file == digest(4) => plugin(&["wasi:io/poll@0.2.0"], "handler", 6, Some("python")),
        () => None,
    }
}

/// What may do more (`+`), less (`-`) or what is unknown (`?`) after the second changes, of all
/// that both change.
fn lines(first: &[Change], second: &[Change]) -> Vec<String> {
    let mut before = Desired::default();
    before.apply(1, first).unwrap();
    let mut after = before.clone();
    after.apply(2, second).unwrap();
    let limits = PipelineLimits::default();
    let powers = Powers { before: &before, after: &after, limits: &limits, loaded: &loaded };
    let subjects: BTreeSet<_> = second.iter().map(Change::target).collect();
    let line = |power: Power| {
        let mark = match power.trend {
            Trend::More => '+',
            Trend::Less => '-',
            Trend::Unknown => '?',
        };
        format!("{mark} {}: {}", power.kind, power.text)
    };
    subjects.iter().flat_map(|subject| powers.of(subject)).map(line).collect()
}

#[test]
fn what_a_tenant_is_granted_is_named_with_what_is_taken_away() {
    let before = json!({
        "models": ["digits", "old"], "stores": { "features": "read", "sessions": "write" },
        "http": [{ "scheme": "http", "host": "old.example", "port": 80 }],
        "quota": { "requests_per_s": 10, "rows_in_flight": 5 }, "batch_with": "tenant",
        "cors": { "origins": ["https://a.example"] },
    });
    let after = json!({
        "open": true, "try_page": true, "models": ["digits", "ranker"], "weight": 3,
        "stores": { "features": "write", "sessions": "read" },
        "http": [{ "scheme": "https", "host": "*.example.com", "port": 443,
            "addresses": ["10.0.0.0/8"] }],
        "quota": { "requests_per_s": 7 },
        "cors": { "origins": ["*"] }, "redirects": ["https://b.example"],
    });
    let lines = lines(&[tenant_change(before)], &[tenant_change(after)]);
    assert_eq!(
        lines,
        [
            "+ tenant: may now be called without a key",
            "+ tenant: may now have a page on which anyone tries its pipelines",
            "+ tenant: may now run models ranker",
            "- tenant: may no longer run models old",
            "+ tenant: may now write to stores features",
            "- tenant: may no longer write to stores sessions",
            "+ tenant: may now call https://*.example.com:443, https://*.example.com:443 at 10.0.0.0/8",
            "- tenant: may no longer call http://old.example:80",
            "+ tenant: may now be called by pages of *",
            "- tenant: may no longer be called by pages of https://a.example",
            "+ tenant: may now redirect browsers to https://b.example",
            "- tenant: quota.requests_per_s is 7 (was 10)",
            "- tenant: quota.burst is 7 (was 10)",
            "+ tenant: quota.rows_in_flight is none (was 5)",
            "+ tenant: weight is 3 (was 1)",
            "+ tenant: may now share batches with other tenants",
        ]
    );
}

#[test]
fn a_new_thing_has_no_less_than_before_and_one_that_goes_has_nothing() {
    let small = json!({ "batch_with": "tenant", "quota": { "requests_per_s": 1 } });
    assert_eq!(lines(&[], &[tenant_change(small.clone())]), [""; 0]);
    let gone = Change::DeleteTenant { tenant: name("acme") };
    assert_eq!(lines(&[tenant_change(small)], &[gone]), [""; 0]);
    let new = json!({ "pre": "reader", "model": "m", "post": "reader", "debug": true,
        "limits": { "cpu_ms": 5, "timeout_ms": 600_000 } });
    let default = PipelineLimits::default().timeout.as_millis();
    assert_eq!(
        lines(&[tenant_change(json!({}))], &[pipeline_change(new)]),
        [
            "+ pipeline: may now run plugins reader".to_owned(),
            "+ pipeline: may now run models m".to_owned(),
            format!("+ pipeline: limits.timeout_ms is 600000 (was {default})"),
            "+ pipeline: may now show clients why its plugins fail".to_owned(),
        ]
    );
}

#[test]
fn an_earlier_priority_and_fewer_redacted_headers_are_more() {
    let tenant = tenant_change(json!({}));
    let put = |priority: Option<u32>, redacted: &[&str]| {
        let capture = json!({ "percent": 1.0, "redact_headers": redacted });
        pipeline_change(json!({ "pre": "reader", "model": "m", "post": "reader",
            "priority": priority, "capture": capture }))
    };
    let changed = |first: Change, second: Change| {
        lines(&[tenant.clone(), first], std::slice::from_ref(&second))
    };
    assert_eq!(
        changed(put(Some(2), &["authorization"]), put(Some(1), &["x-user"])),
        [
            "+ pipeline: priority is 1 (was 2)",
            "+ pipeline: may now keep the values of headers authorization",
            "- pipeline: may no longer keep the values of headers x-user",
        ]
    );
    assert_eq!(
        changed(put(Some(1), &[]), put(Some(2), &[])),
        ["- pipeline: priority is 2 (was 1)"]
    );
    assert_eq!(
        changed(put(None, &[]), put(Some(2), &[])),
        ["? pipeline: priority is 2 (was the default of each model)"]
    );
}

#[test]
fn a_candidate_counts_as_its_pipeline() {
    let first = json!({ "handler": "reader", "models": { "m": "digits" },
        "assets": { "a.json": "prices" }, "limits": { "cpu_ms": 500 } });
    let mut second = first.clone();
    second["limits"] = json!({ "cpu_ms": 400 });
    second["instance_reuse"] = json!({ "mode": "tenant" });
    second["candidate"] = json!({ "handler": "other@3", "models": { "m": "ranker@7" },
        "assets": { "b.json": "secrets" }, "traffic_percent": 1.0 });
    assert_eq!(
        lines(&[tenant_change(json!({})), pipeline_change(first)], &[pipeline_change(second)]),
        [
            "+ pipeline: may now run plugins other",
            "+ pipeline: may now run models ranker",
            "+ pipeline: may now open assets secrets",
            "- pipeline: limits.cpu_ms is 400 (was 500)",
            "+ pipeline: may now keep instances between requests",
        ]
    );
}

#[test]
fn imports_of_plugins_are_compared_without_versions_as_far_as_they_are_known() {
    let put = |first: Option<u8>, second: u8| {
        let first = first.map(plugin_change);
        let first: Vec<_> = std::iter::once(tenant_change(json!({}))).chain(first).collect();
        lines(&first, &[plugin_change(second)])
    };
    assert_eq!(
        put(Some(1), 2),
        [
            "+ plugin: imports wasi:http/outgoing-handler for the first time",
            "- plugin: no longer imports wasi:io/poll",
            "+ plugin: its world is handler (was processor)",
            "+ plugin: its size is 900 bytes (was 700)",
        ]
    );
    assert_eq!(
        put(None, 1),
        [
            "+ plugin: imports gristmill:plugin/log, wasi:io/poll for the first time",
            "+ plugin: its size is 700 bytes",
        ]
    );
    assert_eq!(put(Some(1), 1), [""; 0]);
    let unknown = put(Some(9), 1);
    assert!(unknown[0].starts_with("? plugin: what it imported before is unknown"), "{unknown:?}");
    assert!(unknown[0].ends_with(": now gristmill:plugin/log, wasi:io/poll"), "{unknown:?}");
    assert_eq!(unknown[1..], ["? plugin: its size is 700 bytes"]);
    assert_eq!(
        put(Some(1), 9),
        ["? plugin: what it imports is unknown: this version is not loaded"]
    );
    let shared = put(Some(2), 3);
    assert!(shared[0].starts_with("? plugin: its sources share the runtime of python"));
    assert_eq!(shared[1..], ["- plugin: its size is 5 bytes (was 900)"]);
    assert_eq!(put(Some(3), 4), ["+ plugin: its size is 6 bytes (was 5)"]);
}

#[test]
fn a_token_has_a_role_and_tenants() {
    let put = |spec: Value| {
        let spec: TokenSpec = serde_json::from_value(spec).unwrap();
        Change::PutToken { token: name("ci"), spec }
    };
    let hash = serde_json::to_value(gristmill_core::KeyHash::Plain(digest(1))).unwrap();
    let first = put(json!({ "role": "read", "hash": hash }));
    let second = put(json!({ "role": "deploy", "tenants": ["acme"], "hash": hash }));
    assert_eq!(lines(&[], std::slice::from_ref(&first)), ["+ token: its role is read"]);
    let both = |first: &Change, second: &Change| {
        lines(std::slice::from_ref(first), std::slice::from_ref(second))
    };
    assert_eq!(
        both(&first, &second),
        ["+ token: its role is deploy (was read)", "+ token: may now change tenants acme"]
    );
    // Each of the two roles may do something that the other may not.
    assert_eq!(
        both(&second, &first),
        ["+ token: its role is read (was deploy)", "- token: may no longer change tenants acme"]
    );
    let admin = put(json!({ "role": "admin", "hash": hash, "expires_at_ms": 1000 }));
    assert_eq!(
        both(&second, &admin),
        [
            "+ token: its role is admin (was deploy)",
            "- token: expires is 1970-01-01T00:00:01Z (was never)",
        ]
    );
    assert_eq!(
        both(&admin, &second),
        [
            "- token: its role is deploy (was admin)",
            "+ token: expires is never (was 1970-01-01T00:00:01Z)",
        ]
    );
}

#[test]
fn a_long_list_is_cut_in_the_text_and_not_in_the_names() {
    let models: Vec<_> = (0..70).map(|number| format!("m{number}")).collect();
    let mut after = Desired::default();
    after.apply(1, &[tenant_change(json!({ "models": models }))]).unwrap();
    let (before, limits) = (Desired::default(), PipelineLimits::default());
    let powers = Powers { before: &before, after: &after, limits: &limits, loaded: &loaded };
    let found = powers.of(&Subject::Tenant(name("acme")));
    let [only] = &found[..] else { panic!("{found:?}") };
    assert_eq!((only.power, only.names.len()), (PowerKind::Model, 70));
    assert!(only.text.ends_with(" and 6 more"), "{}", only.text);
    let document = serde_json::to_value(only).unwrap();
    let [kind, tenant, power] = ["kind", "tenant", "power"].map(|key| document[key].as_str());
    assert_eq!([kind, tenant, power], [Some("tenant"), Some("acme"), Some("model")]);
}
