//! Planning a release: from the changes that are asked for and the desired state to the release's
//! changes and the next state. Pure functions.
//!
//! These are the rules for new changes. Replaying the log does not apply them, so changes that an
//! older version accepted stay. `users` finds the users of a thing. `tenant`, `token` and
//! `pipeline` check documents against the state, `keys` changes of one key, `versions`
//! those of the versions that stay, and `candidate` ends the trial of one. `given_keys` names the
//! keys of a tenant's document. `signer` checks the signatures of plugins. `restore` finds the
//! changes that bring back an earlier state. `fit` and `signature` check loaded things against
//! their users. `needs` lists what must be loaded for a state.
//!
//! Invariant: a release is hardly longer than what was sent for it, or than the documents that it
//! changes. What follows from documents that are there is counted, and bounded ([`NAMES_MAX`]).

mod candidate;
pub(crate) mod fit;
mod given_keys;
pub(crate) mod keys;
pub(crate) mod names;
pub(crate) mod needs;
pub(crate) mod pipeline;
pub(crate) mod restore;
pub(crate) mod signature;
pub(crate) mod signer;
pub(crate) mod tenant;
mod token;
mod users;
mod versions;

use std::collections::BTreeMap;
use std::io;

use gristmill_core::Name;
use serde::Serialize;

pub use self::versions::VERSION_MAX;
use crate::asked::AskedChange;
use crate::desired::{Desired, Tenant};
use crate::error::StateError;
use crate::fault::Subject;
use crate::in_use::InUse;
use crate::plan::tenant::{tenant_faults, tenant_spec};
use crate::plan::users::Users;
use crate::release::change::Change;
use crate::release::document::Faults;
use crate::release::token::TokenSpec;

/// Maximum names in the changes of a release that only follow from others, or from the documents
/// that are there.
const NAMES_MAX: usize = 1 << 20;

/// So many bytes of a document count as a name.
const NAME_BYTES: usize = 64;

/// Maximum assets of a tenant. Their bytes are bounded elsewhere, but an empty one takes work, too.
const TENANT_ASSETS_MAX: usize = 1024;

/// A release that is planned.
#[derive(Debug)]
pub struct Plan {
    /// The requested changes. Changes that follow from one stand before it.
    pub changes: Vec<Change>,
    /// The state after the changes.
    pub desired: Desired,
    /// The names in the changes that only follow from others, or from the documents that are there.
    names: usize,
}

/// Why a release cannot be planned.
#[derive(Debug)]
pub struct Refused {
    /// The place of the refused change among those that were asked for.
    pub index: usize,
    /// Why it is refused.
    pub error: Box<StateError>,
}

/// Plan release `number`, which makes the changes `asked` to `desired`, one after the other. Things
/// in use are deleted only with `cascade`, together with their users. The names in a tenant's
/// document must be there when all changes are made.
///
/// # Errors
/// A change names something that does not exist, deletes something that is in use, or breaks a rule
/// for new changes.
pub fn plan(
    desired: &Desired,
    number: u64,
    asked: &[AskedChange],
    cascade: bool,
) -> Result<Plan, Refused> {
    let mut plan = Plan { changes: Vec::new(), desired: desired.clone(), names: 0 };
    for (index, change) in asked.iter().enumerate() {
        let taken = plan.take(number, change, cascade);
        taken.map_err(|error| Refused { index, error: error.into() })?;
    }
    let mut put_tenants = BTreeMap::new();
    for (index, change) in asked.iter().enumerate() {
        if let AskedChange::Known(Change::PutTenant { tenant, .. })
        | AskedChange::PutTenant { tenant, .. } = change
        {
            put_tenants.insert(tenant, index);
        }
    }
    plan.desired.prune(&plan.changes);
    for (index, change) in asked.iter().enumerate() {
        let checked = versions::check(desired, &plan.desired, change)
            .and_then(|()| check_number_of_assets(desired, &plan.desired, change));
        checked.map_err(|error| Refused { index, error: error.into() })?;
    }
    for (tenant, index) in put_tenants {
        let Some(put) = plan.desired.tenants.get(tenant) else { continue };
        let mut faults = Faults::default();
        tenant_faults(&plan.desired, tenant, &put.spec, &mut faults);
        if !faults.is_empty() {
            let subject = Subject::Tenant(tenant.clone());
            let error = StateError::Document { subject, faults };
            return Err(Refused { index, error: error.into() });
        }
    }
    Ok(plan)
}

/// Check the size of changes that follow from documents that are there.
///
/// # Errors
/// [`StateError::TooManyUsers`]
pub fn check_size(changes: &[Change]) -> Result<(), StateError> {
    match changes.iter().map(names_in).sum::<usize>() > NAMES_MAX {
        true => Err(StateError::TooManyUsers),
        false => Ok(()),
    }
}

impl Plan {
    /// Make one more change, and those that follow from it.
    fn take(&mut self, number: u64, asked: &AskedChange, cascade: bool) -> Result<(), StateError> {
        let change = match asked {
            AskedChange::Known(change) => change.clone(),
            AskedChange::PutTenant { tenant, document } => {
                let spec = tenant_spec(&self.desired, tenant, document)?;
                Change::PutTenant { tenant: tenant.clone(), spec }
            }
            AskedChange::PutKey { tenant, key, sent } => {
                let owner = find(&self.desired, tenant)?;
                let digest = keys::put(&self.desired, (tenant, owner), (key, sent))?;
                Change::PutKey { tenant: tenant.clone(), key: key.clone(), digest }
            }
            AskedChange::PutPlugin { tenant, plugin, digest, .. } => {
                let (tenant, plugin) = (tenant.clone(), plugin.clone());
                Change::PutPlugin { tenant, plugin, digest: *digest }
            }
            AskedChange::Promote { tenant, pipeline } => {
                candidate::promote(&self.desired, tenant, pipeline)?
            }
            AskedChange::Abort { tenant, pipeline, only } => {
                match candidate::abort(&self.desired, tenant, pipeline, only.as_deref())? {
                    Some(change) => change,
                    None => return Ok(()),
                }
            }
            AskedChange::PutToken { token, document, hash } => {
                let spec = token::token_spec(&self.desired, token, document, *hash)?;
                Change::PutToken { token: token.clone(), spec }
            }
            AskedChange::RotateToken { token, hash } => {
                let before = self.desired.tokens.get(token);
                let before = before.ok_or_else(|| StateError::not_found("token", token))?;
                let spec = TokenSpec { hash: *hash, ..before.spec.clone() };
                Change::PutToken { token: token.clone(), spec }
            }
        };
        versions::check_chosen(&self.desired, &change)?;
        let mut changes = changes_before(&self.desired, &change, cascade)?;
        let ends_candidate =
            matches!(asked, AskedChange::Promote { .. } | AskedChange::Abort { .. });
        let from_known = changes.iter().chain(ends_candidate.then_some(&change));
        self.names += from_known.map(names_in).sum::<usize>();
        if self.names > NAMES_MAX {
            return Err(StateError::TooManyUsers);
        }
        changes.push(change);
        self.desired.apply_some(number, &changes)?;
        self.changes.append(&mut changes);
        Ok(())
    }
}

/// The names in a change, which make its size.
fn names_in(change: &Change) -> usize {
    match change {
        Change::PutTenant { spec, .. } => 1 + spec.models.len() + spec.keys.len(),
        Change::PutToken { spec, .. } => 1 + spec.tenants.len(),
        Change::PutPipeline { spec, .. } => 1 + written_bytes(spec) / NAME_BYTES,
        _ => 1,
    }
}

/// The bytes of a document as JSON.
fn written_bytes(document: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A document that cannot be written is refused later.
    let _ = serde_json::to_writer(&mut count, document);
    count.0
}

/// The changes that must be made before this one.
fn changes_before(
    desired: &Desired,
    change: &Change,
    cascade: bool,
) -> Result<Vec<Change>, StateError> {
    let users = match change {
        Change::DeleteTenant { tenant } => {
            let owner = find(desired, tenant)?;
            let is_empty = owner.pipelines.is_empty() && owner.files().next().is_none();
            if !cascade && !is_empty {
                let pipelines = owner.pipelines.keys().cloned().collect();
                let plugins = owner.plugins.keys().cloned().collect();
                let assets = owner.assets.keys().cloned().collect();
                let tenant = tenant.clone();
                return Err(InUse::Owner { tenant, pipelines, plugins, assets }.into());
            }
            Users::of_tenant(desired, tenant)
        }
        Change::DeleteToken { token } => {
            let exists = desired.tokens.contains_key(token);
            exists.then_some(()).ok_or_else(|| StateError::not_found("token", token))?;
            Users::default()
        }
        Change::DeleteKey { tenant, key } => {
            keys::check_delete(tenant, find(desired, tenant)?, key)?;
            Users::default()
        }
        Change::DeletePlugin { tenant, plugin } => {
            let owner = find(desired, tenant)?;
            let exists = owner.plugins.contains_key(plugin);
            exists.then_some(()).ok_or_else(|| StateError::not_found("plugin", plugin))?;
            Users::of_plugin(desired, tenant, plugin)
        }
        Change::DeleteAsset { tenant, asset } => {
            let owner = find(desired, tenant)?;
            let exists = owner.assets.contains_key(asset);
            exists.then_some(()).ok_or_else(|| StateError::not_found("asset", asset))?;
            Users::of_asset(desired, tenant, asset)
        }
        Change::DeletePipeline { tenant, pipeline } => {
            let owner = find(desired, tenant)?;
            let exists = owner.pipelines.contains_key(pipeline);
            exists.then_some(()).ok_or_else(|| StateError::not_found("pipeline", pipeline))?;
            Users::of_pipeline(tenant, owner, pipeline)
        }
        Change::DeleteModel { model } => {
            let exists = desired.models.contains_key(model);
            exists.then_some(()).ok_or_else(|| StateError::not_found("model", model))?;
            Users::of_model(desired, model)
        }
        Change::PutModel { model, .. } => {
            check_alike(desired, model)?;
            Users::default()
        }
        Change::PutTenant { .. }
        | Change::PutKey { .. }
        | Change::PutPlugin { .. }
        | Change::PutPluginVersion { .. }
        | Change::PutAsset { .. }
        | Change::PutAssetVersion { .. }
        | Change::PutPipeline { .. }
        | Change::PutModelVersion { .. }
        | Change::PutModelConfig { .. }
        | Change::LoadModel { .. }
        | Change::UnloadModel { .. }
        | Change::PutToken { .. } => Users::default(),
    };
    if !cascade
        && !users.uses.is_empty()
        && let Some((kind, name)) = deleted(change)
    {
        return Err(InUse::Used { kind, name: name.clone(), uses: users.uses.into() }.into());
    }
    Ok(users.removal(desired))
}

/// The subjects of the changes, which must not have faults afterwards. A version that comes back
/// leaves its subject as it is.
pub fn subjects(changes: &[Change]) -> Vec<Subject> {
    let is_version = |change: &Change| {
        matches!(
            change,
            Change::PutPluginVersion { .. }
                | Change::PutAssetVersion { .. }
                | Change::PutModelVersion { .. }
        )
    };
    let stays = changes.iter().filter(|change| !change.takes_away() && !is_version(change));
    let subjects = |change: &Change| match change.target() {
        Subject::Key { tenant, .. } => vec![Subject::Tenant(tenant)],
        Subject::ModelConfig(model) => vec![Subject::Model(model)],
        Subject::Pipeline { tenant, pipeline } => {
            let (of, name) = (tenant.clone(), pipeline.clone());
            let candidate = Subject::Candidate { tenant: of, pipeline: name };
            vec![Subject::Pipeline { tenant, pipeline }, candidate]
        }
        target => vec![target],
    };
    stays.flat_map(subjects).collect()
}

/// Check the number of a tenant's assets in `after`, if the change puts one.
fn check_number_of_assets(
    before: &Desired,
    after: &Desired,
    change: &AskedChange,
) -> Result<(), StateError> {
    let AskedChange::Known(Change::PutAsset { tenant, .. }) = change else { return Ok(()) };
    let [had, count] = [before, after]
        .map(|state| state.tenants.get(tenant).map_or(0, |owner| owner.assets.len()));
    match count > TENANT_ASSETS_MAX && count > had {
        true => {
            let (tenant, limit) = (tenant.to_string(), TENANT_ASSETS_MAX);
            Err(StateError::TooManyAssets { tenant, count, limit })
        }
        false => Ok(()),
    }
}

/// Check that the name of a new model differs from all others in more than case: as names of files,
/// for example in a copy of the models on another system, they would be one.
fn check_alike(desired: &Desired, model: &Name) -> Result<(), StateError> {
    if desired.models.contains_key(model) {
        return Ok(());
    }
    match desired.models.keys().find(|other| other.is_like(model)) {
        Some(other) => Err(StateError::Alike { model: model.clone(), other: other.clone() }),
        None => Ok(()),
    }
}

fn find<'a>(desired: &'a Desired, tenant: &Name) -> Result<&'a Tenant, StateError> {
    let entry = desired.tenants.get(tenant).map(|tenant| &**tenant);
    entry.ok_or_else(|| StateError::not_found("tenant", tenant))
}

/// The kind and the name of the thing that a change deletes and that others can use.
fn deleted(change: &Change) -> Option<(&'static str, &Name)> {
    match change {
        Change::DeletePlugin { plugin, .. } => Some(("plugin", plugin)),
        Change::DeleteAsset { asset, .. } => Some(("asset", asset)),
        Change::DeletePipeline { pipeline, .. } => Some(("pipeline", pipeline)),
        Change::DeleteModel { model } => Some(("model", model)),
        Change::DeleteTenant { tenant } => Some(("tenant", tenant)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
