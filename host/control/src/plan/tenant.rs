//! Finding the faults of a tenant document. Pure.

use gristmill_core::Name;

use crate::desired::Desired;
use crate::plan::names::list;
use crate::release::tenant::TenantSpec;

/// The conflicts of this tenant with `desired`.
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
