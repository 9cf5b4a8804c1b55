//! Checks whether a model's new version fits the users of the version before. Pure.

use gristmill_core::{ModelInfo, Name, TensorInfo};
use gristmill_snapshot::{ServedModel, Snapshot};

use crate::desired::{Desired, Tenant};
use crate::error::StateError;
use crate::release::named_version::NamedVersion;
use crate::release::pipeline::PipelineSpec;

/// Refuse a `new` version of the model that its users could not use. It is compared with the
/// version that serves now. If none serves, every version fits. Its users are those that name no
/// version, and that are the same in the state `before` and in `desired`: a user that changes
/// together with the model may fit only the new version.
///
/// # Errors
/// [`StateError::Misfit`] with every reason and every user.
pub fn check_users(
    serving: &Snapshot,
    name: &Name,
    new: &ServedModel,
    [before, desired]: [&Desired; 2],
) -> Result<(), StateError> {
    let serving = serving.models.get(name).and_then(|model| model.served.as_ref().ok());
    let Some(serving) = serving else { return Ok(()) };
    let why = misfits(serving.lane.info(), new.lane.info());
    let users = users(before, desired, name);
    if why.is_empty() || users.is_empty() {
        return Ok(());
    }
    Err(StateError::Misfit { name: name.to_string(), why, users })
}

/// Why the users of `old` cannot use `new`: every reason.
///
/// An input must accept at least what it accepted before. An output must have the same type and the
/// same known sizes. Further outputs are allowed.
fn misfits(old: &ModelInfo, new: &ModelInfo) -> Vec<String> {
    let mut misfits = Vec::new();
    for input in &old.inputs {
        // It may have got a default.
        match named(&new.inputs, input).or_else(|| named(&new.optional, input)) {
            None => misfits.push(format!("it has no input {:?}", input.name)),
            Some(same) => misfits.extend(changed("input", input, same, takes)),
        }
    }
    for input in new.inputs.iter().filter(|input| named(&old.inputs, input).is_none()) {
        misfits.push(format!("it wants another input, {:?}", input.name));
    }
    for output in &old.outputs {
        match named(&new.outputs, output) {
            None => misfits.push(format!("it has no output {:?}", output.name)),
            Some(same) => misfits.extend(changed("output", output, same, gives)),
        }
    }
    misfits
}

fn named<'a>(tensors: &'a [TensorInfo], like: &TensorInfo) -> Option<&'a TensorInfo> {
    tensors.iter().find(|tensor| tensor.name == like.name)
}

fn takes(old: Option<usize>, new: Option<usize>) -> bool {
    new.is_none() || old == new
}

fn gives(old: Option<usize>, new: Option<usize>) -> bool {
    old.is_none() || new.is_none() || old == new
}

fn changed(
    what: &str,
    old: &TensorInfo,
    new: &TensorInfo,
    fits: fn(Option<usize>, Option<usize>) -> bool,
) -> Option<String> {
    let name = &old.name;
    if old.dtype != new.dtype {
        return Some(format!("{what} {name:?} is {}, it was {}", new.dtype, old.dtype));
    }
    let same_rank = old.dims.len() == new.dims.len();
    if same_rank && old.dims.iter().zip(&new.dims).all(|(old, new)| fits(*old, *new)) {
        return None;
    }
    let (new, old) = (new.shape_text(), old.shape_text());
    Some(format!("{what} {name:?} has shape {new}, it had {old}"))
}

/// The users of the newest version that are the same in both states, as text.
fn users(before: &Desired, desired: &Desired, model: &Name) -> Vec<String> {
    let mut users = Vec::new();
    for (name, tenant) in &desired.tenants {
        let Some(old) = before.tenants.get(name) else { continue };
        let name = name.as_str();
        let content = |tenant: &Tenant, plugin: &NamedVersion| {
            tenant.plugins.get(&plugin.name)?.file(plugin.version)
        };
        let is_same = |pipeline: &Name, spec: &PipelineSpec| {
            let same = |plugin: &NamedVersion| content(old, plugin) == content(tenant, plugin);
            old.pipelines.get(pipeline).is_some_and(|old| **old == *spec)
                && spec.plugins().all(same)
        };
        let newest = |named: &NamedVersion| named.name == *model && named.version.is_none();
        let pipelines = tenant.pipelines.iter().filter(|(_, spec)| spec.models().any(newest));
        let pipelines = pipelines.filter(|(pipeline, spec)| is_same(pipeline, spec));
        users.extend(
            pipelines.map(|(pipeline, _)| format!("pipeline {name}/{}", pipeline.as_str())),
        );
        if [old, tenant].iter().all(|tenant| tenant.spec.models.contains(model)) {
            users.push(format!("tenant {name}, to which it is granted"));
        }
    }
    users
}

#[cfg(test)]
mod tests;
