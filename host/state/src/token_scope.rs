//! The part of the server that the author of a request may see and change. Pure.
//!
//! Invariants:
//! - no release of an author whose scope is a few tenants changes anything else than plugins,
//!   assets, pipelines and keys of these, however the request is made;
//! - what is beyond the scope is refused in the same words whether it exists or not.

use std::collections::{BTreeMap, BTreeSet};

use gristmill_core::{Digest, Name};

use crate::asked::AskedChange;
use crate::desired::{Desired, Tenant, TenantFile};
use crate::error::StateError;
use crate::fault::Subject;
use crate::plan::restore::Scope;
use crate::release::candidate::CandidateSpec;
use crate::release::change::{Change, Release};
use crate::release::document::Faults;
use crate::release::named_version::NamedVersion;
use crate::release::tenant::TenantSpec;
use crate::release::token::{Role, TokenSpec};

/// The versions of one model that the pipelines of a tenant may name, if they are put with a deploy
/// token.
const PINS_MAX: usize = 2;

/// The part of the server that the author of a request may see and change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TokenScope {
    /// All of it.
    #[default]
    Server,
    /// What a token with the role `deploy` is for.
    Tenants {
        /// The token's name.
        token: Name,
        /// Its tenants.
        tenants: BTreeSet<Name>,
    },
}

impl TokenScope {
    /// That of the token of this name.
    pub fn of(token: &Name, spec: &TokenSpec) -> Self {
        match spec.role {
            Role::Deploy => Self::Tenants { token: token.clone(), tenants: spec.tenants.clone() },
            Role::Read | Role::Admin => Self::Server,
        }
    }

    /// Whether the thing may be named to the author.
    pub fn has_subject(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Tenant(tenant)
            | Subject::Plugin { tenant, .. }
            | Subject::Asset { tenant, .. }
            | Subject::Pipeline { tenant, .. }
            | Subject::Candidate { tenant, .. }
            | Subject::Key { tenant, .. } => self.has_tenant(tenant.as_str()),
            Subject::Model(_) | Subject::ModelConfig(_) | Subject::Token(_) => self.is_server(),
        }
    }

    /// The token, if its scope is a few tenants.
    pub fn token(&self) -> Option<&Name> {
        match self {
            Self::Server => None,
            Self::Tenants { token, .. } => Some(token),
        }
    }

    /// Whether it is all of the server.
    pub fn is_server(&self) -> bool {
        *self == Self::Server
    }

    /// Whether the tenant of this name, which may not exist, is part of it.
    pub fn has_tenant(&self, tenant: &str) -> bool {
        match self {
            Self::Server => true,
            Self::Tenants { tenants, .. } => tenants.contains(tenant),
        }
    }

    /// Whether the model of this name, which may not exist, can be seen and used: it is granted to
    /// one of the tenants, or one of their pipelines uses it.
    pub fn has_model(&self, desired: &Desired, model: &str) -> bool {
        match self {
            Self::Server => true,
            Self::Tenants { tenants, .. } => {
                let mut entries = tenants.iter().filter_map(|tenant| desired.tenants.get(tenant));
                entries.any(|entry| uses_model(entry, model))
            }
        }
    }

    /// Check a change that is asked for.
    ///
    /// # Errors
    /// [`StateError::OutOfScope`]
    pub fn check_asked(&self, change: &AskedChange) -> Result<(), StateError> {
        let Self::Tenants { tenants, .. } = self else { return Ok(()) };
        let tenant = match change {
            AskedChange::Known(
                Change::PutPlugin { tenant, .. }
                | Change::DeletePlugin { tenant, .. }
                | Change::PutAsset { tenant, .. }
                | Change::DeleteAsset { tenant, .. }
                | Change::PutPipeline { tenant, .. }
                | Change::DeletePipeline { tenant, .. }
                | Change::DeleteKey { tenant, .. },
            )
            | AskedChange::PutKey { tenant, .. }
            | AskedChange::PutPlugin { tenant, .. }
            | AskedChange::Promote { tenant, .. }
            | AskedChange::Abort { tenant, .. } => Some(tenant),
            _ => None,
        };
        match tenant.is_some_and(|tenant| tenants.contains(tenant)) {
            true => Ok(()),
            false => Err(StateError::OutOfScope),
        }
    }

    /// Check the scope of a rollback.
    ///
    /// # Errors
    /// [`StateError::OutOfScope`]
    pub fn check_scope(&self, scope: &Scope) -> Result<(), StateError> {
        match (self, scope) {
            (Self::Server, _) => Ok(()),
            (Self::Tenants { tenants, .. }, Scope::PartsOf(tenant)) if tenants.contains(tenant) => {
                Ok(())
            }
            (Self::Tenants { .. }, _) => Err(StateError::OutOfScope),
        }
    }

    /// Check the changes of a release that is planned on the state `before`: those that were asked
    /// for, and those that follow from them.
    ///
    /// # Errors
    /// [`StateError::OutOfScope`]; or a pipeline names a model that its tenant cannot use.
    pub fn check_planned(&self, before: &Desired, changes: &[Change]) -> Result<(), StateError> {
        let Self::Tenants { tenants, .. } = self else { return Ok(()) };
        for change in changes {
            let tenant = change.tenant().filter(|tenant| tenants.contains(*tenant));
            let entry = tenant.and_then(|tenant| before.tenants.get(tenant));
            let (Some(tenant), Some(entry)) = (tenant, entry) else {
                return Err(StateError::OutOfScope);
            };
            match change {
                Change::PutTenant { spec, .. } if !keeps_settings(&entry.spec, spec) => {
                    return Err(StateError::OutOfScope);
                }
                Change::DeleteTenant { .. } => return Err(StateError::OutOfScope),
                Change::PutPipeline { pipeline, spec, .. } => {
                    let candidate = spec.candidate.as_deref().map(CandidateSpec::parts);
                    let parts = [Some(spec.program.parts()), candidate];
                    let mut named = parts.iter().flatten().flat_map(|parts| parts.keyed_models());
                    let foreign = named.find(|(_, model)| !uses_model(entry, model.name.as_str()));
                    let Some((key, model)) = foreign else { continue };
                    let mut faults = Faults::default();
                    let text = format!("{key}: no model {:?}", model.name.as_str());
                    key.add_fault(&mut faults, text);
                    let (tenant, pipeline) = (tenant.clone(), pipeline.clone());
                    let subject = Subject::Pipeline { tenant, pipeline };
                    return Err(StateError::Document { subject, faults });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Check the versions of models that the pipelines of the tenants name after a release. Each
    /// stays loaded for them, in the server's memory.
    ///
    /// # Errors
    /// They name more versions of a model than [`PINS_MAX`], and more than before.
    pub fn check_pins(&self, before: &Desired, after: &Desired) -> Result<(), StateError> {
        let Self::Tenants { tenants, .. } = self else { return Ok(()) };
        for tenant in tenants {
            let pins = |state: &Desired| state.tenants.get(tenant).map(|entry| pinned(entry));
            let (had, has) = (pins(before).unwrap_or_default(), pins(after).unwrap_or_default());
            for (model, versions) in has {
                let count_before = had.get(&model).map_or(0, BTreeSet::len);
                if versions.len() > PINS_MAX.max(count_before) {
                    let fault = format!(
                        "pipelines name {} versions of model {:?}: with this token a tenant's may \
                         name {PINS_MAX}",
                        versions.len(),
                        model.as_str()
                    );
                    let subject = Subject::Tenant(tenant.clone());
                    return Err(StateError::document(subject, "", fault));
                }
            }
        }
        Ok(())
    }

    /// Whether a version of a plugin or an asset of one of the tenants has this file.
    pub fn has_file(&self, desired: &Desired, digest: Digest) -> bool {
        match self {
            Self::Server => true,
            Self::Tenants { tenants, .. } => {
                let entries = tenants.iter().filter_map(|tenant| desired.tenants.get(tenant));
                let files = entries.flat_map(|entry| entry.files());
                files.flat_map(TenantFile::versions).any(|(_, file)| file == digest)
            }
        }
    }

    /// The part of a release that can be seen: none if it changes nothing of the tenants. The
    /// message, which may speak of the other changes, is only in a release without others. A tenant
    /// that had the same name before is another one.
    pub fn part_of(&self, release: Release, desired: &Desired) -> Option<Release> {
        if self.is_server() {
            return Some(release);
        }
        let Release { number, published_at_ms, previous, mut note, changes } = release;
        let is_own = |change: &Change| {
            change.tenant().filter(|tenant| self.has_tenant(tenant.as_str())).is_some_and(
                |tenant| desired.tenants.get(tenant).is_some_and(|entry| entry.since <= number),
            )
        };
        let all = changes.len();
        let changes: Vec<_> = changes.into_iter().filter(is_own).collect();
        if changes.len() < all {
            note.message = None;
        }
        (!changes.is_empty()).then_some(Release {
            number,
            published_at_ms,
            previous,
            note,
            changes,
        })
    }
}

/// The versions of models that a tenant's pipelines name.
fn pinned(tenant: &Tenant) -> BTreeMap<Name, BTreeSet<u64>> {
    let mut pinned = BTreeMap::<_, BTreeSet<_>>::new();
    for NamedVersion { name, version } in
        tenant.pipelines.values().flat_map(|pipeline| pipeline.models())
    {
        if let Some(version) = version {
            pinned.entry(name.clone()).or_default().insert(*version);
        }
    }
    pinned
}

/// Whether a tenant has this model: it is granted, or a pipeline uses it.
fn uses_model(tenant: &Tenant, model: &str) -> bool {
    tenant.spec.models.contains(model)
        || tenant
            .pipelines
            .values()
            .flat_map(|pipeline| pipeline.models())
            .any(|named| named.name.as_str() == model)
}

/// Whether nothing but the default pipeline differs.
fn keeps_settings(before: &TenantSpec, after: &TenantSpec) -> bool {
    let default_pipeline = before.default_pipeline.clone();
    TenantSpec { default_pipeline, ..after.clone() } == *before
}

#[cfg(test)]
mod tests;
