//! The changes that a request asks for.

use gristmill_core::Name;

use crate::desired::Desired;
use crate::error::ControlError;
use crate::fault::Subject;
use crate::plan::restore::{Scope, restore};
use crate::plan::{Plan, plan};
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

/// All changes of a request.
pub(crate) enum Asked {
    /// One. Its subject's conditions are checked, and it gets a tag.
    One(Box<AskedChange>),
    /// A list. An error names the place of the change that is refused.
    List(Vec<AskedChange>),
    /// Those that bring back the state after an earlier release.
    Restore { then: Box<Desired>, scope: Scope, number: u64 },
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

impl Asked {
    /// Plan release `number`, which makes the changes to `desired`.
    pub(crate) fn plan(
        &self,
        desired: &Desired,
        number: u64,
        cascade: bool,
    ) -> Result<Plan, ControlError> {
        match self {
            Self::One(change) => plan(desired, number, std::slice::from_ref(&**change), cascade)
                .map_err(|at| *at.error),
            Self::List(changes) => plan(desired, number, changes, cascade)
                .map_err(|at| ControlError::At { index: at.index, source: at.error }),
            Self::Restore { then, scope, number: earlier } => {
                let changes = restore(desired, then, scope, *earlier)?;
                let changes: Vec<_> = changes.into_iter().map(AskedChange::Known).collect();
                plan(desired, number, &changes, false).map_err(|at| *at.error)
            }
        }
    }
}
