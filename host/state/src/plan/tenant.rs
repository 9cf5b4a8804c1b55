//! Finding the faults of a tenant document. Pure.

use gristmill_core::Name;

use crate::desired::Desired;
use crate::error::StateError;
use crate::fault::Subject;
use crate::plan::given_keys::named;
use crate::plan::keys::TAKEN;
use crate::plan::names::list;
use crate::release::document::Faults;
use crate::release::tenant::{TenantDocument, TenantSpec};

/// The tenant that `document` describes.
///
/// # Errors
/// All faults of its keys, and its conflicts with `desired`.
pub fn tenant_spec(
    desired: &Desired,
    tenant: &Name,
    document: &TenantDocument,
) -> Result<TenantSpec, StateError> {
    let mut faults = Faults::default();
    let spec = spec_of(desired, tenant, document, &mut faults);
    match faults.is_empty() {
        true => Ok(spec),
        false => Err(refusal(desired, tenant, &spec, faults)),
    }
}

/// The error for a document whose text has these `faults`. It names all others, too.
pub fn tenant_refusal(
    desired: &Desired,
    tenant: &Name,
    document: &TenantDocument,
    mut faults: Faults,
) -> StateError {
    let spec = spec_of(desired, tenant, document, &mut faults);
    refusal(desired, tenant, &spec, faults)
}

/// The document's tenant. The faults of its keys are added to `faults`.
fn spec_of(
    desired: &Desired,
    tenant: &Name,
    document: &TenantDocument,
    faults: &mut Faults,
) -> TenantSpec {
    let keys = named(desired, tenant, &document.api_keys, faults);
    let TenantDocument {
        open,
        api_keys: _,
        default_pipeline,
        weight,
        batch_with,
        models,
        quota,
        plugin_version_policy,
        stores,
        http,
        cors,
        redirects,
        plugin_signers,
        try_page,
    } = document.clone();
    TenantSpec {
        open,
        keys,
        default_pipeline,
        weight,
        batch_with,
        models,
        quota,
        plugin_version_policy,
        stores,
        http,
        cors,
        redirects,
        plugin_signers,
        try_page,
    }
}

fn refusal(desired: &Desired, tenant: &Name, spec: &TenantSpec, mut faults: Faults) -> StateError {
    tenant_faults(desired, tenant, spec, &mut faults);
    StateError::Document { subject: Subject::Tenant(tenant.clone()), faults }
}

/// Add the conflicts of this tenant with `desired` to `faults`.
pub fn tenant_faults(desired: &Desired, tenant: &Name, spec: &TenantSpec, faults: &mut Faults) {
    for (key, hash) in &spec.keys {
        if desired.other_owner(tenant, *hash).is_some() {
            faults.add_secret("api_keys", format!("api_keys: {:?} {TAKEN}", key.as_str()));
        }
    }
    if let Some(pipeline) = &spec.default_pipeline {
        let pipelines = desired.tenants.get(tenant).map(|tenant| &tenant.pipelines);
        if !pipelines.is_some_and(|pipelines| pipelines.contains_key(pipeline)) {
            let names = list(pipelines.into_iter().flat_map(|pipelines| pipelines.keys()));
            let has = match names.is_empty() {
                true => "it has none yet: put the pipeline first".into(),
                false => format!("it has {names}"),
            };
            let pipeline = pipeline.as_str();
            let text = format!("default_pipeline: the tenant has no pipeline {pipeline:?}; {has}");
            faults.add("default_pipeline", text);
        }
    }
    for model in spec.models.iter().filter(|model| !desired.models.contains_key(*model)) {
        faults.add("models", format!("models: no model {:?}", model.as_str()));
    }
}
