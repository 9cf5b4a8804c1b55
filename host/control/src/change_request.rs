//! The request for a release: the changes that are asked for, and how they are made.

use gristmill_core::Name;
use gristmill_state::{
    AskedChange, ChangeOptions, Desired, Plan, Scope, StateError, Subject, TokenScope,
    check_signer, check_size, plan, restore,
};

use crate::error::ControlError;
use crate::uploads::Upload;

/// All changes of a request.
pub(crate) enum AskedChanges {
    /// One. Its subject's conditions are checked, and it gets a tag.
    One(Box<AskedChange>),
    /// A list. An error names the place of the change that is refused.
    List(Vec<AskedChange>),
    /// Those that bring back the state after an earlier release.
    Restore { then: Box<Desired>, scope: Scope, number: u64 },
}

/// The request for a release.
pub(crate) struct ChangeRequest {
    pub(crate) asked: AskedChanges,
    pub(crate) options: ChangeOptions,
    /// The release that must serve when this one is made.
    pub(crate) expected_release: Option<u64>,
    /// Whether the users of a thing may be deleted with it.
    pub(crate) cascade: bool,
    /// Whether a model may be replaced by one that does not fit its users.
    pub(crate) force: bool,
    /// Whether the release is only planned, loaded and checked, and then dropped.
    pub(crate) is_dry_run: bool,
    /// Whether samples are run for their answers, which are not compared. Only of a dry run.
    pub(crate) shows_answers: bool,
    /// Kept until the release is made, even if the client leaves.
    pub(crate) _uploads: Vec<Upload>,
}

impl ChangeRequest {
    /// These changes, without `cascade` and `force`.
    pub(crate) fn of(asked: AskedChanges, options: ChangeOptions) -> Self {
        let (expected_release, _uploads) = (None, Vec::new());
        let (cascade, force, is_dry_run, shows_answers) = (false, false, false, false);
        Self {
            asked,
            options,
            expected_release,
            cascade,
            force,
            is_dry_run,
            shows_answers,
            _uploads,
        }
    }

    /// One change, without `cascade` and `force`.
    pub(crate) fn one(change: impl Into<AskedChange>, options: ChangeOptions) -> Self {
        Self::of(AskedChanges::One(Box::new(change.into())), options)
    }

    /// The subject of its only change.
    pub(crate) fn subject(&self) -> Option<Subject> {
        match &self.asked {
            AskedChanges::One(change) => Some(change.target()),
            AskedChanges::List(_) | AskedChanges::Restore { .. } => None,
        }
    }

    /// Plan release `number`, which makes the changes to `desired`.
    ///
    /// # Errors
    /// A change is refused.
    pub(crate) fn plan(&self, desired: &Desired, number: u64) -> Result<Plan, ControlError> {
        let token_scope = &self.options.token_scope;
        self.asked.check(token_scope)?;
        let plan = self.asked.plan(desired, number, self.cascade)?;
        self.asked.check_signers(&plan.desired)?;
        // A caller who may change the whole server may also bring back all of it.
        if matches!(self.asked, AskedChanges::Restore { .. }) && !token_scope.is_server() {
            check_size(&plan.changes)?;
        }
        token_scope.check_planned(desired, &plan.changes)?;
        token_scope.check_pins(desired, &plan.desired)?;
        Ok(plan)
    }

    /// The pipeline whose candidate takes its place, and the tenant.
    pub(crate) fn promoted(&self) -> Option<(&Name, &Name)> {
        match &self.asked {
            AskedChanges::One(change) => match &**change {
                AskedChange::Promote { tenant, pipeline } => Some((tenant, pipeline)),
                _ => None,
            },
            AskedChanges::List(_) | AskedChanges::Restore { .. } => None,
        }
    }

    /// The pipelines whose candidates are taken away only if they are certain ones, with their
    /// tenants.
    pub(crate) fn aborted(&self) -> impl Iterator<Item = (&Name, &Name)> {
        let changes = match &self.asked {
            AskedChanges::List(changes) => &changes[..],
            AskedChanges::One(_) | AskedChanges::Restore { .. } => &[],
        };
        changes.iter().filter_map(|change| match change {
            AskedChange::Abort { tenant, pipeline, only: Some(_) } => Some((tenant, pipeline)),
            _ => None,
        })
    }

    /// Whether it only takes candidates away.
    pub(crate) fn is_abort(&self) -> bool {
        let is_abort = |change: &AskedChange| matches!(change, AskedChange::Abort { .. });
        match &self.asked {
            AskedChanges::One(change) => is_abort(change),
            AskedChanges::List(changes) => changes.iter().all(is_abort),
            AskedChanges::Restore { .. } => false,
        }
    }

    /// Whether it asks for a list of changes.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.asked, AskedChanges::List(_))
    }

    /// Check the release that must serve.
    ///
    /// # Errors
    /// [`ControlError::Moved`]
    pub(crate) fn check_expected(&self, serves: u64) -> Result<(), ControlError> {
        match self.expected_release {
            Some(expected) if expected != serves => Err(ControlError::Moved { serves, expected }),
            _ => Ok(()),
        }
    }
}

impl AskedChanges {
    /// Check that the author may ask for it.
    ///
    /// # Errors
    /// [`StateError::OutOfScope`]
    pub(crate) fn check(&self, token_scope: &TokenScope) -> Result<(), ControlError> {
        match self {
            Self::One(change) => Ok(token_scope.check_asked(change)?),
            Self::List(changes) => changes.iter().enumerate().try_for_each(|(index, change)| {
                let checked = token_scope.check_asked(change);
                checked.map_err(|error| at(index, error))
            }),
            Self::Restore { scope, .. } => Ok(token_scope.check_scope(scope)?),
        }
    }

    /// Check the signatures of the plugins that are put. What is brought back needs none.
    fn check_signers(&self, after: &Desired) -> Result<(), ControlError> {
        match self {
            Self::One(change) => Ok(check_signer(after, change)?),
            Self::List(changes) => changes.iter().enumerate().try_for_each(|(index, change)| {
                check_signer(after, change).map_err(|error| at(index, error))
            }),
            Self::Restore { .. } => Ok(()),
        }
    }

    fn plan(&self, desired: &Desired, number: u64, cascade: bool) -> Result<Plan, ControlError> {
        let planned = match self {
            Self::One(change) => plan(desired, number, std::slice::from_ref(&**change), cascade),
            Self::List(changes) => {
                let planned = plan(desired, number, changes, cascade);
                return planned.map_err(|refused| at(refused.index, *refused.error));
            }
            Self::Restore { then, scope, number: earlier } => {
                let changes = restore(desired, then, scope, *earlier)?;
                let changes: Vec<_> = changes.into_iter().map(AskedChange::Known).collect();
                plan(desired, number, &changes, false)
            }
        };
        Ok(planned.map_err(|refused| *refused.error)?)
    }
}

/// The error for the refused change at a place of a list.
fn at(index: usize, error: StateError) -> ControlError {
    ControlError::At { index, source: Box::new(error.into()) }
}
