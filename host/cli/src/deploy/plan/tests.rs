use std::collections::BTreeMap;

use gristmill_state::ModelConfig;

use super::*;
use crate::deploy::current::CurrentModel;
use crate::deploy::manifest::{Document, Secret, TenantFile};

fn name(name: &str) -> Name {
    name.parse().unwrap()
}

fn position() -> FilePosition {
    FilePosition { file: "deploy.toml".into(), line: 7 }
}

fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; 32])
}

fn keys(document: Value) -> Map<String, Value> {
    document.as_object().unwrap().clone()
}

fn document(document: Value) -> Document {
    Document { keys: keys(document), position: position() }
}

fn key(key: &str, secret: Option<&str>) -> Key {
    let secret = secret.map(|secret| Secret(secret.into()));
    Key { name: name(key), secret, position: position() }
}

fn pipeline(threshold: f64) -> Value {
    json!({ "pre": "p", "model": "m", "post": "p", "settings": { "threshold": threshold } })
}

/// The model `m` and the tenant `acme`, which has the key `ci`, the plugin `p`, the asset
/// `prices` and the pipeline `main`.
fn manifest() -> Manifest {
    let model = Model {
        source: ContentSource::Digest(digest(1)),
        config: Some(keys(json!({ "max_batch_size": 32 }))),
        position: position(),
    };
    let file = |byte| TenantFile {
        source: ContentSource::Digest(digest(byte)),
        signature: None,
        position: position(),
    };
    let (plugin, asset) = (file(2), file(3));
    let tenant = Tenant {
        document: Some(document(json!({ "models": ["m", "a", "m"] }))),
        keys: Some(vec![key("ci", None)]),
        plugins: [(name("p"), plugin)].into(),
        assets: [(name("prices"), asset)].into(),
        pipelines: [(name("main"), document(pipeline(0.5)))].into(),
    };
    Manifest { models: [(name("m"), model)].into(), tenants: [(name("acme"), tenant)].into() }
}

/// A server that has all of it.
fn current() -> Current {
    let config = ModelConfig { max_batch_size: 32.into(), ..ModelConfig::default() };
    let config = serde_json::to_value(config).unwrap();
    let mut main = pipeline(0.5);
    main["limits"] = json!({});
    main["instance_reuse"] = json!({ "mode": "none" });
    let tenant = CurrentTenant {
        document: json!({ "open": false, "weight": 1, "models": ["a", "m"],
            "api_keys": [{ "name": "ci" }] }),
        plugins: [(name("p"), Some(digest(2)))].into(),
        assets: [(name("prices"), Some(digest(3)))].into(),
        pipelines: [(name("main"), main)].into(),
    };
    Current {
        release: 3,
        models: [(name("m"), CurrentModel { digest: Some(digest(1)), config })].into(),
        tenants: [(name("acme"), tenant)].into(),
    }
}

fn files() -> Files {
    Files::of_digests([1, 2, 3].map(digest))
}

fn planned(manifest: &Manifest, current: &Current, prune: bool) -> Plan {
    plan(manifest, &files(), current, prune).unwrap()
}

fn documents(plan: &Plan) -> Vec<Value> {
    plan.changes.iter().map(|change| change.document.clone()).collect()
}

fn acme(current: &mut Current) -> &mut CurrentTenant {
    current.tenants.get_mut("acme").unwrap()
}

#[test]
fn what_is_there_gets_no_change() {
    let plan = planned(&manifest(), &current(), true);
    assert_eq!((documents(&plan), plan.kept), (Vec::new(), Vec::new()));
}

#[test]
fn a_new_server_gets_all_in_an_order_that_it_takes() {
    let mut manifest = manifest();
    let tenant = manifest.tenants.get_mut("acme").unwrap();
    tenant.keys = Some(vec![key("ci", Some("the-key-of-ci"))]);
    let plan = planned(&manifest, &Current::default(), false);
    let expected = [
        json!({ "kind": "put_model", "model": "m", "digest": digest(1).to_string() }),
        json!({ "kind": "put_model_config", "model": "m", "document": { "max_batch_size": 32 } }),
        json!({ "kind": "put_tenant", "tenant": "acme", "document": { "models": ["a", "m"],
            "api_keys": [{ "name": "ci", "key": "the-key-of-ci" }] } }),
        json!({ "kind": "put_plugin", "tenant": "acme", "plugin": "p",
            "digest": digest(2).to_string() }),
        json!({ "kind": "put_asset", "tenant": "acme", "asset": "prices",
            "digest": digest(3).to_string() }),
        json!({ "kind": "put_pipeline", "tenant": "acme", "pipeline": "main",
            "document": pipeline(0.5) }),
    ];
    assert_eq!(documents(&plan), expected);
    let contents: Vec<_> = plan.changes.iter().filter_map(|change| change.content).collect();
    assert_eq!(contents, [digest(1), digest(2), digest(3)]);
}

#[test]
fn only_what_differs_is_changed() {
    let mut current = current();
    current.models.get_mut("m").unwrap().config["instances"] = 2.into();
    let tenant = acme(&mut current);
    tenant.plugins.insert(name("p"), Some(digest(3)));
    tenant.assets.insert(name("prices"), Some(digest(2)));
    tenant.pipelines.insert(name("main"), pipeline(0.6));
    let labels: Vec<_> = planned(&manifest(), &current, false)
        .changes
        .into_iter()
        .map(|change| change.label)
        .collect();
    assert_eq!(
        labels,
        ["config of model m", "plugin acme/p", "asset acme/prices", "pipeline acme/main"]
    );
}

#[test]
fn other_keys_stay_unless_they_are_pruned() {
    let mut current = current();
    acme(&mut current).document["api_keys"] = json!([{ "name": "ci" }, { "name": "old" }]);
    let plan = planned(&manifest(), &current, false);
    assert_eq!((documents(&plan), plan.kept), (Vec::new(), vec!["key acme/old".to_owned()]));
    let delete = json!({ "kind": "delete_key", "tenant": "acme", "key": "old" });
    assert_eq!(documents(&planned(&manifest(), &current, true)), [delete]);
    // A changed document keeps them, too.
    acme(&mut current).document["weight"] = 2.into();
    let all = |prune| {
        documents(&planned(&manifest(), &current, prune))[0]["document"]["api_keys"].clone()
    };
    assert_eq!(all(false), json!([{ "name": "ci" }, { "name": "old" }]));
    assert_eq!(all(true), json!([{ "name": "ci" }]));
    // A manifest without api_keys says nothing about them.
    let mut manifest = manifest();
    manifest.tenants.get_mut("acme").unwrap().keys = None;
    let plan = planned(&manifest, &current, true);
    assert_eq!(
        documents(&plan)[0]["document"]["api_keys"],
        json!([{ "name": "ci" }, { "name": "old" }])
    );
}

#[test]
fn a_key_whose_value_is_given_is_put_alone() {
    let mut manifest = manifest();
    manifest.tenants.get_mut("acme").unwrap().keys =
        Some(vec![key("ci", Some("the-key-of-ci")), key("new", Some("the-new-key"))]);
    let put = |key: &str, value: &str| {
        json!({ "kind": "put_key", "tenant": "acme", "key": key,
        "document": { "key": value } })
    };
    let changes = documents(&planned(&manifest, &current(), false));
    assert_eq!(changes, [put("ci", "the-key-of-ci"), put("new", "the-new-key")]);
    // A key without a value must be there.
    manifest.tenants.get_mut("acme").unwrap().keys = Some(vec![key("none", None)]);
    let error = plan(&manifest, &files(), &current(), false).err().unwrap().to_string();
    let expected = "deploy.toml:7: tenants.acme.api_keys: the tenant has no key \"none\"";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn an_open_tenant_has_no_keys() {
    let mut manifest = manifest();
    let tenant = manifest.tenants.get_mut("acme").unwrap();
    tenant.document = Some(document(json!({ "open": true, "models": ["m", "a"] })));
    tenant.keys = None;
    let put = json!({ "kind": "put_tenant", "tenant": "acme",
        "document": { "open": true, "models": ["a", "m"] } });
    assert_eq!(documents(&planned(&manifest, &current(), false)), [put]);
    let mut current = current();
    acme(&mut current).document = json!({ "open": true, "weight": 1, "models": ["a", "m"] });
    assert!(documents(&planned(&manifest, &current, true)).is_empty());
}

#[test]
fn a_tenant_that_is_not_described_keeps_its_document() {
    let mut manifest = manifest();
    let tenant = manifest.tenants.get_mut("acme").unwrap();
    (tenant.document, tenant.keys) = (None, None);
    assert!(documents(&planned(&manifest, &current(), true)).is_empty());
}

#[test]
fn things_of_a_tenant_that_are_not_named_are_pruned_users_first() {
    let mut current = current();
    let tenant = acme(&mut current);
    for other in ["used", "tried", "old"] {
        tenant.plugins.insert(name(other), Some(digest(9)));
        tenant.assets.insert(name(other), Some(digest(9)));
    }
    for other in ["used", "old"] {
        tenant.pipelines.insert(name(other), Value::Null);
    }
    let mut manifest = manifest();
    let mut uses = pipeline(0.5);
    uses["post"] = "used@7".into();
    uses["assets"] = json!({ "x.json": "used@3" });
    uses["candidate"] = json!({ "pre": "tried", "assets": { "x.json": "tried" } });
    let acme = manifest.tenants.get_mut("acme").unwrap();
    acme.pipelines = BTreeMap::from([(name("main"), document(uses))]);
    let plan = planned(&manifest, &current, false);
    let kept = ["pipeline acme/old", "pipeline acme/used", "plugin acme/old", "asset acme/old"];
    assert_eq!(plan.kept, kept);
    let labels: Vec<_> =
        planned(&manifest, &current, true).changes.into_iter().map(|change| change.label).collect();
    assert_eq!(labels, [&["pipeline acme/main"][..], &kept].concat());
}

#[test]
fn a_difference_has_its_change() {
    let change =
        |document| Change { label: String::new(), position: None, document, content: None };
    let tenant = change(json!({ "kind": "put_tenant", "tenant": "a", "document": {} }));
    let config = change(json!({ "kind": "put_model_config", "model": "m" }));
    let deleted = change(json!({ "kind": "delete_plugin", "tenant": "a", "plugin": "p" }));
    for (change, difference, expected) in [
        (&tenant, json!({ "kind": "tenant", "tenant": "a" }), true),
        (&tenant, json!({ "kind": "key", "tenant": "a", "key": "k" }), true),
        (&tenant, json!({ "kind": "tenant", "tenant": "b" }), false),
        (&tenant, json!({ "kind": "plugin", "tenant": "a", "plugin": "p" }), false),
        (&config, json!({ "kind": "model_config", "model": "m", "before": {} }), true),
        (&config, json!({ "kind": "model", "model": "m" }), false),
        (&deleted, json!({ "kind": "plugin", "tenant": "a", "plugin": "p" }), true),
        (&deleted, json!({ "kind": "plugin", "tenant": "a", "plugin": "q" }), false),
    ] {
        assert_eq!(change.makes(&difference), expected, "{difference}");
    }
}
