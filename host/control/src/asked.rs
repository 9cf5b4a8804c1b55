//! A change that a request asks for.

use gristmill_core::Name;

use crate::fault::Subject;
use crate::release::change::Change;
use crate::release::tenant::TenantDocument;

/// A change that a request asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum AskedChange {
    /// A change that is known in full.
    Known(Change),
    /// Put a tenant. The keys that it keeps are those at the time of the release.
    PutTenant {
        /// The tenant.
        tenant: Name,
        /// What it shall be.
        document: TenantDocument,
    },
}

impl From<Change> for AskedChange {
    fn from(change: Change) -> Self {
        Self::Known(change)
    }
}

impl AskedChange {
    /// The thing that it makes, changes or deletes.
    pub(crate) fn target(&self) -> Subject {
        match self {
            Self::Known(change) => change.target(),
            Self::PutTenant { tenant, .. } => Subject::Tenant(tenant.clone()),
        }
    }
}
