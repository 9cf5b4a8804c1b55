//! The users of a thing that will be deleted, and the changes that remove them. Pure.

use std::collections::BTreeMap;

use gristmill_core::Name;

use crate::desired::{Desired, Tenant};
use crate::plan::names::list;
use crate::release::change::Change;
use crate::release::pipeline::PipelineSpec;
use crate::release::tenant::TenantSpec;

/// The users of a thing that will be deleted.
#[derive(Default)]
pub(crate) struct Users {
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
    pub(crate) fn of_plugin(desired: &Desired, tenant: &Name, plugin: &Name) -> Self {
        let uses = |pipeline: &PipelineSpec| [&pipeline.pre, &pipeline.post].contains(&plugin);
        let own = desired.tenants.get_key_value(tenant);
        Self { pipelines: pipelines_where(own, uses), ..Self::default() }
    }

    pub(crate) fn of_pipeline(tenant: &Name, owner: &Tenant, pipeline: &Name) -> Self {
        let is_default = owner.spec.default_pipeline.as_ref() == Some(pipeline);
        Self { default_of: is_default.then(|| tenant.clone()), ..Self::default() }
    }

    pub(crate) fn of_model(desired: &Desired, model: &Name) -> Self {
        let granted = desired.tenants.iter().filter(|(_, own)| own.spec.models.contains(model));
        Self {
            pipelines: pipelines_where(&desired.tenants, |pipeline| pipeline.model == *model),
            granted_to: granted.map(|(name, _)| name.clone()).collect(),
            granted: Some(model.clone()),
            default_of: None,
        }
    }

    /// "used by acme/digits, acme/ranker and granted to acme"; none where nothing uses it.
    pub(crate) fn described(&self) -> Option<String> {
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
    pub(crate) fn removal(self, desired: &Desired) -> Vec<Change> {
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
    uses: impl Fn(&PipelineSpec) -> bool,
) -> Vec<(Name, Name)> {
    let mut pipelines = Vec::new();
    for (tenant, own) in tenants {
        let using = own.pipelines.iter().filter(|(_, pipeline)| uses(pipeline));
        pipelines.extend(using.map(|(name, _)| (tenant.clone(), name.clone())));
    }
    pipelines
}
