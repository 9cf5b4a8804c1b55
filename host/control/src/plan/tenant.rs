//! Finding the faults of a tenant document, and the names of its keys. Pure.

use std::collections::BTreeMap;

use gristmill_core::{Digest, Name};

use crate::desired::Desired;
use crate::error::ControlError;
use crate::fault::Subject;
use crate::plan::names::list;
use crate::release::tenant::{GivenKey, TenantDocument, TenantSpec, numbered_name};

/// The tenant that `document` describes. `faults` are those of its text.
///
/// # Errors
/// All faults: those of the text, of its keys, and its conflicts with `desired`.
pub(crate) fn tenant_spec(
    desired: &Desired,
    tenant: &Name,
    document: &TenantDocument,
    mut faults: Vec<String>,
) -> Result<TenantSpec, ControlError> {
    let keys = named_keys(desired, tenant, &document.api_keys, &mut faults);
    let TenantDocument { open, default_pipeline, weight, models, .. } = document.clone();
    let spec = TenantSpec { open, keys, default_pipeline, weight, models };
    if faults.is_empty() {
        return Ok(spec);
    }
    faults.extend(tenant_faults(desired, tenant, &spec));
    Err(ControlError::refused(Subject::Tenant(tenant.clone()), &faults))
}

/// The conflicts of this tenant with `desired`.
pub(crate) fn tenant_faults(desired: &Desired, tenant: &Name, spec: &TenantSpec) -> Vec<String> {
    let mut faults = Vec::new();
    for (key, digest) in &spec.keys {
        if let Some(other) = other_owner(desired, tenant, digest) {
            let (key, other) = (key.as_str(), other.as_str());
            faults.push(format!("api_keys: {key:?} is a key of tenant {other:?}, too"));
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

/// Another tenant with this key.
pub(crate) fn other_owner<'a>(
    desired: &'a Desired,
    tenant: &Name,
    digest: &Digest,
) -> Option<&'a Name> {
    let mut others = desired.tenants.iter().filter(|(name, _)| *name != tenant);
    let owner = others.find(|(_, other)| other.spec.keys.values().any(|known| known == digest));
    owner.map(|(name, _)| name)
}

/// The given keys by their names. Faulty ones are left out, and named in `faults` by their places.
fn named_keys(
    desired: &Desired,
    tenant: &Name,
    given: &[GivenKey],
    faults: &mut Vec<String>,
) -> BTreeMap<Name, Digest> {
    let none = BTreeMap::new();
    let own = desired.tenants.get(tenant).map_or(&none, |tenant| &tenant.spec.keys);
    let mut keys = BTreeMap::<Name, Digest>::new();
    let mut unnamed = Vec::new();
    for (index, key) in given.iter().enumerate() {
        let (GivenKey::Unnamed(digest) | GivenKey::Named(_, digest)) = key else { continue };
        if let Some(other) = other_owner(desired, tenant, digest) {
            faults.push(format!("api_keys[{index}] is a key of tenant {:?}, too", other.as_str()));
        } else if let GivenKey::Unnamed(digest) = key {
            unnamed.push(*digest);
        }
    }
    for (index, key) in given.iter().enumerate() {
        let (name, digest) = match key {
            GivenKey::Unnamed(_) => continue,
            GivenKey::Named(name, digest) => {
                let mut same = keys.iter().filter(|(_, known)| *known == digest);
                if let Some((other, _)) = same.next() {
                    faults.push(format!("api_keys[{index}] is the key {:?}, too", other.as_str()));
                    continue;
                }
                (name, *digest)
            }
            GivenKey::Kept(name) => match own.get(name) {
                Some(digest) => (name, *digest),
                None => {
                    let name = name.as_str();
                    faults.push(format!(
                        "api_keys[{index}]: the tenant has no key {name:?} that could stay: \
                         give its \"key\", too"
                    ));
                    continue;
                }
            },
        };
        if keys.insert(name.clone(), digest).is_some() {
            faults.push(format!("api_keys[{index}].name is {:?}, for a second key", name.as_str()));
        }
    }
    // Keys that stay keep their names, so that these are not given to new ones.
    let (known, new): (Vec<_>, Vec<_>) =
        unnamed.into_iter().partition(|key| own.values().any(|known| known == key));
    for digest in known.into_iter().chain(new) {
        if keys.values().any(|given| *given == digest) {
            continue;
        }
        let mut names = own.iter().filter(|(_, known)| **known == digest).map(|(name, _)| name);
        let kept = names.find(|name| !keys.contains_key(*name)).cloned();
        let free = || (1..).filter_map(numbered_name).find(|name| !keys.contains_key(name));
        let named = kept.or_else(free).map(|name| (name, digest));
        keys.extend(named);
    }
    keys
}
