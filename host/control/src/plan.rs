//! Planning a release: from the requested changes and the desired state to the release's changes
//! and the next state. Pure functions.
//!
//! These are the rules for new changes. Replaying the log does not apply them, so changes that an
//! older version accepted stay. `users` finds the users of a thing. `tenant` and `pipeline` check
//! documents against the state, and `keys` changes of one key. `given_keys` names the keys of a
//! tenant's document. `fit` and `signature` check loaded things against their users. `needs` lists
//! what must be loaded for a state.

pub(crate) mod fit;
mod given_keys;
pub(crate) mod keys;
pub(crate) mod names;
pub(crate) mod needs;
pub(crate) mod pipeline;
pub(crate) mod signature;
pub(crate) mod tenant;
mod users;

use gristmill_core::Name;

use crate::desired::{Desired, Tenant};
use crate::error::ControlError;
use crate::fault::Subject;
use crate::in_use::InUse;
use crate::plan::tenant::tenant_faults;
use crate::plan::users::Users;
use crate::release::change::Change;

/// A release that is planned.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The requested changes. Changes that follow from one stand before it.
    pub(crate) changes: Vec<Change>,
    /// The state after the changes.
    pub(crate) desired: Desired,
}

/// Plan release `number`, which makes the changes `asked` to `desired`. Things in use are deleted
/// only with `cascade`, together with their users.
///
/// # Errors
/// A change names something that does not exist, deletes something that is in use, or breaks a rule
/// for new changes.
pub(crate) fn plan(
    desired: &Desired,
    number: u64,
    asked: &[Change],
    cascade: bool,
) -> Result<Plan, ControlError> {
    let changes = changes(desired, asked, cascade)?;
    let mut next = desired.clone();
    next.apply(number, &changes)?;
    Ok(Plan { changes, desired: next })
}

/// The requested changes, with those that follow from them.
fn changes(
    desired: &Desired,
    asked: &[Change],
    cascade: bool,
) -> Result<Vec<Change>, ControlError> {
    let mut changes = Vec::new();
    for change in asked {
        let users = match change {
            Change::PutTenant { tenant, spec } => {
                let faults = tenant_faults(desired, tenant, spec);
                if !faults.is_empty() {
                    return Err(ControlError::refused(Subject::Tenant(tenant.clone()), &faults));
                }
                Users::default()
            }
            Change::DeleteTenant { tenant } => {
                let owner = find(desired, tenant)?;
                let is_empty = owner.pipelines.is_empty() && owner.plugins.is_empty();
                if !cascade && !is_empty {
                    let pipelines = owner.pipelines.keys().cloned().collect();
                    let plugins = owner.plugins.keys().cloned().collect();
                    let tenant = tenant.clone();
                    return Err(InUse::Owner { tenant, pipelines, plugins }.into());
                }
                Users::default()
            }
            Change::PutKey { tenant, key, digest } => {
                keys::check_put(desired, (tenant, find(desired, tenant)?), (key, digest))?;
                Users::default()
            }
            Change::DeleteKey { tenant, key } => {
                keys::check_delete(tenant, find(desired, tenant)?, key)?;
                Users::default()
            }
            Change::DeletePlugin { tenant, plugin } => {
                let owner = find(desired, tenant)?;
                let known = owner.plugins.contains_key(plugin);
                known.then_some(()).ok_or_else(|| ControlError::not_found("plugin", plugin))?;
                Users::of_plugin(desired, tenant, plugin)
            }
            Change::DeletePipeline { tenant, pipeline } => {
                let owner = find(desired, tenant)?;
                let known = owner.pipelines.contains_key(pipeline);
                known.then_some(()).ok_or_else(|| ControlError::not_found("pipeline", pipeline))?;
                Users::of_pipeline(tenant, owner, pipeline)
            }
            Change::DeleteModel { model } => {
                let known = desired.models.contains_key(model);
                known.then_some(()).ok_or_else(|| ControlError::not_found("model", model))?;
                Users::of_model(desired, model)
            }
            Change::PutPlugin { .. }
            | Change::PutPipeline { .. }
            | Change::PutModel { .. }
            | Change::PutModelConfig { .. }
            | Change::LoadModel { .. }
            | Change::UnloadModel { .. } => Users::default(),
        };
        if !cascade
            && !users.uses.is_empty()
            && let Some((kind, name)) = deleted(change)
        {
            return Err(InUse::Used { kind, name: name.clone(), uses: users.uses }.into());
        }
        changes.extend(users.removal(desired));
        changes.push(change.clone());
    }
    Ok(changes)
}

/// The subjects of the changes, which must not have faults afterwards.
pub(crate) fn subjects(changes: &[Change]) -> Vec<Subject> {
    let subject = |change: &Change| {
        Some(match change {
            Change::PutTenant { tenant, .. } | Change::PutKey { tenant, .. } => {
                Subject::Tenant(tenant.clone())
            }
            Change::PutPlugin { tenant, plugin, .. } => {
                Subject::Plugin { tenant: tenant.clone(), plugin: plugin.clone() }
            }
            Change::PutPipeline { tenant, pipeline, .. } => {
                Subject::Pipeline { tenant: tenant.clone(), pipeline: pipeline.clone() }
            }
            Change::PutModel { model, .. }
            | Change::PutModelConfig { model, .. }
            | Change::LoadModel { model } => Subject::Model(model.clone()),
            Change::DeleteTenant { .. }
            | Change::DeleteKey { .. }
            | Change::DeletePlugin { .. }
            | Change::DeletePipeline { .. }
            | Change::DeleteModel { .. }
            | Change::UnloadModel { .. } => return None,
        })
    };
    changes.iter().filter_map(subject).collect()
}

fn find<'a>(desired: &'a Desired, tenant: &Name) -> Result<&'a Tenant, ControlError> {
    desired.tenants.get(tenant).ok_or_else(|| ControlError::not_found("tenant", tenant))
}

/// The kind and the name of the thing that a change deletes and that others can use.
fn deleted(change: &Change) -> Option<(&'static str, &Name)> {
    match change {
        Change::DeletePlugin { plugin, .. } => Some(("plugin", plugin)),
        Change::DeletePipeline { pipeline, .. } => Some(("pipeline", pipeline)),
        Change::DeleteModel { model } => Some(("model", model)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
