//! The users of a thing that will be deleted, and the changes that remove them. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_core::Name;

use crate::desired::{Desired, Tenant};
use crate::in_use::{PipelineOf, Uses};
use crate::release::change::Change;
use crate::release::pipeline::PipelineSpec;
use crate::release::tenant::TenantSpec;

/// The users of a thing that will be deleted.
#[derive(Default)]
pub(crate) struct Users {
    pub(crate) uses: Uses,
    /// The thing itself, if others name it: a model that is granted, or a tenant of tokens.
    named: Option<Name>,
}

impl Users {
    pub(crate) fn of_plugin(desired: &Desired, tenant: &Name, plugin: &Name) -> Self {
        let uses = |pipeline: &PipelineSpec| pipeline.plugins().any(|own| own.name == *plugin);
        let own = desired.tenants.get_key_value(tenant);
        let uses = Uses { pipelines: pipelines_where(own, uses), ..Uses::default() };
        Self { uses, named: None }
    }

    pub(crate) fn of_pipeline(tenant: &Name, owner: &Tenant, pipeline: &Name) -> Self {
        let is_default = owner.spec.default_pipeline.as_ref() == Some(pipeline);
        let uses = Uses { default_of: is_default.then(|| tenant.clone()), ..Uses::default() };
        Self { uses, named: None }
    }

    pub(crate) fn of_model(desired: &Desired, model: &Name) -> Self {
        let granted = desired.tenants.iter().filter(|(_, own)| own.spec.models.contains(model));
        let uses = Uses {
            pipelines: pipelines_where(&desired.tenants, |pipeline| {
                pipeline.models().any(|own| own.name == *model)
            }),
            granted_to: granted.map(|(name, _)| name.clone()).collect(),
            ..Uses::default()
        };
        Self { uses, named: Some(model.clone()) }
    }

    pub(crate) fn of_tenant(desired: &Desired, tenant: &Name) -> Self {
        let tokens = desired.tokens.iter().filter(|(_, own)| own.spec.tenants.contains(tenant));
        let tokens = tokens.map(|(name, _)| name.clone()).collect();
        Self { uses: Uses { tokens, ..Uses::default() }, named: Some(tenant.clone()) }
    }

    /// The changes after which nothing uses it.
    pub(crate) fn removal(self, desired: &Desired) -> Vec<Change> {
        let Self { uses, named } = self;
        let mut specs = BTreeMap::new();
        let mut change = |tenant: &Name, change: &dyn Fn(&mut TenantSpec)| {
            if let Some(own) = desired.tenants.get(tenant) {
                change(specs.entry(tenant.clone()).or_insert_with(|| own.spec.clone()));
            }
        };
        if let Some(tenant) = &uses.default_of {
            change(tenant, &|spec| spec.default_pipeline = None);
        }
        for PipelineOf { tenant, pipeline } in &uses.pipelines {
            change(tenant, &|spec| {
                spec.default_pipeline.take_if(|default| default == pipeline);
            });
        }
        for tenant in &uses.granted_to {
            change(tenant, &|spec| spec.models.retain(|model| Some(model) != named.as_ref()));
        }
        let is_new = |(tenant, spec): &(Name, TenantSpec)| {
            desired.tenants.get(tenant).is_some_and(|own| own.spec != *spec)
        };
        let specs = specs.into_iter().filter(is_new);
        let specs = specs.map(|(tenant, spec)| Change::PutTenant { tenant, spec });
        let delete = |PipelineOf { tenant, pipeline }| Change::DeletePipeline { tenant, pipeline };
        let pipelines = uses.pipelines.into_iter().map(delete);
        let tokens = uses.tokens.into_iter().filter_map(|token| {
            let mut spec = desired.tokens.get(&token)?.spec.clone();
            spec.tenants.retain(|tenant| Some(tenant) != named.as_ref());
            Some(match spec.tenants.is_empty() {
                true => Change::DeleteToken { token },
                false => Change::PutToken { token, spec },
            })
        });
        specs.chain(pipelines).chain(tokens).collect()
    }
}

fn pipelines_where<'a>(
    tenants: impl IntoIterator<Item = (&'a Name, &'a Arc<Tenant>)>,
    uses: impl Fn(&PipelineSpec) -> bool,
) -> Vec<PipelineOf> {
    let mut pipelines = Vec::new();
    for (tenant, own) in tenants {
        let using = own.pipelines.iter().filter(|(_, pipeline)| uses(pipeline));
        let of =
            |pipeline: &Name| PipelineOf { tenant: tenant.clone(), pipeline: pipeline.clone() };
        pipelines.extend(using.map(|(name, _)| of(name)));
    }
    pipelines
}
