use std::sync::Arc;

use gristmill_core::{ClientError, Digest, ErrorCode, HashKeyId, KeyHash, KeyHashes, Name};
use serde_json::json;

use super::restore::{Scope, restore};
use super::tenant::tenant_spec;
use super::{Plan, subjects};
use crate::asked::AskedChange;
use crate::desired::{Desired, Tenant};
use crate::error::StateError;
use crate::fault::Subject;
use crate::release::change::Change;
use crate::release::quota::QuotaSpec;
use crate::release::tenant::{GivenKey, SentKey, TenantDocument, TenantSpec};
use crate::release::token::{Role, TokenDocument};
use crate::release::version_policy::VersionPolicy;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn plan(
    desired: &Desired,
    number: u64,
    changes: &[Change],
    cascade: bool,
) -> Result<Plan, StateError> {
    let asked: Vec<_> = changes.iter().cloned().map(AskedChange::Known).collect();
    super::plan(desired, number, &asked, cascade).map_err(|refused| *refused.error)
}

fn plan_one(desired: &Desired, number: u64, asked: AskedChange) -> Result<Plan, StateError> {
    super::plan(desired, number, &[asked], false).map_err(|refused| *refused.error)
}

fn put_tenant(tenant: &str, spec: TenantSpec) -> Change {
    Change::PutTenant { tenant: name(tenant), spec }
}

fn key(byte: u8) -> Digest {
    Digest::from_bytes([byte; 32])
}

/// The hash of a key, as an old log has it.
fn hash(byte: u8) -> KeyHash {
    KeyHash::Plain(key(byte))
}

/// The hashes of the same key.
fn hashes(byte: u8) -> KeyHashes {
    let by = HashKeyId::from_bytes([7; 4]);
    let keyed = KeyHash::Keyed { by, digest: key(byte + 100) };
    KeyHashes { keyed, plain: Some(hash(byte)) }
}

/// The key, as a client sends it.
fn sent(byte: u8) -> SentKey {
    SentKey { hashes: hashes(byte), is_token: false }
}

/// Tenants `acme` and `other` with the pipelines `main` (the default of `acme`) and `spare` on the
/// model `digits`, which is granted to both.
fn state() -> Desired {
    let digest = Digest::from_bytes([0; 32]);
    let mut desired = Desired::default();
    let mut changes = vec![
        Change::PutModel { model: name("digits"), digest, version: None },
        Change::PutModel { model: name("unused"), digest, version: None },
    ];
    for (index, tenant) in ["acme", "other"].into_iter().enumerate() {
        let spec = TenantSpec {
            keys: [(name("key-1"), hash(index as u8 + 1))].into(),
            models: [name("digits")].into(),
            default_pipeline: (tenant == "acme").then(|| name("main")),
            ..TenantSpec::default()
        };
        changes.push(put_tenant(tenant, spec));
        let tenant = name(tenant);
        let plugin = |plugin| Change::PutPlugin { tenant: tenant.clone(), plugin, digest };
        changes.extend(["both", "idle"].map(name).map(plugin));
        for pipeline in ["main", "spare"].map(name) {
            let spec = json!({ "pre": "both", "model": "digits", "post": "both" });
            let spec = serde_json::from_value(spec).unwrap();
            changes.push(Change::PutPipeline { tenant: tenant.clone(), pipeline, spec });
        }
    }
    desired.apply(1, &changes).unwrap();
    desired
}

#[track_caller]
fn refused(change: Change, code: ErrorCode, expected: &str) {
    let error = plan(&state(), 2, &[change], false).unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), (code, expected));
}

/// The rest of the state after a change with `cascade`.
fn cascaded(change: Change) -> Desired {
    plan(&state(), 2, &[change], true).unwrap().desired
}

fn delete_model(model: &str) -> Change {
    Change::DeleteModel { model: name(model) }
}

fn delete_plugin(plugin: &str) -> Change {
    Change::DeletePlugin { tenant: name("acme"), plugin: name(plugin) }
}

fn delete_pipeline(pipeline: &str) -> Change {
    Change::DeletePipeline { tenant: name("acme"), pipeline: name(pipeline) }
}

fn delete_tenant(tenant: &str) -> Change {
    Change::DeleteTenant { tenant: name(tenant) }
}

#[test]
fn what_is_in_use_is_not_deleted_and_all_users_are_named() {
    let all = "model \"digits\" is used by acme/main, acme/spare, other/main, other/spare and \
               granted to acme, other: change these first, or delete them as well with ?cascade=true";
    refused(delete_model("digits"), ErrorCode::Conflict, all);
    let pipelines = "plugin \"both\" is used by acme/main, acme/spare: change these first, or \
                     delete them as well with ?cascade=true";
    refused(delete_plugin("both"), ErrorCode::Conflict, pipelines);
    let default = "pipeline \"main\" is the default pipeline of tenant \"acme\": change these \
                   first, or delete them as well with ?cascade=true";
    refused(delete_pipeline("main"), ErrorCode::Conflict, default);
    let message = "tenant \"acme\" has the pipelines main, spare and the plugins both, idle: delete \
               these first, or all of it with ?cascade=true";
    refused(delete_tenant("acme"), ErrorCode::Conflict, message);
}

#[test]
fn what_is_not_in_use_is_deleted() {
    for change in [delete_model("unused"), delete_plugin("idle"), delete_pipeline("spare")] {
        let planned = plan(&state(), 2, std::slice::from_ref(&change), false).unwrap();
        assert_eq!(planned.changes, [change]);
    }
}

#[test]
fn what_is_not_there_is_not_found() {
    refused(delete_model("none"), ErrorCode::NotFound, "no model \"none\"");
    refused(delete_plugin("none"), ErrorCode::NotFound, "no plugin \"none\"");
    refused(delete_pipeline("none"), ErrorCode::NotFound, "no pipeline \"none\"");
    refused(delete_tenant("none"), ErrorCode::NotFound, "no tenant \"none\"");
}

#[test]
fn a_cascade_takes_the_users_along_and_nothing_else() {
    let left = cascaded(delete_model("digits"));
    assert!(!left.models.contains_key("digits") && left.models.contains_key("unused"));
    for tenant in left.tenants.values() {
        assert!(tenant.pipelines.is_empty() && tenant.spec.models.is_empty());
        assert_eq!((&tenant.spec.default_pipeline, tenant.plugins.len()), (&None, 2));
        assert_eq!(tenant.spec.keys.len(), 1);
    }

    let left = cascaded(delete_plugin("both"));
    assert!(left.tenants["acme"].pipelines.is_empty());
    assert_eq!(left.tenants["acme"].plugins.len(), 1);
    assert_eq!(left.tenants["other"], state().tenants["other"]);

    let left = cascaded(delete_pipeline("main"));
    assert_eq!(left.tenants["acme"].spec.default_pipeline, None);
    assert_eq!(left.tenants["acme"].pipelines.len(), 1);

    let left = cascaded(delete_tenant("acme"));
    assert!(!left.tenants.contains_key("acme") && left.tenants.contains_key("other"));
}

#[test]
fn a_cascade_changes_no_tenant_that_need_not_change() {
    let changes = plan(&state(), 2, &[delete_plugin("both")], true).unwrap().changes;
    let kinds: Vec<_> = changes.iter().map(ToString::to_string).collect();
    let expected = [
        "put tenant acme",
        "delete pipeline acme/main",
        "delete pipeline acme/spare",
        "delete plugin acme/both",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn every_fault_of_a_tenant_is_named() {
    let spec = TenantSpec {
        keys: [(name("key-1"), hash(9)), (name("key-2"), hash(2))].into(),
        default_pipeline: Some(name("nope")),
        models: ["digits", "a", "b"].map(name).into(),
        ..TenantSpec::default()
    };
    let expected = "tenant \"acme\": api_keys: \"key-2\" is in use elsewhere: choose another key; \
                    default_pipeline: the tenant has no pipeline \"nope\"; it has main, spare; \
                    models: no model \"a\"; models: no model \"b\"";
    refused(put_tenant("acme", spec), ErrorCode::Unprocessable, expected);
    let spec = TenantSpec { default_pipeline: Some(name("main")), ..TenantSpec::default() };
    let expected = "tenant \"new\": default_pipeline: the tenant has no pipeline \"main\"; it has \
                    none yet: put the pipeline first";
    refused(put_tenant("new", spec), ErrorCode::Unprocessable, expected);
    let spec = state().tenants["acme"].spec.clone();
    assert!(plan(&state(), 2, &[put_tenant("acme", spec)], false).is_ok());
}

#[test]
fn a_plan_says_what_the_state_is_then_and_leaves_the_state_before() {
    let before = state();
    let put = |byte| Change::PutModel { model: name("digits"), digest: key(byte), version: None };
    let planned = plan(&before, 7, &[put(9)], false).unwrap();
    let model = &planned.desired.models["digits"];
    assert_eq!((model.digest, model.version, &model.earlier_versions[..]), (key(9), 7, &[1][..]));
    assert_eq!((planned.desired.tenants, before), (state().tenants, state()));
    let same = plan(&state(), 7, &[put(0)], false).unwrap();
    assert_eq!(same.desired, state(), "the same content makes no release");
}

#[test]
fn a_change_must_leave_its_own_subject_whole_unless_it_deletes_it() {
    let put = Change::PutModel { model: name("digits"), digest: key(9), version: None };
    let changes = [put, delete_plugin("idle"), Change::UnloadModel { model: name("digits") }];
    assert_eq!(subjects(&changes), [Subject::Model(name("digits"))]);
}

fn put_key(tenant: &str, named: &str, byte: u8) -> Change {
    Change::PutKey { tenant: name(tenant), key: name(named), digest: hash(byte) }
}

fn ask_key(tenant: &str, named: &str, byte: u8) -> AskedChange {
    AskedChange::PutKey { tenant: name(tenant), key: name(named), sent: sent(byte) }
}

fn delete_key(named: &str) -> Change {
    Change::DeleteKey { tenant: name("acme"), key: name(named) }
}

#[test]
fn a_key_is_changed_without_the_others() {
    let planned = plan_one(&state(), 2, ask_key("acme", "ci", 9)).unwrap();
    let keys = &planned.desired.tenants["acme"].spec.keys;
    assert_eq!(*keys, [(name("ci"), hashes(9).keyed), (name("key-1"), hash(1))].into());
    let planned = plan(&planned.desired, 3, &[delete_key("key-1")], false).unwrap();
    assert_eq!(planned.desired.tenants["acme"].spec.keys, [(name("ci"), hashes(9).keyed)].into());
    let same = plan_one(&state(), 2, ask_key("acme", "key-1", 1)).unwrap();
    assert_eq!(same.desired, state(), "a key that an old log has stays as it is");

    let only = "key \"key-1\" is the only one of tenant \"acme\": put another key first, or make \
                the tenant open";
    refused(delete_key("key-1"), ErrorCode::Conflict, only);
    refused(delete_key("ci"), ErrorCode::NotFound, "no key \"ci\"");
    let refused = |asked, code, expected: &str| {
        let error = plan_one(&state(), 2, asked).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (code, expected));
    };
    refused(ask_key("none", "ci", 9), ErrorCode::NotFound, "no tenant \"none\"");
    let twice = "tenant \"acme\", key \"ci\": it is the tenant's key \"key-1\" already";
    refused(ask_key("acme", "ci", 1), ErrorCode::Unprocessable, twice);
    let others = "tenant \"acme\", key \"ci\": it is in use elsewhere: choose another key";
    refused(ask_key("acme", "ci", 2), ErrorCode::Unprocessable, others);
    // An admin token is refused in the same words.
    let sent = SentKey { is_token: true, ..sent(9) };
    let token = AskedChange::PutKey { tenant: name("acme"), key: name("ci"), sent };
    refused(token, ErrorCode::Unprocessable, others);

    let mut open = state();
    let spec = TenantSpec { open: true, ..TenantSpec::default() };
    open.apply(2, &[put_tenant("acme", spec)]).unwrap();
    let error = plan_one(&open, 3, ask_key("acme", "ci", 9)).unwrap_err();
    assert!(
        error.code() == ErrorCode::Conflict && error.to_string().contains("is open"),
        "{error}"
    );
    let mut full = state();
    let keys = (0..256).map(|index| (name(&format!("k{index}")), hash(9)));
    let spec = TenantSpec { keys: keys.collect(), ..TenantSpec::default() };
    full.apply(2, &[put_tenant("acme", spec)]).unwrap();
    let error = plan_one(&full, 3, ask_key("acme", "ci", 8)).unwrap_err();
    assert!(error.to_string().contains("has 256 keys, the limit"), "{error}");
    assert!(plan_one(&full, 3, ask_key("acme", "k7", 8)).is_ok());
}

/// The keys of `acme` after its document is put with these.
fn given_keys(api_keys: Vec<GivenKey>) -> Result<Vec<(String, KeyHash)>, String> {
    let mut desired = state();
    desired.apply(2, &[put_key("acme", "ci", 5), put_key("acme", "key-2", 6)]).unwrap();
    let document = TenantDocument {
        open: false,
        api_keys,
        default_pipeline: None,
        weight: 1,
        batch_with: Default::default(),
        models: [].into(),
        quota: QuotaSpec::default(),
        plugin_version_policy: VersionPolicy::default(),
        stores: Default::default(),
        http: Vec::new(),
        cors: None,
        redirects: Default::default(),
        plugin_signers: Default::default(),
        try_page: false,
    };
    let spec = tenant_spec(&desired, &name("acme"), &document);
    let spec = spec.map_err(|error| error.to_string())?;
    Ok(spec.keys.into_iter().map(|(name, hash)| (name.to_string(), hash)).collect())
}

#[test]
fn keys_of_a_document_keep_their_names() {
    use GivenKey::{Kept, Named, Unnamed};
    // Keys that the tenant has keep the hash that an old log has.
    let keys = |keys: &[(&str, u8)]| {
        let kept = |byte| if [1, 5, 6].contains(&byte) { hash(byte) } else { hashes(byte).keyed };
        Ok(keys.iter().map(|(name, byte)| ((*name).to_owned(), kept(*byte))).collect::<Vec<_>>())
    };
    // The new one comes first, and gets a name that no other key has.
    let named = given_keys([9, 6, 1, 9].map(|byte| Unnamed(sent(byte))).to_vec());
    assert_eq!(named, keys(&[("key-1", 1), ("key-2", 6), ("key-3", 9)]));
    let named = given_keys(vec![Kept(name("ci")), Named(name("key-1"), sent(7)), Unnamed(sent(5))]);
    assert_eq!(named, keys(&[("ci", 5), ("key-1", 7)]));
    // Under another name it is another key.
    let renamed = given_keys(vec![Named(name("ci"), sent(6))]);
    assert_eq!(renamed, Ok(vec![("ci".into(), hashes(6).keyed)]));
    let faulty = given_keys(vec![
        Kept(name("gone")),
        Unnamed(sent(2)),
        Named(name("a"), sent(7)),
        Named(name("a"), sent(8)),
        Named(name("b"), sent(7)),
        Named(name("c"), sent(2)),
    ]);
    let expected = "tenant \"acme\": api_keys[0]: the tenant has no key \"gone\" that could stay: \
                    give its \"key\", too; api_keys[1] is in use elsewhere: choose another key; \
                    api_keys[3].name is \"a\", for a second key; api_keys[4] is the key \"a\", too; \
                    api_keys[5] is in use elsewhere: choose another key";
    assert_eq!(faulty, Err(expected.into()));
}

fn put_pipeline(tenant: &str, pipeline: &str, plugin: &str) -> Change {
    let spec = json!({ "pre": plugin, "model": "digits", "post": plugin });
    let spec = serde_json::from_value(spec).unwrap();
    Change::PutPipeline { tenant: name(tenant), pipeline: name(pipeline), spec }
}

fn put_plugin(tenant: &str, plugin: &str, byte: u8) -> Change {
    Change::PutPlugin { tenant: name(tenant), plugin: name(plugin), digest: key(byte) }
}

#[test]
fn each_change_is_planned_on_the_state_that_those_before_it_leave() {
    let spec = |default: Option<&str>| TenantSpec {
        keys: [(name("key-1"), hash(9))].into(),
        default_pipeline: default.map(name),
        ..TenantSpec::default()
    };
    // The tenant's document names a pipeline that comes later.
    let new = [
        put_tenant("new", spec(Some("main"))),
        put_plugin("new", "p", 3),
        put_pipeline("new", "main", "p"),
    ];
    let planned = plan(&state(), 2, &new, false).unwrap();
    assert_eq!(planned.changes, new);
    assert!(planned.desired.tenants["new"].pipelines.contains_key("main"));
    // A pipeline goes with its plugin, in this order only.
    let [pipeline, plugin] = [delete_pipeline("spare"), put_tenant("acme", spec(None))];
    let changes =
        [plugin, pipeline.clone(), delete_pipeline("main"), delete_plugin("both"), pipeline];
    assert!(plan(&state(), 2, &changes[..4], false).is_ok());
    let asked: Vec<_> = changes.into_iter().map(AskedChange::Known).collect();
    let refused = super::plan(&state(), 2, &asked, false).unwrap_err();
    assert_eq!((refused.index, refused.error.code()), (4, ErrorCode::NotFound));
    // A tenant's document is compared with the state after all changes.
    let asked = [put_tenant("new", spec(Some("main"))), put_tenant("newer", spec(None))];
    let asked = asked.map(AskedChange::Known);
    let refused = super::plan(&state(), 2, &asked, false).unwrap_err();
    let text = refused.error.to_string();
    assert!(refused.index == 0 && text.contains("is in use elsewhere"), "{text}");
    assert!(text.contains("has no pipeline \"main\""), "{text}");
}

/// The state after going back from `now`, as release 9.
#[track_caller]
fn back(now: &Desired, then: &Desired, scope: Scope) -> Desired {
    let changes = restore(now, then, &scope, 1).unwrap();
    plan(now, 9, &changes, false).unwrap().desired
}

fn owned<'a>(desired: &'a mut Desired, tenant: &str) -> &'a mut Tenant {
    Arc::make_mut(desired.tenants.get_mut(tenant).unwrap())
}

/// `state`, after most of it was changed.
fn changed() -> Desired {
    let config = serde_json::from_value(json!({ "instances": 2 })).unwrap();
    let open = TenantSpec { open: true, ..TenantSpec::default() };
    let changes = [
        Change::PutModel { model: name("digits"), digest: key(7), version: None },
        Change::PutModelConfig { model: name("digits"), config },
        Change::UnloadModel { model: name("digits") },
        delete_model("unused"),
        Change::PutModel { model: name("late"), digest: key(7), version: None },
        put_plugin("acme", "both", 7),
        put_plugin("acme", "late", 7),
        put_pipeline("acme", "late", "late"),
        put_pipeline("acme", "main", "late"),
        delete_plugin("idle"),
        put_key("acme", "key-1", 50),
        delete_tenant("other"),
        put_tenant("late", TenantSpec { default_pipeline: Some(name("late")), ..open }),
        put_plugin("late", "late", 7),
        put_pipeline("late", "late", "late"),
    ];
    let mut desired = plan(&state(), 2, &changes, true).unwrap().desired;
    owned(&mut desired, "acme").spec.models = [name("late")].into();
    desired
}

/// The state without the versions, which going back does not bring back.
fn unversioned(mut desired: Desired) -> Desired {
    for model in desired.models.values_mut() {
        (model.version, model.earlier_versions) = (0, Vec::new());
        model.kept.clear();
    }
    let names: Vec<_> = desired.tenants.keys().cloned().collect();
    for name in names {
        let tenant = owned(&mut desired, name.as_str());
        tenant.key_versions.clear();
        tenant.since = 0;
        tenant.plugins.values_mut().for_each(|plugin| plugin.version = 0);
    }
    desired
}

#[test]
fn everything_goes_back_but_the_keys_that_a_tenant_has() {
    let (now, then) = (changed(), state());
    let after = back(&now, &then, Scope::Everything);
    let mut expected = then.clone();
    owned(&mut expected, "acme").spec.keys = [(name("key-1"), hash(50))].into();
    assert_eq!(unversioned(after.clone()), unversioned(expected));
    assert_eq!((after.models["digits"].version, after.models["digits"].digest), (9, key(0)));
    assert_eq!(restore(&after, &then, &Scope::Everything, 1).unwrap(), [], "nothing is left to do");
}

#[test]
fn one_tenant_or_one_model_goes_back_alone() {
    let (now, then) = (changed(), state());
    let after = back(&now, &then, Scope::Model(name("digits")));
    assert_eq!(unversioned(after.clone()).models["digits"], unversioned(state()).models["digits"]);
    assert_eq!(after.tenants, now.tenants);
    assert!(after.models.contains_key("late") && !after.models.contains_key("unused"));
    // A tenant that was deleted comes back with its keys.
    let after = back(&now, &then, Scope::Tenant(name("other")));
    let (restored, expected) = (unversioned(after.clone()), unversioned(state()));
    assert_eq!(restored.tenants["other"], expected.tenants["other"]);
    assert_eq!((after.models, &after.tenants["acme"]), (now.models.clone(), &now.tenants["acme"]));
    for (scope, text) in [
        (Scope::Tenant(name("late")), "release 1 has no tenant \"late\""),
        (Scope::Model(name("late")), "release 1 has no model \"late\""),
    ] {
        let error = restore(&now, &then, &scope, 1).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (ErrorCode::NotFound, text));
    }
}

#[test]
fn the_parts_of_a_tenant_go_back_and_its_terms_stay() {
    let (mut now, then) = (changed(), state());
    let spec = TenantSpec { weight: 7, ..now.tenants["acme"].spec.clone() };
    now.apply(3, &[put_tenant("acme", TenantSpec { default_pipeline: None, ..spec })]).unwrap();
    let after = back(&now, &then, Scope::PartsOf(name("acme")));
    let (acme, before) = (&after.tenants["acme"], &now.tenants["acme"].spec);
    assert_eq!((acme.spec.weight, &acme.spec.keys), (7, &before.keys));
    assert_eq!(acme.spec.models, before.models, "a grant that was taken away stays so");
    assert_eq!(acme.spec.default_pipeline, Some(name("main")));
    assert_eq!(acme.plugins.keys().collect::<Vec<_>>(), [&name("both"), &name("idle")]);
    assert_eq!(acme.pipelines, then.tenants["acme"].pipelines);
    // A tenant of the same name that was deleted since is another one.
    let spec = TenantSpec::default();
    now.apply(4, &[delete_tenant("acme"), put_tenant("acme", spec)]).unwrap();
    for tenant in ["acme", "other", "none"] {
        let error = restore(&now, &then, &Scope::PartsOf(name(tenant)), 1).unwrap_err();
        assert_eq!(error.to_string(), format!("release 1 has no tenant {tenant:?}"));
    }
}

fn put_token(token: &str, tenants: &[&str]) -> AskedChange {
    let tenants = tenants.iter().map(|tenant| name(tenant)).collect();
    let document = TokenDocument { role: Role::Deploy, tenants, expires_at_ms: None };
    AskedChange::PutToken { token: name(token), document, hash: hashes(1).keyed }
}

#[test]
fn a_token_keeps_its_secret_until_it_is_rotated() {
    let made = plan_one(&state(), 2, put_token("ci", &["acme"])).unwrap().desired;
    let put = AskedChange::PutToken {
        token: name("ci"),
        document: TokenDocument { role: Role::Read, tenants: [].into(), expires_at_ms: Some(5) },
        hash: hashes(2).keyed,
    };
    let edited = plan_one(&made, 3, put).unwrap().desired;
    let token = &edited.tokens["ci"];
    assert_eq!((token.spec.role, token.spec.expires_at_ms), (Role::Read, Some(5)));
    assert_eq!((token.spec.hash, token.version), (hashes(1).keyed, 2));
    let rotate = |token| AskedChange::RotateToken { token, hash: hashes(3).keyed };
    let rotated = plan_one(&edited, 4, rotate(name("ci"))).unwrap().desired;
    let token = &rotated.tokens["ci"];
    assert_eq!((token.spec.hash, token.version, token.spec.role), (hashes(3).keyed, 4, Role::Read));
    let error = plan_one(&rotated, 5, rotate(name("other"))).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (ErrorCode::NotFound, "no token \"other\"")
    );
    // Going back leaves tokens as they are.
    let after = back(&rotated, &state(), Scope::Everything);
    assert_eq!(after.tokens, rotated.tokens);
}

#[test]
fn a_token_names_tenants_that_exist_and_they_stay_with_it() {
    let error = plan_one(&state(), 2, put_token("admin", &["none", "acme"])).unwrap_err();
    let expected = "token \"admin\": \"admin\" is the name of the token that the server is started \
                    with; tenants: there are no tenants none";
    assert_eq!(error.to_string(), expected);
    let mut desired = state();
    let mut put = |token: &str, tenants: &[&str]| {
        desired = plan_one(&desired, 2, put_token(token, tenants)).unwrap().desired;
    };
    put("ci", &["acme"]);
    put("both", &["acme", "other"]);
    let bare = [delete_pipeline("spare"), put_tenant("acme", TenantSpec::default())];
    let bare =
        [&bare[..], &[delete_pipeline("main"), delete_plugin("both"), delete_plugin("idle")]];
    let bare = plan(&desired, 3, &bare.concat(), false).unwrap().desired;
    let error = plan(&bare, 4, &[delete_tenant("acme")], false).unwrap_err();
    let expected = "tenant \"acme\" is a tenant of the tokens both, ci: change these first, or delete \
                    them as well with ?cascade=true";
    assert_eq!((error.code(), error.to_string().as_str()), (ErrorCode::Conflict, expected));
    let planned = plan(&desired, 4, &[delete_tenant("acme")], true).unwrap();
    let kinds: Vec<_> = planned.changes.iter().map(ToString::to_string).collect();
    assert_eq!(kinds, ["put token both (deploy)", "delete token ci", "delete tenant acme"]);
    assert_eq!(planned.desired.tokens["both"].spec.tenants, [name("other")].into());
    // So does a tenant that going back would delete.
    let error = restore(&desired, &Desired::default(), &Scope::Everything, 1);
    let error = plan(&desired, 9, &error.unwrap(), false).unwrap_err();
    assert!(error.to_string().contains("is a tenant of the tokens both, ci"), "{error}");
}

#[test]
fn a_tenant_has_a_bounded_number_of_assets() {
    let put = |asset: usize| {
        let (tenant, asset) = (name("acme"), name(&format!("a{asset}")));
        Change::PutAsset { tenant, asset, digest: key(1) }
    };
    let delete = Change::DeleteAsset { tenant: name("acme"), asset: name("a0") };
    let full: Vec<_> = (0..1024).map(put).collect();
    let full = plan(&state(), 2, &full, false).unwrap().desired;
    let error = plan(&full, 3, &[put(1024)], false).unwrap_err();
    let expected = "tenant \"acme\" would have 1025 assets; the limit is 1024: delete those that";
    assert_eq!(error.code(), ErrorCode::Conflict);
    assert!(error.to_string().starts_with(expected), "{error}");
    plan(&full, 3, &[put(1)], false).unwrap();
    // In any order: `deploy --prune` deletes at the end.
    plan(&full, 3, &[put(1024), delete], false).unwrap();
}
