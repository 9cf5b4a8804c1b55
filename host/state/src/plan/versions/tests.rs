use gristmill_core::{ClientError, ErrorCode};
use serde_json::json;

use super::*;
use crate::plan::plan;
use crate::plan::restore::{Scope, restore};
use crate::release::tenant::{TenantDocument, TenantSpec};
use crate::release::version_policy::VersionPolicy;
use crate::testing::{digest, name};

fn put_model(byte: u8) -> Change {
    Change::PutModel { model: name("m"), digest: digest(byte), version: None }
}

fn put_plugin(byte: u8) -> Change {
    Change::PutPlugin { tenant: name("acme"), plugin: name("p"), digest: digest(byte) }
}

/// A policy that keeps so many of the newest versions.
fn latest(num_versions: usize) -> VersionPolicy {
    VersionPolicy::Latest { num_versions }
}

fn specific(versions: &[u64]) -> VersionPolicy {
    VersionPolicy::Specific { versions: versions.iter().copied().collect() }
}

fn put_config(policy: VersionPolicy) -> Change {
    let config = serde_json::from_value(json!({ "version_policy": policy })).unwrap();
    Change::PutModelConfig { model: name("m"), config }
}

fn put_tenant(plugin_version_policy: VersionPolicy) -> Change {
    let spec = TenantSpec { plugin_version_policy, ..TenantSpec::default() };
    Change::PutTenant { tenant: name("acme"), spec }
}

/// A pipeline with this plugin and this model, which may have versions.
fn put_pipeline(pipeline: &str, plugin: &str, model: &str) -> Change {
    let spec = json!({ "pre": plugin, "model": model, "post": "p" });
    let spec = serde_json::from_value(spec).unwrap();
    Change::PutPipeline { tenant: name("acme"), pipeline: name(pipeline), spec }
}

fn delete_pipeline(pipeline: &str) -> Change {
    Change::DeletePipeline { tenant: name("acme"), pipeline: name(pipeline) }
}

/// The states after the releases 1, 2 and so on.
#[track_caller]
fn states(releases: &[&[Change]]) -> Vec<Desired> {
    let mut states = vec![Desired::default()];
    for (number, changes) in (1..).zip(releases) {
        let asked: Vec<_> = changes.iter().cloned().map(AskedChange::Known).collect();
        let planned = plan(states.last().unwrap(), number, &asked, false).unwrap();
        // Replaying the log gives the same state.
        let mut replayed = states.last().unwrap().clone();
        replayed.apply(number, &planned.changes).unwrap();
        assert_eq!(replayed, planned.desired);
        states.push(planned.desired);
    }
    states
}

fn refused(state: &Desired, number: u64, change: impl Into<AskedChange>) -> (ErrorCode, String) {
    let refused = plan(state, number, &[change.into()], false).unwrap_err();
    (refused.error.code(), refused.error.to_string())
}

/// The versions of the model and of the plugin that stay, the newest last.
fn kept(state: &Desired) -> (Vec<u64>, Vec<u64>) {
    let model = state.models["m"].versions().map(|(version, _)| version);
    let plugin = state.tenants["acme"].plugins["p"].versions().map(|(version, _)| version);
    (model.collect(), plugin.collect())
}

#[test]
fn what_pipelines_name_stays_until_none_does() {
    let states = states(&[
        &[put_tenant(latest(1)), put_model(1), put_plugin(1)],
        &[put_pipeline("old", "p@1", "m@1"), put_pipeline("same", "p@1", "m@1")],
        &[put_model(2), put_plugin(2)],
        &[put_model(3), put_plugin(3)],
        &[delete_pipeline("same")],
        &[put_pipeline("old", "p@4", "m@4")],
        // In the same release as new content.
        &[put_model(4), put_plugin(4), put_pipeline("last", "p@4", "m@4"), delete_pipeline("old")],
        &[put_pipeline("last", "p", "m")],
    ]);
    let all: Vec<_> = states[3..].iter().map(kept).collect();
    let both = |versions: &[u64]| (versions.to_vec(), versions.to_vec());
    let expected = [&[1, 3][..], &[1, 4], &[1, 4], &[4], &[4, 7], &[7]].map(both);
    assert_eq!(all, expected);
    assert_eq!(states[8].models["m"].earlier_versions, [1, 3, 4]);
}

#[test]
fn what_policies_keep_stays() {
    let states = states(&[
        &[put_tenant(latest(2)), put_model(1), put_config(latest(2)), put_plugin(1)],
        &[put_model(2), put_plugin(2)],
        &[put_model(3), put_plugin(3)],
        &[put_tenant(specific(&[2])), put_config(specific(&[2]))],
        &[put_model(4), put_plugin(4)],
        &[put_tenant(latest(1)), put_config(latest(1))],
    ]);
    let all: Vec<_> = states[2..].iter().map(kept).collect();
    let both = |versions: &[u64]| (versions.to_vec(), versions.to_vec());
    let expected = [&[1, 2][..], &[2, 3], &[2, 3], &[2, 5], &[5]].map(both);
    assert_eq!(all, expected);
    let files = states[5].files();
    assert!(files.contains(&digest(2)) && !files.contains(&digest(3)));
    // Those that are gone cannot be named.
    let (code, text) = refused(&states[5], 7, put_config(specific(&[2, 3])));
    let expected = "configuration of model \"m\": version_policy: version 3 is not there any more: \
                    versions 2 and 5 are loaded";
    assert_eq!((code, &*text), (ErrorCode::Unprocessable, expected));
    let document = TenantDocument {
        stores: Default::default(),
        http: Vec::new(),
        cors: None,
        redirects: Default::default(),
        plugin_signers: Default::default(),
        try_page: false,
        open: true,
        api_keys: Vec::new(),
        default_pipeline: None,
        weight: 1,
        batch_with: Default::default(),
        models: Default::default(),
        quota: Default::default(),
        plugin_version_policy: specific(&[2, 3]),
    };
    let put = AskedChange::PutTenant { tenant: name("acme"), document };
    let (_, text) = refused(&states[5], 7, put);
    assert!(text.ends_with("no plugin or asset of the tenant has a version 3 any more"), "{text}");
}

#[test]
fn a_policy_that_is_put_back_is_not_refused() {
    let delete = Change::DeletePlugin { tenant: name("acme"), plugin: name("p") };
    let put = put_tenant(specific(&[1]));
    let first = [put_tenant(latest(1)), put_plugin(1)];
    let gone = &states(&[&first, std::slice::from_ref(&put), &[delete]])[3];
    assert!(plan(gone, 4, &[AskedChange::Known(put)], false).is_ok());
    // As going back does it.
    assert!(plan(gone, 4, &[AskedChange::Known(put_tenant(specific(&[2])))], false).is_ok());
}

#[test]
fn a_bounded_number_of_versions_stays() {
    let mut releases = vec![vec![put_tenant(latest(8)), put_model(1), put_plugin(1)]];
    for number in 2..9 {
        let pin = put_pipeline(&format!("p{number}"), "p", &format!("m@{}", number - 1));
        releases.push(vec![put_model(number), put_plugin(number), pin]);
    }
    let mut parts: Vec<_> = releases.iter().map(Vec::as_slice).collect();
    let state = states(&parts).pop().unwrap();
    let all: Vec<_> = (1..9).collect();
    assert_eq!(kept(&state), (all.clone(), all));
    // The policy keeps eight versions of the plugin, and drops the oldest.
    let ninth = [put_plugin(9)];
    parts.push(&ninth);
    let mut state = states(&parts).pop().unwrap();
    assert_eq!(kept(&state).1, [2, 3, 4, 5, 6, 7, 8, 9]);
    state.apply(10, &[put_pipeline("pinned", "p@2", "m")]).unwrap();
    let (code, text) = refused(&state, 11, put_plugin(10));
    let expected = "plugin \"p\" would have 9 versions loaded; the limit is 8: let the tenant's \
                    plugin_version_policy keep fewer, or let pipelines name a newer version or \
                    none; now these name earlier ones: acme/pinned (p@2)";
    assert_eq!((code, &*text), (ErrorCode::Conflict, expected));
    let mut newest = 8;
    for number in 11..19 {
        let pin = put_pipeline(&format!("p{number}"), "p", &format!("m@{newest}"));
        state.apply(number, &[put_model(number as u8), pin]).unwrap();
        newest = number;
    }
    state.apply(19, &[put_pipeline("newest", "p", "m@18")]).unwrap();
    let (code, text) = refused(&state, 20, put_model(99));
    assert!(
        text.starts_with("model \"m\" would have 17 versions loaded; the limit is 16"),
        "{text}"
    );
    assert!(code == ErrorCode::Conflict && text.contains("acme/p11 (m@8)"), "{text}");
}

#[test]
fn going_back_brings_back_what_pipelines_and_policies_name() {
    let states = states(&[
        &[put_tenant(latest(1)), put_model(1), put_plugin(1)],
        &[
            put_model(2),
            put_plugin(2),
            put_pipeline("old", "p@1", "m@1"),
            put_pipeline("new", "p", "m"),
        ],
        &[put_tenant(specific(&[2])), put_config(specific(&[2]))],
        &[put_model(3), put_plugin(3)],
        &[put_tenant(latest(1)), put_config(latest(1)), delete_pipeline("old")],
    ]);
    assert_eq!(kept(&states[5]), (vec![4], vec![4]));
    let back =
        |now: &Desired, to: usize, scope| restore(now, &states[to], &scope, to as u64).unwrap();
    let made = |now: &Desired, changes: &[Change]| {
        let asked: Vec<_> = changes.iter().cloned().map(AskedChange::Known).collect();
        plan(now, 9, &asked, false).unwrap().desired
    };
    let after = made(&states[5], &back(&states[5], 2, Scope::Everything));
    assert_eq!(kept(&after), (vec![1, 9], vec![1, 9]));
    let files =
        |state: &Desired| state.models["m"].versions().map(|(_, file)| file).collect::<Vec<_>>();
    assert_eq!(files(&after), files(&states[2]));
    assert_eq!(after.models["m"].earlier_versions, [1, 2, 4]);
    assert_eq!(back(&after, 2, Scope::Everything), [], "nothing is left to do");

    // With policies, and of what is there only the rest.
    let after = made(&states[5], &back(&states[5], 4, Scope::Everything));
    assert_eq!(kept(&after), (vec![1, 2, 4], vec![1, 2, 4]));
    let texts: Vec<_> =
        back(&states[5], 4, Scope::Tenant(name("acme"))).iter().map(ToString::to_string).collect();
    let digests = [1, 1, 2].map(|byte| digest(byte).to_string());
    let expected = [
        format!("put model m@1 {}", digests[0]),
        "put tenant acme".into(),
        format!("put plugin acme/p@1 {}", digests[1]),
        format!("put plugin acme/p@2 {}", digests[2]),
        "put pipeline acme/old".into(),
    ];
    assert_eq!(texts, expected);
    let model = back(&states[5], 4, Scope::Model(name("m")));
    assert_eq!(kept(&made(&states[5], &model)).0, [2, 4]);

    // The parts of a tenant bring back no model.
    let parts = back(&states[5], 4, Scope::PartsOf(name("acme")));
    assert!(parts.iter().all(|change| change.tenant().is_some()));
    assert_eq!(kept(&made(&states[5], &parts)), (vec![4], vec![1, 4]));
    // A model that was deleted stays so.
    let delete = [AskedChange::Known(Change::DeleteModel { model: name("m") })];
    let gone = plan(&states[5], 6, &delete, true).unwrap().desired;
    let tenant = back(&gone, 4, Scope::Tenant(name("acme")));
    assert!(tenant.iter().all(|change| change.tenant().is_some()));
    // One that was put again gets the version beside its own.
    let mut anew = gone;
    anew.apply(7, &[put_model(5)]).unwrap();
    let after = made(&anew, &back(&anew, 4, Scope::Tenant(name("acme"))));
    assert_eq!((kept(&after).0, &after.models["m"].earlier_versions[..]), (vec![1, 7], &[1][..]));
}
