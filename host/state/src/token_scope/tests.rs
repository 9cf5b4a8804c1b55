use gristmill_core::{ClientError, ErrorCode, KeyHash, KeyHashes};
use serde_json::json;

use super::*;
use crate::release::change::ReleaseNote;
use crate::release::cors::CorsSpec;
use crate::release::quota::QuotaSpec;
use crate::release::store_grants::StoreGrant;
use crate::release::tenant::{SentKey, TenantDocument};
use crate::release::token::{Role, TokenDocument, TokenSpec};
use crate::release::version_policy::VersionPolicy;
use crate::testing::{digest, name};

/// That of a token for `acme`.
fn token_scope() -> TokenScope {
    TokenScope::Tenants { token: name("ci"), tenants: [name("acme")].into() }
}

fn put_tenant(tenant: &str, spec: TenantSpec) -> Change {
    Change::PutTenant { tenant: name(tenant), spec }
}

fn put_asset(tenant: &str, byte: u8) -> Change {
    Change::PutAsset { tenant: name(tenant), asset: name("a"), digest: digest(byte) }
}

fn put_asset_version(tenant: &str) -> Change {
    let (tenant, asset) = (name(tenant), name("a"));
    Change::PutAssetVersion { tenant, asset, version: 3, digest: digest(9) }
}

fn put_plugin(tenant: &str, byte: u8) -> Change {
    Change::PutPlugin { tenant: name(tenant), plugin: name("p"), digest: digest(byte) }
}

fn put_plugin_version(tenant: &str) -> Change {
    let (tenant, plugin) = (name(tenant), name("p"));
    Change::PutPluginVersion { tenant, plugin, version: 3, digest: digest(9) }
}

fn put_model_version() -> Change {
    Change::PutModelVersion { model: name("granted"), version: 3, digest: digest(9) }
}

fn put_pipeline(tenant: &str, model: &str) -> Change {
    let spec = json!({ "pre": "p", "model": model, "post": "p" });
    let spec = serde_json::from_value(spec).unwrap();
    Change::PutPipeline { tenant: name(tenant), pipeline: name("main"), spec }
}

/// `acme` is granted `granted`, its pipeline uses `used`; `other` uses `secret`.
fn state() -> Desired {
    let mut desired = Desired::default();
    let models = ["granted", "used", "secret"].map(name);
    let mut changes =
        models.map(|model| Change::PutModel { model, digest: digest(1), version: None }).to_vec();
    let spec = TenantSpec { models: [name("granted")].into(), ..TenantSpec::default() };
    changes.extend([put_tenant("acme", spec), put_tenant("other", TenantSpec::default())]);
    changes.extend([put_plugin("acme", 1), put_plugin("other", 2)]);
    changes.extend([put_pipeline("acme", "used"), put_pipeline("other", "secret")]);
    desired.apply(5, &changes).unwrap();
    desired
}

/// Every kind of change, to the tenant.
fn asked(tenant: &str) -> Vec<(AskedChange, bool)> {
    let of = || name(tenant);
    let key = || name("key");
    let hash = KeyHash::Plain(digest(9));
    let hashes = KeyHashes { keyed: hash, plain: None };
    let sent = SentKey { hashes, is_token: false };
    let model = || name("granted");
    let document = TenantDocument {
        open: true,
        api_keys: Vec::new(),
        default_pipeline: None,
        weight: 9,
        batch_with: Default::default(),
        models: [].into(),
        quota: QuotaSpec::default(),
        plugin_version_policy: VersionPolicy::default(),
        stores: Default::default(),
        http: Default::default(),
        cors: None,
        redirects: Default::default(),
        plugin_signers: Default::default(),
        try_page: true,
    };
    let token = TokenDocument { role: Role::Admin, tenants: [].into(), expires_at_ms: None };
    let spec = TokenSpec { role: Role::Admin, tenants: [].into(), expires_at_ms: None, hash };
    let allowed = [
        (put_plugin(tenant, 1), true),
        (Change::DeletePlugin { tenant: of(), plugin: name("p") }, true),
        (put_asset(tenant, 1), true),
        (Change::DeleteAsset { tenant: of(), asset: name("a") }, true),
        (put_asset_version(tenant), false),
        (put_pipeline(tenant, "used"), true),
        (Change::DeletePipeline { tenant: of(), pipeline: name("main") }, true),
        (Change::DeleteKey { tenant: of(), key: key() }, true),
        (Change::PutKey { tenant: of(), key: key(), digest: hash }, false),
        (put_tenant(tenant, TenantSpec::default()), false),
        (Change::DeleteTenant { tenant: of() }, false),
        (put_plugin_version(tenant), false),
        (Change::PutModel { model: model(), digest: digest(1), version: None }, false),
        (put_model_version(), false),
        (Change::PutModelConfig { model: model(), config: Default::default() }, false),
        (Change::DeleteModel { model: model() }, false),
        (Change::LoadModel { model: model() }, false),
        (Change::UnloadModel { model: model() }, false),
        (Change::PutToken { token: name("x"), spec }, false),
        (Change::DeleteToken { token: name("ci") }, false),
    ];
    let mut asked: Vec<_> = allowed.map(|(change, may)| (AskedChange::Known(change), may)).into();
    asked.extend([
        (AskedChange::PutKey { tenant: of(), key: key(), sent }, true),
        (AskedChange::PutTenant { tenant: of(), document }, false),
        (AskedChange::PutToken { token: name("x"), document: token, hash }, false),
        (AskedChange::RotateToken { token: name("ci"), hash }, false),
    ]);
    asked
}

#[test]
fn a_token_changes_plugins_assets_pipelines_and_keys_of_its_tenants_alone() {
    for (change, may) in asked("acme") {
        assert_eq!(token_scope().check_asked(&change).is_ok(), may, "{change:?}");
    }
    // It makes no difference whether the other tenant exists.
    for (change, _) in asked("other").into_iter().chain(asked("none")) {
        let error = token_scope().check_asked(&change).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Forbidden, "{change:?}");
        assert!(!error.to_string().contains("other"), "{error}");
        assert!(TokenScope::Server.check_asked(&change).is_ok());
    }
    for scope in [Scope::Everything, Scope::Tenant(name("acme")), Scope::PartsOf(name("other"))] {
        assert!(token_scope().check_scope(&scope).is_err(), "{scope:?}");
        assert!(TokenScope::Server.check_scope(&scope).is_ok());
    }
    assert!(token_scope().check_scope(&Scope::PartsOf(name("acme"))).is_ok());
}

#[test]
fn what_follows_from_a_change_stays_within_the_reach_too() {
    let check = |change: Change| {
        let checked = token_scope().check_planned(&state(), &[change]);
        checked.map_err(|error| error.to_string())
    };
    let spec = state().tenants["acme"].spec.clone();
    let default = TenantSpec { default_pipeline: Some(name("main")), ..spec.clone() };
    assert_eq!(check(put_tenant("acme", default)), Ok(()));
    assert_eq!(check(put_plugin_version("acme")), Ok(()), "going back makes it");
    let plugin_version_policy = VersionPolicy::Latest { num_versions: 2 };
    let pages: CorsSpec = serde_json::from_value(json!({ "origins": ["*"] })).unwrap();
    for spec in [
        TenantSpec { weight: 9, ..spec.clone() },
        TenantSpec { plugin_version_policy, ..spec.clone() },
        TenantSpec { open: true, ..spec.clone() },
        TenantSpec { stores: [(name("features"), StoreGrant::Read)].into(), ..spec.clone() },
        TenantSpec { models: [name("secret")].into(), ..spec.clone() },
        TenantSpec { cors: Some(pages), ..spec.clone() },
        TenantSpec { try_page: true, ..spec.clone() },
        TenantSpec { keys: [(name("k"), KeyHash::Plain(digest(1)))].into(), ..spec.clone() },
    ] {
        assert!(check(put_tenant("acme", spec.clone())).is_err(), "{spec:?}");
    }
    for change in [
        put_tenant("other", state().tenants["other"].spec.clone()),
        put_tenant("new", TenantSpec::default()),
        put_plugin("other", 1),
        put_plugin_version("other"),
        put_model_version(),
        Change::DeleteTenant { tenant: name("acme") },
        Change::DeleteModel { model: name("granted") },
        Change::DeleteToken { token: name("ci") },
    ] {
        assert!(check(change.clone()).is_err(), "{change}");
    }
}

#[test]
fn models_beyond_the_reach_do_not_exist() {
    let check = |model: &str| {
        let checked = token_scope().check_planned(&state(), &[put_pipeline("acme", model)]);
        checked.map_err(|error| error.to_string())
    };
    for (model, has) in [("granted", true), ("used", true), ("secret", false), ("none", false)] {
        assert_eq!(token_scope().has_model(&state(), model), has, "{model}");
        let text = format!("tenant \"acme\", pipeline \"main\": model: no model {model:?}");
        assert_eq!(check(model), if has { Ok(()) } else { Err(text) });
        assert!(TokenScope::Server.has_model(&state(), model));
    }
}

#[test]
fn a_file_is_known_by_the_plugins_that_have_it() {
    assert!(
        token_scope().has_file(&state(), digest(1)) && !token_scope().has_file(&state(), digest(2))
    );
    assert!(TokenScope::Server.has_file(&state(), digest(3)));
    // So is that of an earlier version that stays.
    let mut pinned = state();
    let spec = json!({ "pre": "p@3", "model": "used", "post": "p" });
    let spec = serde_json::from_value(spec).unwrap();
    let put = Change::PutPipeline { tenant: name("acme"), pipeline: name("main"), spec };
    pinned.apply(6, &[put_plugin_version("acme"), put]).unwrap();
    assert!(
        token_scope().has_file(&pinned, digest(9)) && !token_scope().has_file(&state(), digest(9))
    );
}

#[test]
fn every_model_of_a_handler_must_be_the_tenants() {
    let planned = |models: serde_json::Value, candidate: serde_json::Value| {
        let spec = json!({ "handler": "p", "models": models, "candidate": candidate });
        let spec = serde_json::from_value(spec).unwrap();
        let put = Change::PutPipeline { tenant: name("acme"), pipeline: name("main"), spec };
        token_scope().check_planned(&state(), &[put]).map_err(|error| error.to_string())
    };
    let own_models = || json!({ "detect": "used", "read": "granted@5" });
    let candidate = |models: serde_json::Value| json!({ "models": models, "traffic_percent": 1 });
    assert_eq!(planned(own_models(), candidate(own_models())), Ok(()));
    let expected = "tenant \"acme\", pipeline \"main\": models.b: no model \"secret\"";
    let foreign = || json!({ "a": "used", "b": "secret" });
    assert_eq!(planned(foreign(), candidate(own_models())), Err(expected.into()));
    assert_eq!(planned(own_models(), candidate(foreign())), Err(expected.into()));
}

#[test]
fn of_a_release_only_the_own_part_is_seen() {
    let release = |number, changes: &[Change]| Release {
        number,
        published_at_ms: 1,
        previous: None,
        note: ReleaseNote { by: Some("admin".into()), message: Some("for other".into()) },
        changes: changes.to_vec(),
    };
    let part =
        |number, changes: &[Change]| token_scope().part_of(release(number, changes), &state());
    let (acme, other) = (put_plugin("acme", 1), put_plugin("other", 2));
    let seen = part(6, &[other.clone(), acme.clone()]).unwrap();
    assert_eq!((seen.changes, seen.note.message), (vec![acme.clone()], None));
    assert_eq!(seen.note.by.as_deref(), Some("admin"));
    let seen = part(6, std::slice::from_ref(&acme)).unwrap();
    assert_eq!(seen.note.message.as_deref(), Some("for other"));
    assert!(part(6, &[other]).is_none());
    assert!(part(6, &[Change::DeleteToken { token: name("ci") }]).is_none());
    assert!(part(4, &[acme]).is_none(), "that was another tenant of the same name");
}

#[test]
fn the_pipelines_of_a_token_name_a_bounded_number_of_versions() {
    let pins = |versions: &[u64]| {
        let mut state = state();
        for version in versions {
            let spec = json!({ "pre": "p", "model": format!("used@{version}"), "post": "p" });
            let spec = serde_json::from_value(spec).unwrap();
            let (tenant, pipeline) = (name("acme"), name(&format!("pin-{version}")));
            state.apply_some(9, &[Change::PutPipeline { tenant, pipeline, spec }]).unwrap();
        }
        state
    };
    let check = |before: &[u64], after: &[u64]| {
        let checked = token_scope().check_pins(&pins(before), &pins(after));
        checked.map_err(|error| error.to_string())
    };
    assert_eq!(check(&[], &[1, 2]), Ok(()));
    let error = check(&[1, 2], &[1, 2, 3]).unwrap_err();
    assert!(error.contains("name 3 versions of model \"used\""), "{error}");
    // An operator may have put them, and one may go.
    assert_eq!(check(&[1, 2, 3, 4], &[2, 3, 4]), Ok(()));
    assert!(TokenScope::Server.check_pins(&pins(&[]), &pins(&[1, 2, 3])).is_ok());
}
