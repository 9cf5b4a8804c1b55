use gristmill_core::{Digest, KeyHash, Name};
use serde_json::json;

use super::Desired;
use crate::release::change::Change;
use crate::release::model_config::ModelConfig;
use crate::release::tenant::TenantSpec;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn put_model(byte: u8) -> Change {
    Change::PutModel { model: name("m"), digest: Digest::from_bytes([byte; 32]), version: None }
}

fn applied(releases: &[&[Change]]) -> Desired {
    let mut desired = Desired::default();
    for (number, changes) in (1..).zip(releases) {
        desired.apply(number, changes).unwrap();
    }
    desired
}

#[test]
fn a_models_versions_are_the_releases_that_brought_new_content() {
    let config = ModelConfig { max_batch_size: 7.into(), ..ModelConfig::default() };
    let put_config = Change::PutModelConfig { model: name("m"), config: config.clone().into() };
    let desired = applied(&[
        &[put_model(1)],
        &[put_model(1)],
        &[put_config],
        &[put_model(2)],
        &[put_model(1)],
    ]);
    let model = &desired.models["m"];
    assert_eq!((model.version, &model.earlier_versions[..]), (5, &[1, 4][..]));
    assert_eq!(model.config, config, "new content leaves the configuration");
}

#[test]
fn a_model_keeps_its_content_while_it_is_unloaded() {
    let unload = Change::UnloadModel { model: name("m") };
    let load = Change::LoadModel { model: name("m") };
    assert!(applied(&[&[put_model(1)], std::slice::from_ref(&unload)]).models["m"].unloaded);
    assert_eq!(applied(&[&[put_model(1)], &[unload, load]]), applied(&[&[put_model(1)]]));
}

#[test]
fn a_tenant_that_is_put_again_keeps_its_plugins_and_pipelines() {
    let tenant = name("acme");
    let put = |open| Change::PutTenant {
        tenant: tenant.clone(),
        spec: TenantSpec { open, ..TenantSpec::default() },
    };
    let (plugin, digest) = (name("p"), Digest::from_bytes([1; 32]));
    let spec = json!({ "pre": "p", "model": "m", "post": "p" });
    let desired = applied(&[
        &[put(true)],
        &[Change::PutPlugin { tenant: tenant.clone(), plugin, digest }],
        &[Change::PutPipeline {
            tenant: tenant.clone(),
            pipeline: name("main"),
            spec: serde_json::from_value(spec).unwrap(),
        }],
        &[put(false)],
    ]);
    assert_eq!(desired.tenants["acme"].since, 1);
    let acme = &desired.tenants["acme"];
    assert!(!acme.spec.open && acme.plugins.contains_key("p") && acme.pipelines.len() == 1);
    let deleted = applied(&[&[put(true)], &[Change::DeleteTenant { tenant }]]);
    assert_eq!(deleted, Desired::default(), "the log may delete what has contents");
}

#[test]
fn a_version_is_the_release_that_brought_the_key_or_the_file() {
    let (tenant, digest) = (name("acme"), |byte| Digest::from_bytes([byte; 32]));
    let hash = |byte| KeyHash::Plain(digest(byte));
    let put = |keys: &[(&str, u8)]| {
        let keys = keys.iter().map(|(key, byte)| (name(key), hash(*byte))).collect();
        let spec = TenantSpec { keys, ..TenantSpec::default() };
        Change::PutTenant { tenant: tenant.clone(), spec }
    };
    let put_key =
        |key, byte| Change::PutKey { tenant: tenant.clone(), key: name(key), digest: hash(byte) };
    let put_plugin = |byte| Change::PutPlugin {
        tenant: tenant.clone(),
        plugin: name("p"),
        digest: digest(byte),
    };
    let desired = applied(&[
        &[put(&[("a", 1), ("b", 2), ("c", 3)]), put_plugin(1)],
        &[put(&[("a", 1), ("b", 9), ("c", 3)]), put_plugin(1)],
        &[put_key("c", 4), put_key("a", 1), put_plugin(2)],
        &[Change::DeleteKey { tenant: tenant.clone(), key: name("b") }, put_plugin(2)],
    ]);
    let acme = &desired.tenants["acme"];
    assert_eq!(acme.key_versions, [("a", 1), ("c", 3)].map(|(key, at)| (name(key), at)).into());
    assert_eq!(
        acme.spec.keys,
        [("a", 1), ("c", 4)].map(|(key, byte)| (name(key), hash(byte))).into()
    );
    assert_eq!(acme.plugins["p"].version, 3);
}

#[test]
fn a_version_that_nothing_keeps_goes_when_its_release_ends() {
    let put = |byte| Change::PutPlugin {
        tenant: name("acme"),
        plugin: name("p"),
        digest: Digest::from_bytes([byte; 32]),
    };
    let put_tenant = Change::PutTenant { tenant: name("acme"), spec: TenantSpec::default() };
    let mut desired = applied(&[&[put_tenant, put(1), put_model(1)]]);
    let changes = [put(2), put_model(2)];
    desired.apply_some(2, &changes).unwrap();
    let kept = |desired: &Desired| {
        let versions = |kept: &std::collections::BTreeMap<u64, Digest>| kept.keys().copied().sum();
        let plugin: u64 = versions(&desired.tenants["acme"].plugins["p"].kept);
        let model: u64 = versions(&desired.models["m"].kept);
        (plugin, model)
    };
    let has = |desired: &Desired, byte| desired.has_plugin(Digest::from_bytes([byte; 32]));
    assert!(kept(&desired) == (1, 1) && has(&desired, 1) && has(&desired, 2));
    desired.prune(&changes);
    assert!(kept(&desired) == (0, 0) && !has(&desired, 1) && has(&desired, 2));
}

#[test]
fn what_is_not_there_is_neither_changed_nor_deleted() {
    let (tenant, plugin) = (name("acme"), name("p"));
    let digest = Digest::from_bytes([1; 32]);
    for change in [
        Change::DeleteTenant { tenant: tenant.clone() },
        Change::PutPlugin { tenant: tenant.clone(), plugin: plugin.clone(), digest },
        Change::DeletePlugin { tenant, plugin },
        Change::PutModelConfig { model: name("m"), config: Box::default() },
        Change::PutModelVersion { model: name("m"), version: 1, digest },
        Change::DeleteModel { model: name("m") },
        Change::LoadModel { model: name("m") },
        Change::UnloadModel { model: name("m") },
    ] {
        assert!(Desired::default().apply(1, std::slice::from_ref(&change)).is_err(), "{change}");
    }
}

#[test]
fn a_configuration_out_of_its_ranges_is_not_applied() {
    let config = ModelConfig { max_batch_size: 70_000.into(), ..ModelConfig::default() };
    let put = Change::PutModelConfig { model: name("m"), config: config.into() };
    let mut desired = applied(&[&[put_model(1)]]);
    let error = desired.apply(2, &[put]).unwrap_err().to_string();
    assert!(error.starts_with("max_batch_size is 70000"), "{error}");
    assert_eq!(desired, applied(&[&[put_model(1)]]));
}

#[test]
fn a_state_in_the_place_of_another_touches_all_tenants_of_both() {
    let put =
        |tenant: &str| Change::PutTenant { tenant: name(tenant), spec: TenantSpec::default() };
    let mut before = applied(&[&[put("a"), put("b"), put("c")]]);
    before.settle();
    before.apply(2, &[Change::DeleteTenant { tenant: name("c") }]).unwrap();
    let mut later = applied(&[&[put("b"), put("d")]]);
    later.settle();
    let later = later.in_place_of(&before);
    assert_eq!(*later.touched(), ["a", "b", "c", "d"].map(name).into());
    assert!(later.tenants.get("a").is_none());
}
