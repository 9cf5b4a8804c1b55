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
pub struct Users {
    pub uses: Uses,
    /// The thing itself, if others name it: a model that is granted, or a tenant of tokens.
    named: Option<Name>,
    /// Of the pipelines, those of which only the candidate names it.
    only_candidates: Vec<PipelineOf>,
}

impl Users {
    pub fn of_plugin(desired: &Desired, tenant: &Name, plugin: &Name) -> Self {
        let uses = |pipeline: &PipelineSpec| pipeline.plugins().any(|named| named.name == *plugin);
        Self::of_file(desired, tenant, uses)
    }

    pub fn of_asset(desired: &Desired, tenant: &Name, asset: &Name) -> Self {
        let uses = |pipeline: &PipelineSpec| pipeline.assets().any(|named| named.name == *asset);
        Self::of_file(desired, tenant, uses)
    }

    /// The pipelines of a tenant that use one of its files.
    fn of_file(
        desired: &Desired,
        tenant: &Name,
        uses: impl Fn(&PipelineSpec) -> bool + Copy,
    ) -> Self {
        let entry = || desired.tenants.get_key_value(tenant);
        let only_candidates = only_candidates(entry(), uses);
        let uses = Uses { pipelines: pipelines_where(entry(), uses), ..Uses::default() };
        Self { uses, named: None, only_candidates }
    }

    pub fn of_pipeline(tenant: &Name, owner: &Tenant, pipeline: &Name) -> Self {
        let is_default = owner.spec.default_pipeline.as_ref() == Some(pipeline);
        let uses = Uses { default_of: is_default.then(|| tenant.clone()), ..Uses::default() };
        Self { uses, ..Self::default() }
    }

    pub fn of_model(desired: &Desired, model: &Name) -> Self {
        let granted =
            desired.tenants.iter().filter(|(_, tenant)| tenant.spec.models.contains(model));
        let uses = |pipeline: &PipelineSpec| pipeline.models().any(|named| named.name == *model);
        let only_candidates = only_candidates(&desired.tenants, uses);
        let uses = Uses {
            pipelines: pipelines_where(&desired.tenants, uses),
            granted_to: granted.map(|(name, _)| name.clone()).collect(),
            ..Uses::default()
        };
        Self { uses, named: Some(model.clone()), only_candidates }
    }

    pub fn of_tenant(desired: &Desired, tenant: &Name) -> Self {
        let tokens = desired.tokens.iter().filter(|(_, token)| token.spec.tenants.contains(tenant));
        let tokens = tokens.map(|(name, _)| name.clone()).collect();
        let uses = Uses { tokens, ..Uses::default() };
        Self { uses, named: Some(tenant.clone()), ..Self::default() }
    }

    /// The changes after which nothing uses it.
    pub fn removal(self, desired: &Desired) -> Vec<Change> {
        let Self { uses, named, only_candidates } = self;
        let mut specs = BTreeMap::new();
        let mut change = |tenant: &Name, change: &dyn Fn(&mut TenantSpec)| {
            if let Some(entry) = desired.tenants.get(tenant) {
                change(specs.entry(tenant.clone()).or_insert_with(|| entry.spec.clone()));
            }
        };
        if let Some(tenant) = &uses.default_of {
            change(tenant, &|spec| spec.default_pipeline = None);
        }
        let goes = |of: &&PipelineOf| !only_candidates.contains(*of);
        for PipelineOf { tenant, pipeline } in uses.pipelines.iter().filter(goes) {
            change(tenant, &|spec| {
                spec.default_pipeline.take_if(|default| default == pipeline);
            });
        }
        for tenant in &uses.granted_to {
            change(tenant, &|spec| spec.models.retain(|model| Some(model) != named.as_ref()));
        }
        let is_new = |(tenant, spec): &(Name, TenantSpec)| {
            desired.tenants.get(tenant).is_some_and(|entry| entry.spec != *spec)
        };
        let specs = specs.into_iter().filter(is_new);
        let specs = specs.map(|(tenant, spec)| Change::PutTenant { tenant, spec });
        let delete = |of: PipelineOf| {
            let stays = only_candidates.contains(&of);
            let PipelineOf { tenant, pipeline } = of;
            if !stays {
                return Some(Change::DeletePipeline { tenant, pipeline });
            }
            let spec = desired.tenants.get(&tenant)?.pipelines.get(&pipeline)?;
            let spec = spec.without_candidate().into();
            Some(Change::PutPipeline { tenant, pipeline, spec })
        };
        let pipelines = uses.pipelines.into_iter().filter_map(delete);
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

/// The pipelines of which only the candidate uses the thing.
fn only_candidates<'a>(
    tenants: impl IntoIterator<Item = (&'a Name, &'a Arc<Tenant>)>,
    uses: impl Fn(&PipelineSpec) -> bool,
) -> Vec<PipelineOf> {
    pipelines_where(tenants, |spec| {
        spec.candidate.is_some() && uses(spec) && !uses(&spec.without_candidate())
    })
}

fn pipelines_where<'a>(
    tenants: impl IntoIterator<Item = (&'a Name, &'a Arc<Tenant>)>,
    uses: impl Fn(&PipelineSpec) -> bool,
) -> Vec<PipelineOf> {
    let mut pipelines = Vec::new();
    for (tenant, entry) in tenants {
        let using = entry.pipelines.iter().filter(|(_, pipeline)| uses(pipeline));
        let of =
            |pipeline: &Name| PipelineOf { tenant: tenant.clone(), pipeline: pipeline.clone() };
        pipelines.extend(using.map(|(name, _)| of(name)));
    }
    pipelines
}
