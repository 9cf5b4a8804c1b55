//! Building a snapshot from the desired state and the loaded plugins and models.
//!
//! Everything that a request would have to look up is resolved here. Building is quick, because
//! everything is loaded before. A tenant that a release does not touch is taken from the snapshot
//! before (`reuse`), and those that cannot have changed are not even looked at: the time that it
//! takes does not depend on the number of tenants, but on that of the users of a model that changes
//! or that is out of service.
//!
//! Invariant: a part that cannot be served is unavailable in the snapshot and listed as a fault,
//! with the same reason.

mod reuse;
mod tenant;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use gristmill_core::{KeyHash, Name, PipelineLimits};
use gristmill_snapshot::{KeptVersion, ModelState, Operator, Pipeline, Snapshot, Tenant};
use gristmill_state::{self, Desired, Fault, Role, Serving, Subject};
use rpds::HashTrieMapSync;

use crate::accounts::Accounts;
use crate::load::at_hand::AtHand;
use crate::snapshot_builder::reuse::{Sources, changed_models, named_models};
use crate::snapshot_builder::tenant::{Files, TenantBuilder};

/// A snapshot, and the parts of the desired state that it does not serve.
pub(crate) struct Built {
    pub(crate) snapshot: Snapshot,
    pub(crate) faults: Vec<Fault>,
    /// The tenants that may differ from those of the snapshot before. All others are the same.
    pub(crate) touched: BTreeSet<Name>,
}

/// The inputs of a snapshot, besides the desired state.
pub(crate) struct Inputs<'a> {
    /// The models of the desired state, and the plugins and assets of the tenants that may change.
    pub(crate) at_hand: &'a AtHand,
    pub(crate) accounts: &'a Accounts,
    /// The host's own limits.
    pub(crate) limits: &'a PipelineLimits,
    /// The snapshot that was served before.
    pub(crate) before: &'a Serving,
}

/// Build the snapshot of `desired` as of a release. `desired` was made by changes from the state
/// that is served.
pub(crate) fn build(inputs: &Inputs<'_>, release: u64, desired: &Desired) -> Built {
    let Inputs { at_hand, accounts, limits, before } = *inputs;
    let mut faults = Vec::new();
    let models = models_of(at_hand, desired, &mut faults);
    let mut touched = before.may_change(desired);
    touched.extend(users_of_changed(before, desired, &models));
    let mut tenants = before.snapshot.tenants.clone();
    for name in &touched {
        let Some(desired_tenant) = desired.tenants.get(name) else {
            tenants.remove_mut(name);
            continue;
        };
        let serving_before = before.snapshot.tenants.get(name);
        let id = &(name.clone(), desired_tenant.since);
        let files = Files::of(at_hand, id, desired_tenant, serving_before.map(|tenant| &**tenant));
        let Files { plugins, assets, .. } = &files;
        let new = Sources { desired_tenant, plugins, assets, models: &models };
        let tenant = untouched(before, name, &new).unwrap_or_else(|| {
            let quota = accounts.quota(id);
            let known_desired =
                before.desired.tenants.get(name).filter(|had| had.since == desired_tenant.since);
            let builder = TenantBuilder {
                id,
                desired_tenant,
                files,
                models: &models,
                limits,
                quota,
                accounts,
                release,
                before: known_desired
                    .map(|tenant| &**tenant)
                    .zip(serving_before.map(|tenant| &**tenant)),
            };
            Arc::new(builder.build())
        });
        faults.extend(faults_of(name, desired_tenant, &tenant, &models));
        faults.extend(shared_keys(name, desired_tenant, desired));
        if !serving_before.is_some_and(|before| Arc::ptr_eq(before, &tenant)) {
            tenants.insert_mut(name.clone(), tenant);
        }
    }
    let keys = tenants_by_key(before, desired, &touched);
    let has_plain_keys = desired.has_plain_keys();
    let operators = operators_of(desired);
    let snapshot = Snapshot { release, tenants, keys, has_plain_keys, operators, models };
    Built { snapshot, faults, touched }
}

/// The tenants of both states that name a model whose lane is another one than before.
fn users_of_changed(
    before: &Serving,
    desired: &Desired,
    models: &BTreeMap<Name, ModelState>,
) -> BTreeSet<Name> {
    let changed = changed_models(&before.snapshot.models, models);
    let mut users = BTreeSet::new();
    // Few releases change a model, and its users are built again anyway.
    if !changed.is_empty() {
        for tenants in [&before.desired.tenants, &desired.tenants] {
            let uses = |tenant: &gristmill_state::Tenant| {
                named_models(tenant).any(|name| changed.contains(name))
            };
            let using = tenants.iter().filter(|(_, tenant)| uses(tenant));
            users.extend(using.map(|(name, _)| name.clone()));
        }
    }
    users
}

/// The tenant of the snapshot before, if nothing that it is made from has changed.
fn untouched(before: &Serving, name: &Name, new: &Sources<'_>) -> Option<Arc<Tenant>> {
    let tenant = before.snapshot.tenants.get(name)?;
    let desired_tenant = before.desired.tenants.get(name)?;
    let (plugins, assets) = (&tenant.plugins, &tenant.assets);
    let old = Sources { desired_tenant, plugins, assets, models: &before.snapshot.models };
    old.are_the_same(new).then(|| tenant.clone())
}

fn models_of(
    at_hand: &AtHand,
    desired: &Desired,
    faults: &mut Vec<Fault>,
) -> BTreeMap<Name, ModelState> {
    let mut models = BTreeMap::new();
    for (name, model) in &desired.models {
        let load = |digest| at_hand.model(name, model, digest).map_err(|error| error.to_string());
        let kept = model.kept.iter().map(|(version, digest)| {
            (*version, KeptVersion { digest: *digest, loaded: load(*digest) })
        });
        let state = ModelState {
            digest: model.digest,
            version: model.version,
            earlier_versions: model.earlier_versions.clone(),
            served: load(model.digest),
            kept: kept.collect(),
            notes: model.config.notes().into(),
        };
        if !model.unloaded {
            let subject = Subject::Model(name.clone());
            faults.extend(version_faults(&subject, state.version, state.versions()));
        }
        models.insert(name.clone(), state);
    }
    models
}

/// The faults of the versions of a plugin or a model. That of the newest one is the thing's own.
fn version_faults<'a, T: 'a>(
    subject: &'a Subject,
    newest: u64,
    versions: impl Iterator<Item = (u64, &'a Result<T, String>)> + 'a,
) -> impl Iterator<Item = Fault> + 'a {
    versions.filter_map(move |(version, loaded)| {
        let reason = loaded.as_ref().err()?.clone();
        let version = Some(version).filter(|version| *version != newest);
        Some(Fault { subject: subject.clone(), version, reason })
    })
}

/// The faults of the tenant: plugins and assets, then pipelines, then granted models.
fn faults_of(
    name: &Name,
    desired_tenant: &gristmill_state::Tenant,
    own_tenant: &Tenant,
    models: &BTreeMap<Name, ModelState>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (plugin, state) in &own_tenant.plugins {
        let subject = Subject::Plugin { tenant: name.clone(), plugin: plugin.clone() };
        faults.extend(version_faults(&subject, state.version, state.versions()));
    }
    for (asset, state) in &own_tenant.assets {
        let subject = Subject::Asset { tenant: name.clone(), asset: asset.clone() };
        faults.extend(version_faults(&subject, state.version, state.versions()));
    }
    for pipeline in desired_tenant.pipelines.keys() {
        let (tenant, of) = (name.clone(), pipeline.clone());
        let fault = match own_tenant.pipelines.get(pipeline) {
            Some(Pipeline::Unavailable(reason)) => {
                Some((Subject::Pipeline { tenant, pipeline: of }, reason))
            }
            Some(Pipeline::Ready(route)) => {
                let reason =
                    route.candidate.as_ref().and_then(|candidate| candidate.served.as_ref().err());
                reason.map(|reason| (Subject::Candidate { tenant, pipeline: of }, reason))
            }
            None => None,
        };
        faults.extend(fault.map(|(subject, reason)| Fault::of(subject, reason.clone())));
    }
    for model in desired_tenant.spec.models.iter().filter(|model| !models.contains_key(*model)) {
        let reason = format!("models: no model {:?}", model.as_str());
        faults.push(Fault::of(Subject::Tenant(name.clone()), reason));
    }
    faults
}

/// The admin tokens that may do everything.
fn operators_of(desired: &Desired) -> HashMap<KeyHash, Operator> {
    let ends = |ms| UNIX_EPOCH + Duration::from_millis(ms);
    let operators = desired.tokens.iter().filter(|(_, token)| token.spec.role == Role::Admin);
    let operator = |(name, token): (&Name, &gristmill_state::Token)| {
        let (version, ends) = (token.version, token.spec.expires_at_ms.map(ends));
        (token.spec.hash, Operator { name: name.clone(), version, ends })
    };
    operators.map(operator).collect()
}

/// The faults of a tenant that has a key of another one.
fn shared_keys<'a>(
    name: &'a Name,
    desired_tenant: &'a gristmill_state::Tenant,
    desired: &'a Desired,
) -> impl Iterator<Item = Fault> + 'a {
    desired_tenant.spec.keys.values().filter_map(move |key| {
        // One of the owners is without a fault, so that a shared key is one fault.
        desired.owners(*key).take_while(|owner| *owner != name).last()?;
        let reason = "api_keys: one of them is a key of another tenant, too".to_owned();
        Some(Fault::of(Subject::Tenant(name.clone()), reason))
    })
}

/// The tenant that each key opens. A key that would open two tenants opens none.
fn tenants_by_key(
    before: &Serving,
    desired: &Desired,
    touched: &BTreeSet<Name>,
) -> HashTrieMapSync<KeyHash, Name> {
    let mut keys = before.snapshot.keys.clone();
    for name in touched {
        let tenants = [&before.desired, desired].map(|state| state.tenants.get(name));
        for key in tenants.into_iter().flatten().flat_map(|tenant| tenant.spec.keys.values()) {
            let mut owners = desired.owners(*key);
            match (owners.next(), owners.next()) {
                (Some(only), None) => keys.insert_mut(*key, only.clone()),
                _ => {
                    keys.remove_mut(key);
                }
            }
        }
    }
    keys
}

#[cfg(test)]
mod tests;
