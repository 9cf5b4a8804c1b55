//! The part of the server that the author of a request may see and change. Pure.
//!
//! Invariants:
//! - no release of an author whose reach is a few tenants changes anything else than plugins,
//!   pipelines and keys of these, however the request is made;
//! - what is beyond the reach is refused in the same words whether it exists or not.

use std::collections::BTreeSet;

use gristmill_core::{Digest, Name};

use crate::asked::AskedChange;
use crate::desired::{Desired, Tenant};
use crate::error::ControlError;
use crate::fault::Subject;
use crate::plan::restore::Scope;
use crate::release::change::{Change, Release};
use crate::release::document::Faults;
use crate::release::tenant::TenantSpec;
use crate::release::token::{Role, TokenSpec};

/// The part of the server that the author of a request may see and change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
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

impl Reach {
    /// That of the token of this name.
    pub fn of(token: &Name, spec: &TokenSpec) -> Self {
        match spec.role {
            Role::Deploy => Self::Tenants { token: token.clone(), tenants: spec.tenants.clone() },
            Role::Read | Role::Admin => Self::Server,
        }
    }

    /// Whether the thing may be named to the author.
    pub(crate) fn has_subject(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Tenant(tenant)
            | Subject::Plugin { tenant, .. }
            | Subject::Pipeline { tenant, .. }
            | Subject::Key { tenant, .. } => self.has_tenant(tenant.as_str()),
            Subject::Model(_) | Subject::ModelConfig(_) | Subject::Token(_) => self.is_server(),
        }
    }

    /// The token, if its reach is a few tenants.
    pub(crate) fn token(&self) -> Option<&Name> {
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
                let mut own = tenants.iter().filter_map(|tenant| desired.tenants.get(tenant));
                own.any(|own| uses_model(own, model))
            }
        }
    }

    /// Check a change that is asked for.
    ///
    /// # Errors
    /// [`ControlError::OutOfReach`]
    pub(crate) fn check_asked(&self, change: &AskedChange) -> Result<(), ControlError> {
        let Self::Tenants { tenants, .. } = self else { return Ok(()) };
        let tenant = match change {
            AskedChange::Known(
                Change::PutPlugin { tenant, .. }
                | Change::DeletePlugin { tenant, .. }
                | Change::PutPipeline { tenant, .. }
                | Change::DeletePipeline { tenant, .. }
                | Change::DeleteKey { tenant, .. },
            )
            | AskedChange::PutKey { tenant, .. } => Some(tenant),
            _ => None,
        };
        match tenant.is_some_and(|tenant| tenants.contains(tenant)) {
            true => Ok(()),
            false => Err(ControlError::OutOfReach),
        }
    }

    /// Check the scope of a rollback.
    ///
    /// # Errors
    /// [`ControlError::OutOfReach`]
    pub(crate) fn check_scope(&self, scope: &Scope) -> Result<(), ControlError> {
        match (self, scope) {
            (Self::Server, _) => Ok(()),
            (Self::Tenants { tenants, .. }, Scope::PartsOf(tenant)) if tenants.contains(tenant) => {
                Ok(())
            }
            (Self::Tenants { .. }, _) => Err(ControlError::OutOfReach),
        }
    }

    /// Check the changes of a release that is planned on the state `before`: those that were asked
    /// for, and those that follow from them.
    ///
    /// # Errors
    /// [`ControlError::OutOfReach`]; or a pipeline names a model that its tenant cannot use.
    pub(crate) fn check_planned(
        &self,
        before: &Desired,
        changes: &[Change],
    ) -> Result<(), ControlError> {
        let Self::Tenants { tenants, .. } = self else { return Ok(()) };
        for change in changes {
            let tenant = change.tenant().filter(|tenant| tenants.contains(*tenant));
            let known = tenant.and_then(|tenant| before.tenants.get(tenant));
            let (Some(tenant), Some(own)) = (tenant, known) else {
                return Err(ControlError::OutOfReach);
            };
            match change {
                Change::PutTenant { spec, .. } if !keeps_terms(&own.spec, spec) => {
                    return Err(ControlError::OutOfReach);
                }
                Change::DeleteTenant { .. } => return Err(ControlError::OutOfReach),
                Change::PutPipeline { pipeline, spec, .. }
                    if !uses_model(own, spec.model.as_str()) =>
                {
                    let (tenant, pipeline) = (tenant.clone(), pipeline.clone());
                    let subject = Subject::Pipeline { tenant, pipeline };
                    let mut faults = Faults::default();
                    faults.add("model", format!("model: no model {:?}", spec.model.as_str()));
                    return Err(ControlError::Document { subject, faults });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a plugin of one of the tenants has this file.
    pub(crate) fn has_file(&self, desired: &Desired, digest: Digest) -> bool {
        match self {
            Self::Server => true,
            Self::Tenants { tenants, .. } => {
                let own = tenants.iter().filter_map(|tenant| desired.tenants.get(tenant));
                own.flat_map(|own| own.plugins.values()).any(|plugin| plugin.digest == digest)
            }
        }
    }

    /// The part of a release that can be seen: none if it changes nothing of the tenants. The
    /// message, which may speak of the other changes, is only in a release without others. A tenant
    /// that had the same name before is another one.
    pub(crate) fn part_of(&self, release: Release, desired: &Desired) -> Option<Release> {
        if self.is_server() {
            return Some(release);
        }
        let Release { number, published_at_ms, previous, mut note, changes } = release;
        let is_own = |change: &Change| {
            change.tenant().filter(|tenant| self.has_tenant(tenant.as_str())).is_some_and(
                |tenant| desired.tenants.get(tenant).is_some_and(|own| own.since <= number),
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

/// Whether a tenant has this model: it is granted, or a pipeline uses it.
fn uses_model(own: &Tenant, model: &str) -> bool {
    own.spec.models.contains(model)
        || own.pipelines.values().any(|pipeline| pipeline.model.as_str() == model)
}

/// Whether nothing but the default pipeline differs.
fn keeps_terms(before: &TenantSpec, after: &TenantSpec) -> bool {
    let default_pipeline = before.default_pipeline.clone();
    TenantSpec { default_pipeline, ..after.clone() } == *before
}

#[cfg(test)]
mod tests;
