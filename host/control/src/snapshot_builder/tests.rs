use gristmill_batch::LaneConfig;
use gristmill_snapshot::{PluginState, ServedModel};
use gristmill_state::{Change, TenantSpec};
use serde_json::json;

use super::*;
use crate::testing::{digest, echo_lane, name};

fn put_tenant(tenant: &str, open: bool) -> Change {
    let spec = TenantSpec { open, ..TenantSpec::default() };
    Change::PutTenant { tenant: name(tenant), spec }
}

fn put_pipeline(tenant: &str, priority: u32) -> Change {
    let spec = json!({ "pre": "p", "model": "m", "post": "p", "priority": priority });
    let spec = serde_json::from_value(spec).unwrap();
    Change::PutPipeline { tenant: name(tenant), pipeline: name("main"), spec }
}

/// The snapshot after these releases, if nothing can be loaded.
fn serving(releases: &[&[Change]]) -> Vec<(Serving, Vec<Fault>)> {
    let (accounts, _) = Accounts::new(1 << 20, 16, crate::testing::figure_parts());
    let mut all: Vec<(Serving, Vec<Fault>)> = Vec::new();
    let mut desired = Desired::default();
    for (number, changes) in (1..).zip(releases) {
        desired.apply(number, changes).unwrap();
        let nothing = Serving::default();
        let inputs = Inputs {
            at_hand: &AtHand::default(),
            accounts: &accounts,
            limits: &PipelineLimits::default(),
            before: all.last().map_or(&nothing, |(serving, _)| serving),
        };
        let Built { snapshot, faults, touched } = build(&inputs, number, &desired);
        let faulty = faults.iter().map(Fault::part).collect();
        let (snapshot, serves) = (Arc::new(snapshot), Arc::new(desired.clone()));
        all.push((Serving { snapshot, desired: serves, faulty, touched }, faults));
        desired.settle();
    }
    all
}

fn is_kept(serving: &[(Serving, Vec<Fault>)], tenant: &str) -> bool {
    let [.., (old, _), (new, _)] = serving else { panic!("fewer than two releases") };
    Arc::ptr_eq(&old.snapshot.tenants[tenant], &new.snapshot.tenants[tenant])
}

#[test]
fn a_tenant_that_a_release_does_not_touch_is_the_same_one() {
    let first = [put_tenant("acme", true), put_tenant("other", true)];
    for change in [put_tenant("acme", false), put_pipeline("acme", 1), put_tenant("new", true)] {
        let serving = serving(&[&first, std::slice::from_ref(&change)]);
        assert!(is_kept(&serving, "other"), "{change}");
        assert_eq!(is_kept(&serving, "acme"), change == put_tenant("new", true), "{change}");
    }
}

#[test]
fn a_tenant_that_is_kept_keeps_its_faults() {
    let plugin = Change::PutPlugin { tenant: name("acme"), plugin: name("p"), digest: digest(1) };
    let first = [put_tenant("acme", true), plugin, put_pipeline("acme", 1)];
    let serving = serving(&[&first, &[put_tenant("other", true)]]);
    assert!(is_kept(&serving, "acme"));
    let [(_, old), (_, new)] = &serving[..] else { unreachable!() };
    assert_eq!((old.len(), old), (2, new), "a plugin and a pipeline");
}

#[test]
fn a_granted_model_that_comes_or_goes_touches_its_tenants() {
    let spec = TenantSpec { models: [name("m")].into(), ..TenantSpec::default() };
    let granted = Change::PutTenant { tenant: name("acme"), spec };
    let put_model = Change::PutModel { model: name("m"), digest: digest(1), version: None };
    let delete = Change::DeleteModel { model: name("m") };
    let serving = serving(&[&[put_model, granted, put_tenant("other", true)], &[delete]]);
    assert!(!is_kept(&serving, "acme") && is_kept(&serving, "other"));
    assert_eq!(serving[1].1[0].to_string(), "tenant \"acme\": models: no model \"m\"");
}

/// The tenant with keys of these hashes.
fn with_keys(tenant: &str, keys: &[u8]) -> Change {
    let key = |byte: &u8| (name(&format!("key-{byte}")), KeyHash::Plain(digest(*byte)));
    let keys = keys.iter().map(key).collect();
    Change::PutTenant { tenant: name(tenant), spec: TenantSpec { keys, ..TenantSpec::default() } }
}

#[test]
fn a_key_of_two_tenants_opens_neither() {
    let serving = serving(&[&[with_keys("acme", &[1, 2]), with_keys("other", &[2, 3])]]);
    let (Serving { snapshot, .. }, faults) = &serving[0];
    assert_eq!(snapshot.keys.size(), 2);
    assert!(!snapshot.keys.contains_key(&KeyHash::Plain(digest(2))));
    assert!(snapshot.has_plain_keys);
    assert_eq!(faults.len(), 1, "{faults:?}");
}

#[test]
fn a_key_opens_the_tenant_that_has_it_alone() {
    let key = KeyHash::Plain(digest(2));
    let delete = Change::DeleteTenant { tenant: name("acme") };
    let serving = serving(&[
        &[with_keys("other", &[2])],
        &[with_keys("acme", &[2])],
        &[put_tenant("new", true)],
        &[delete],
        &[with_keys("other", &[3])],
    ]);
    let opens = |(serving, faults): &(Serving, Vec<Fault>)| {
        (serving.snapshot.keys.get(&key).map(Name::to_string), faults.len())
    };
    let other = || Some("other".to_owned());
    let expected = [(other(), 0), (None, 1), (None, 1), (other(), 0), (None, 0)];
    assert!(serving.iter().map(opens).eq(expected));
}

#[test]
fn a_pipeline_gets_the_version_that_it_names() {
    let pipeline = |pre: &str, model: &str| {
        let spec = json!({ "pre": pre, "model": model, "post": "p" });
        let spec = serde_json::from_value(spec).unwrap();
        Change::PutPipeline { tenant: name("acme"), pipeline: name("main"), spec }
    };
    let put = |byte| {
        [
            Change::PutPlugin { tenant: name("acme"), plugin: name("p"), digest: digest(byte) },
            Change::PutModel { model: name("m"), digest: digest(byte + 10), version: None },
        ]
    };
    let [plugin, model] = put(1);
    let first = [put_tenant("acme", true), plugin, model, pipeline("p@1", "m@1")];
    let serving = serving(&[&first, &put(2), &[pipeline("p@7", "m@9")]]);
    let faults = |release: usize| {
        let faults = serving[release - 1].1.iter().map(Fault::to_string);
        faults.collect::<Vec<_>>()
    };
    let expected = [
        "model \"m\": it is not loaded",
        "model \"m\", version 1: it is not loaded",
        "tenant \"acme\", plugin \"p\": it is not loaded",
        "tenant \"acme\", plugin \"p\", version 1: it is not loaded",
        "tenant \"acme\", pipeline \"main\": pre: plugin \"p@1\": it is not loaded; post: plugin \
         \"p\": it is not loaded; model \"m@1\": it is not loaded",
    ];
    assert_eq!(faults(2), expected);
    let expected = "tenant \"acme\", pipeline \"main\": pre: plugin \"p\" has no version 7: no \
                    version is loaded; post: plugin \"p\": it is not loaded; model: model \"m\" \
                    has no version 9: no version is loaded";
    assert_eq!(faults(3).last().unwrap(), expected);
    assert_eq!(faults(3).len(), 3, "version 1 of both is gone");
}

#[test]
fn a_handler_that_cannot_serve_has_a_fault_for_each_part() {
    let models = json!({ "detect": "m", "other": "none", "read": "m@9" });
    let candidate = json!({ "handler": "p", "models": { "a": "none" }, "traffic_percent": 1 });
    let spec = json!({ "handler": "p", "models": models, "candidate": candidate });
    let spec = serde_json::from_value(spec).unwrap();
    let first = [
        put_tenant("acme", true),
        Change::PutPlugin { tenant: name("acme"), plugin: name("p"), digest: digest(1) },
        Change::PutModel { model: name("m"), digest: digest(2), version: None },
        Change::PutPipeline { tenant: name("acme"), pipeline: name("main"), spec },
    ];
    let serving = serving(&[&first]);
    let expected = "tenant \"acme\", pipeline \"main\": handler: plugin \"p\": it is not loaded; \
                    models.detect: model \"m\": it is not loaded; models.other: no model \
                    \"none\"; models.read: model \"m\" has no version 9: no version is loaded";
    assert_eq!(serving[0].1.last().unwrap().to_string(), expected);
}

/// What a snapshot says, but for the parts that cannot be compared.
fn comparable(snapshot: &Snapshot) -> impl PartialEq + std::fmt::Debug + use<> {
    let tenant = |(name, tenant): (&Name, &Arc<Tenant>)| {
        let mut pipelines: Vec<_> = tenant.pipelines.keys().cloned().collect();
        pipelines.sort();
        let plugins: Vec<_> = tenant.plugins.values().map(|plugin| plugin.digest).collect();
        let models: Vec<_> = tenant.models.keys().cloned().collect();
        (name.clone(), (tenant.weight, models, pipelines, plugins))
    };
    let tenants: BTreeMap<_, _> = snapshot.tenants.iter().map(tenant).collect();
    let mut keys: Vec<_> =
        snapshot.keys.iter().map(|(key, owner)| (key.to_string(), owner.clone())).collect();
    keys.sort();
    (tenants, keys, snapshot.has_plain_keys)
}

#[test]
fn a_snapshot_is_the_one_that_is_built_from_nothing() {
    let mut seed = 7_u32;
    let mut random = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) % below
    };
    let mut releases: Vec<Vec<Change>> = Vec::new();
    let mut desired = Desired::default();
    while releases.len() < 150 {
        let mut changes = Vec::new();
        for _ in 0..=random(3) {
            let tenant = format!("t{}", random(4));
            let plugin = |number| name(&format!("p{number}"));
            let change = match random(7) {
                0 => Change::DeleteTenant { tenant: name(&tenant) },
                1 => with_keys(&tenant, &[random(3) as u8, random(3) as u8]),
                2 => {
                    let models = [name("m")].into();
                    let spec =
                        TenantSpec { models, weight: random(3) + 1, ..TenantSpec::default() };
                    Change::PutTenant { tenant: name(&tenant), spec }
                }
                3 => {
                    let (plugin, file) = (plugin(random(2)), random(3) as u8);
                    Change::PutPlugin { tenant: name(&tenant), plugin, digest: digest(file) }
                }
                4 => put_pipeline(&tenant, random(3)),
                5 => Change::PutModel {
                    model: name("m"),
                    digest: digest(random(2) as u8),
                    version: None,
                },
                _ => Change::DeleteModel { model: name("m") },
            };
            // Those that cannot be made are left out.
            let mut next = desired.clone();
            if next.apply(1, std::slice::from_ref(&change)).is_ok() {
                desired = next;
                changes.push(change);
            }
        }
        releases.push(changes);
    }
    let parts: Vec<_> = releases.iter().map(Vec::as_slice).collect();
    for (number, (step, faults)) in serving(&parts).iter().enumerate() {
        let all = parts[..=number].concat();
        let whole = &serving(&[&all])[0];
        assert_eq!(comparable(&step.snapshot), comparable(&whole.0.snapshot), "release {number}");
        let sorted = |faults: &[Fault]| {
            let mut texts: Vec<_> = faults.iter().map(Fault::to_string).collect();
            texts.sort();
            texts
        };
        assert_eq!(sorted(faults), sorted(&whole.1), "release {number}");
        assert_eq!(step.desired.has_plain_keys(), whole.0.desired.has_plain_keys());
    }
}

fn model(served: Result<ServedModel, String>) -> BTreeMap<Name, ModelState> {
    let (earlier_versions, kept) = (Vec::new(), BTreeMap::new());
    let state = ModelState {
        digest: digest(1),
        version: 1,
        earlier_versions,
        served,
        kept,
        notes: Arc::default(),
    };
    BTreeMap::from([(name("m"), state)])
}

/// Whether a tenant with a pipeline on the model `m` stays the same between the two.
fn same_with(old: &BTreeMap<Name, ModelState>, new: &BTreeMap<Name, ModelState>) -> bool {
    let mut desired = Desired::default();
    desired.apply(1, &[put_tenant("acme", true), put_pipeline("acme", 1)]).unwrap();
    let (desired_tenant, plugins) = (&desired.tenants["acme"], &BTreeMap::new());
    let assets = &BTreeMap::new();
    let sources = |models| Sources { desired_tenant, plugins, assets, models };
    sources(old).are_the_same(&sources(new))
}

#[test]
fn a_tenant_changes_with_the_lane_of_a_model_that_it_names() {
    let served = || {
        let lane = Arc::new(echo_lane(LaneConfig::new(1, 1)));
        ServedModel {
            lane,
            providers: Vec::new().into(),
            file_bytes: 0,
            certificates: [].into(),
            padding_proofs: [].into(),
            sizes: Arc::default(),
            warnings: [].into(),
        }
    };
    let one = served();
    let loaded = model(Ok(one.clone()));
    assert!(same_with(&loaded, &model(Ok(one))));
    assert!(!same_with(&loaded, &model(Ok(served()))), "another lane");
    let failed = |why: &str| model(Err(why.into()));
    assert!(same_with(&failed("x"), &failed("x")) && !same_with(&failed("x"), &failed("y")));
    assert!(!same_with(&failed("x"), &loaded) && !same_with(&loaded, &failed("x")));
    assert!(!same_with(&loaded, &BTreeMap::new()));
    let mut beside = loaded.clone();
    beside.insert(name("unused"), failed("x").remove("m").unwrap());
    assert!(same_with(&loaded, &beside), "a model that it does not name");
}

#[test]
fn a_tenant_changes_with_the_version_that_it_names_alone() {
    let mut desired = Desired::default();
    let spec = json!({ "pre": "p", "model": "m@1", "post": "p" });
    let (tenant, pipeline) = (name("acme"), name("main"));
    let spec = serde_json::from_value(spec).unwrap();
    let put = Change::PutPipeline { tenant, pipeline, spec };
    desired.apply(1, &[put_tenant("acme", true), put]).unwrap();
    let (desired_tenant, plugins) = (&desired.tenants["acme"], &BTreeMap::new());
    let same = |old: &BTreeMap<Name, ModelState>, new: &BTreeMap<Name, ModelState>| {
        let assets = &BTreeMap::new();
        let sources = |models| Sources { desired_tenant, plugins, assets, models };
        sources(old).are_the_same(&sources(new))
    };
    let old = model(Err("x".into()));
    // New content comes, and the version that was the newest one stays.
    let replaced = |kept: &[(u64, &str)]| {
        let mut new = model(Err("y".into()));
        let state = new.get_mut("m").unwrap();
        state.version = 5;
        let version = |(version, why): &(u64, &str)| {
            (*version, KeptVersion { digest: digest(1), loaded: Err((*why).into()) })
        };
        state.kept = kept.iter().map(version).collect();
        new
    };
    assert!(same(&old, &replaced(&[(1, "x")])) && same(&old, &replaced(&[(1, "x"), (3, "z")])));
    assert!(!same(&old, &replaced(&[(1, "z")])) && !same(&old, &replaced(&[])));
    // The fault of a version that is not there names those that are, so it depends on them.
    assert!(same(&replaced(&[]), &replaced(&[])) && !same(&replaced(&[]), &replaced(&[(3, "x")])));
    // The newest version does not depend on earlier ones.
    let newest = replaced(&[]);
    assert!(same_with(&newest, &replaced(&[(1, "x")])) && !same_with(&old, &newest));
}

#[test]
fn a_tenant_changes_with_its_plugins() {
    let desired = gristmill_state::Tenant::default();
    let plugins = |byte: u8, why: &str| {
        let (newest, kept) = (Err(why.into()), BTreeMap::new());
        let state = PluginState { digest: digest(byte), version: 1, newest, kept };
        BTreeMap::from([(name("p"), state)])
    };
    let (old, models) = (plugins(1, "x"), BTreeMap::new());
    let same = |new: &BTreeMap<Name, PluginState>| {
        let assets = BTreeMap::new();
        let sources = |plugins| Sources {
            desired_tenant: &desired,
            plugins,
            assets: &assets,
            models: &models,
        };
        sources(&old).are_the_same(&sources(new))
    };
    assert!(same(&plugins(1, "x")));
    assert!(!same(&plugins(1, "y")) && !same(&plugins(2, "x")) && !same(&BTreeMap::new()));
}
