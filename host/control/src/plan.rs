//! From what was asked to the changes of a release, as far as the desired state and what serves decide it.
//! Pure functions.
//!
//! These are the rules for new changes. Replaying the log knows none of them: what an older version
//! took in stays.

use std::collections::BTreeMap;

use gristmill_core::{Name, PipelineLimits};
use gristmill_snapshot::Snapshot;

use crate::ControlError;
use crate::desired::{Desired, Tenant, not_found};
use crate::fault::{Fault, Subject};
use crate::fit::Wanted;
use crate::release::{Change, PipelineDocument, TenantSpec};

/// The changes that do what `asked` asks of `desired`. What is in use is deleted only with `cascade`,
/// together with its users.
pub(crate) fn plan(
    desired: &Desired,
    asked: &[Change],
    cascade: bool,
) -> Result<Vec<Change>, ControlError> {
    let mut changes = Vec::new();
    for change in asked {
        let (users, what) = match change {
            Change::PutTenant { tenant, spec } => {
                let faults = tenant_faults(desired, tenant, spec);
                if !faults.is_empty() {
                    return Err(refused(Subject::Tenant(tenant.clone()), &faults));
                }
                (Users::default(), String::new())
            }
            Change::DeleteTenant { tenant } => {
                let owner = find(desired, tenant)?;
                if !cascade && let Some(owns) = owned_by(owner) {
                    return Err(ControlError::InUse(format!(
                        "tenant {:?} has {owns}: delete these first, or all of it with \
                         ?cascade=true",
                        tenant.as_str()
                    )));
                }
                (Users::default(), String::new())
            }
            Change::DeletePlugin { tenant, plugin } => {
                let owner = find(desired, tenant)?;
                let known = owner.plugins.contains_key(plugin);
                known.then_some(()).ok_or_else(|| not_found("plugin", plugin))?;
                (Users::of_plugin(desired, tenant, plugin), named("plugin", plugin))
            }
            Change::DeletePipeline { tenant, pipeline } => {
                let owner = find(desired, tenant)?;
                let known = owner.pipelines.contains_key(pipeline);
                known.then_some(()).ok_or_else(|| not_found("pipeline", pipeline))?;
                (Users::of_pipeline(tenant, owner, pipeline), named("pipeline", pipeline))
            }
            Change::DeleteModel { model } => {
                let known = desired.models.contains_key(model);
                known.then_some(()).ok_or_else(|| not_found("model", model))?;
                (Users::of_model(desired, model), named("model", model))
            }
            Change::PutPlugin { .. }
            | Change::PutPipeline { .. }
            | Change::PutModel { .. }
            | Change::PutModelConfig { .. }
            | Change::LoadModel { .. }
            | Change::UnloadModel { .. } => (Users::default(), String::new()),
        };
        if !cascade && let Some(users) = users.described() {
            return Err(ControlError::InUse(format!(
                "{what} is {users}: change these first, or delete them as well with ?cascade=true"
            )));
        }
        changes.extend(users.removal(desired));
        changes.push(change.clone());
    }
    Ok(changes)
}

/// What each of the changes is about and must be whole after it.
pub(crate) fn subjects(changes: &[Change]) -> Vec<Subject> {
    let subject = |change: &Change| {
        Some(match change {
            Change::PutTenant { tenant, .. } => Subject::Tenant(tenant.clone()),
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
            | Change::DeletePlugin { .. }
            | Change::DeletePipeline { .. }
            | Change::DeleteModel { .. }
            | Change::UnloadModel { .. } => return None,
        })
    };
    changes.iter().filter_map(subject).collect()
}

/// What `desired` says against a tenant of this specification.
pub(crate) fn tenant_faults(desired: &Desired, tenant: &Name, spec: &TenantSpec) -> Vec<String> {
    let mut faults = Vec::new();
    for (index, key) in spec.keys.iter().enumerate() {
        let mut others = desired.tenants.iter().filter(|(name, _)| *name != tenant);
        if let Some((other, _)) = others.find(|(_, other)| other.spec.keys.contains(key)) {
            faults.push(format!("api_keys[{index}] is a key of tenant {:?}, too", other.as_str()));
        }
    }
    if let Some(pipeline) = &spec.default_pipeline {
        let own = desired.tenants.get(tenant).map(|tenant| &tenant.pipelines);
        if !own.is_some_and(|own| own.contains_key(pipeline)) {
            let own = list(own.into_iter().flat_map(|own| own.keys()));
            let has = match own.is_empty() {
                true => "it has none yet: put the pipeline first".into(),
                false => format!("it has {own}"),
            };
            let pipeline = pipeline.as_str();
            faults
                .push(format!("default_pipeline: the tenant has no pipeline {pipeline:?}; {has}"));
        }
    }
    for model in spec.models.iter().filter(|model| !desired.models.contains_key(*model)) {
        faults.push(format!("models: no model {:?}", model.as_str()));
    }
    faults
}

/// What is wrong with a pipeline whose document has faults: these, what it names in vain, and where it does not fit
/// what serves.
pub(crate) fn pipeline_fault(
    serving: &Snapshot,
    (tenant, pipeline): (&Name, &Name),
    (document, host): (PipelineDocument, &PipelineLimits),
) -> ControlError {
    let PipelineDocument { pre, model, post, faults, limits, priority, .. } = document;
    let memory_bytes = limits.memory_bytes.unwrap_or(host.plugin.memory_bytes);
    let wanted = Wanted {
        pre: pre.as_ref(),
        model: model.as_ref(),
        post: post.as_ref(),
        priority,
        memory_bytes: (!faults.has("limits.memory_bytes")).then_some(memory_bytes),
    };
    let none = BTreeMap::new();
    let own = serving.tenants.get(tenant).map_or(&none, |tenant| &tenant.plugins);
    let mut faults = faults.into_texts();
    faults.extend(wanted.faults(own, &serving.models));
    let (tenant, pipeline) = (tenant.clone(), pipeline.clone());
    refused(Subject::Pipeline { tenant, pipeline }, &faults)
}

/// A change that is refused for these faults of what it is about.
pub(crate) fn refused(subject: Subject, faults: &[String]) -> ControlError {
    ControlError::Refused(vec![Fault { subject, reason: faults.join("; ") }])
}

/// What uses a thing that is to be deleted.
#[derive(Default)]
struct Users {
    /// By tenant and name.
    pipelines: Vec<(Name, Name)>,
    /// Tenants that the model is granted to.
    granted_to: Vec<Name>,
    /// The model that is granted.
    granted: Option<Name>,
    /// The tenant whose default pipeline it is.
    default_of: Option<Name>,
}

impl Users {
    fn of_plugin(desired: &Desired, tenant: &Name, plugin: &Name) -> Self {
        let uses =
            |pipeline: &crate::PipelineSpec| [&pipeline.pre, &pipeline.post].contains(&plugin);
        let own = desired.tenants.get_key_value(tenant);
        Self { pipelines: pipelines_where(own, uses), ..Self::default() }
    }

    fn of_pipeline(tenant: &Name, owner: &Tenant, pipeline: &Name) -> Self {
        let is_default = owner.spec.default_pipeline.as_ref() == Some(pipeline);
        Self { default_of: is_default.then(|| tenant.clone()), ..Self::default() }
    }

    fn of_model(desired: &Desired, model: &Name) -> Self {
        let granted = desired.tenants.iter().filter(|(_, own)| own.spec.models.contains(model));
        Self {
            pipelines: pipelines_where(&desired.tenants, |pipeline| pipeline.model == *model),
            granted_to: granted.map(|(name, _)| name.clone()).collect(),
            granted: Some(model.clone()),
            default_of: None,
        }
    }

    /// "used by acme/digits, acme/ranker and granted to acme"; none where nothing uses it.
    fn described(&self) -> Option<String> {
        let pipelines = self.pipelines.iter().map(|(tenant, name)| format!("{tenant}/{name}"));
        let pipelines: Vec<_> = pipelines.collect();
        let mut uses = Vec::new();
        if !pipelines.is_empty() {
            uses.push(format!("used by {}", pipelines.join(", ")));
        }
        if !self.granted_to.is_empty() {
            uses.push(format!("granted to {}", list(&self.granted_to)));
        }
        if let Some(tenant) = &self.default_of {
            uses.push(format!("the default pipeline of tenant {:?}", tenant.as_str()));
        }
        (!uses.is_empty()).then(|| uses.join(" and "))
    }

    /// The changes after which nothing uses it.
    fn removal(self, desired: &Desired) -> Vec<Change> {
        let mut specs = BTreeMap::new();
        let mut change = |tenant: &Name, change: &dyn Fn(&mut TenantSpec)| {
            if let Some(own) = desired.tenants.get(tenant) {
                change(specs.entry(tenant.clone()).or_insert_with(|| own.spec.clone()));
            }
        };
        if let Some(tenant) = &self.default_of {
            change(tenant, &|spec| spec.default_pipeline = None);
        }
        for (tenant, pipeline) in &self.pipelines {
            change(tenant, &|spec| {
                spec.default_pipeline.take_if(|default| default == pipeline);
            });
        }
        for tenant in &self.granted_to {
            change(tenant, &|spec| {
                spec.models.retain(|model| Some(model) != self.granted.as_ref())
            });
        }
        let is_new = |(tenant, spec): &(Name, TenantSpec)| {
            desired.tenants.get(tenant).is_some_and(|own| own.spec != *spec)
        };
        let specs = specs.into_iter().filter(is_new);
        let specs = specs.map(|(tenant, spec)| Change::PutTenant { tenant, spec });
        let pipelines = self.pipelines.into_iter();
        let pipelines =
            pipelines.map(|(tenant, pipeline)| Change::DeletePipeline { tenant, pipeline });
        specs.chain(pipelines).collect()
    }
}

fn pipelines_where<'a>(
    tenants: impl IntoIterator<Item = (&'a Name, &'a Tenant)>,
    uses: impl Fn(&crate::PipelineSpec) -> bool,
) -> Vec<(Name, Name)> {
    let mut pipelines = Vec::new();
    for (tenant, own) in tenants {
        let using = own.pipelines.iter().filter(|(_, pipeline)| uses(pipeline));
        pipelines.extend(using.map(|(name, _)| (tenant.clone(), name.clone())));
    }
    pipelines
}

/// "the pipelines digits, ranker and the plugins digits"; none where it has nothing.
fn owned_by(tenant: &Tenant) -> Option<String> {
    let (pipelines, plugins) = (list(tenant.pipelines.keys()), list(tenant.plugins.keys()));
    let kinds = [("pipelines", pipelines), ("plugins", plugins)];
    let own = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    let own: Vec<_> = own.map(|(kind, names)| format!("the {kind} {names}")).collect();
    (!own.is_empty()).then(|| own.join(" and "))
}

fn find<'a>(desired: &'a Desired, tenant: &Name) -> Result<&'a Tenant, ControlError> {
    desired.tenants.get(tenant).ok_or_else(|| not_found("tenant", tenant))
}

fn named(what: &str, name: &Name) -> String {
    format!("{what} {:?}", name.as_str())
}

fn list<'a>(names: impl IntoIterator<Item = &'a Name>) -> String {
    let names: Vec<_> = names.into_iter().map(Name::as_str).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
