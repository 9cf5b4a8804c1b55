//! What the roles may do: one table.
//!
//! Each resource says which permission a call of it needs, and `plane` looks it up here before the
//! resource is asked. A permission that names a tenant or a model is refused in the same words
//! whether these exist or not.
//!
//! | permission | read | deploy | admin |
//! |---|---|---|---|
//! | `Own`: see the token itself | yes | yes | yes |
//! | `See`: lists, the status, releases | yes | its tenants' part | yes |
//! | `SeeTenant` | yes | its tenants | yes |
//! | `SeeModel`: describe a model | yes | granted to, or used by, its tenants | yes |
//! | `SeeServer`: files and configurations of models | yes | no | yes |
//! | `SeeFile`: whether a file is uploaded | yes | its own files | yes |
//! | `Upload` | no | its own files | yes |
//! | `ChangeTenant`: plugins, pipelines, keys | no | its tenants | yes |
//! | `ChangeNamed`: releases of many changes, going back | no | its tenants' part | yes |
//! | `Administer`: all else | no | no | yes |

use gristmill_core::ErrorCode;
use gristmill_state::{Desired, Role};
use gristmill_transport::Problem;

use crate::caller::Caller;

/// What a call of a resource needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission<'a> {
    /// See the token of the call itself.
    Own,
    /// See something of which the resource shows the part that the caller reaches.
    See,
    /// See the tenant, or something that is the tenant's.
    SeeTenant(&'a str),
    /// See the description of the model.
    SeeModel(&'a str),
    /// See something that belongs to the server alone.
    SeeServer,
    /// See whether a file is uploaded. The resource shows only files that the caller may know.
    SeeFile,
    /// Upload or drop a file. The resource keeps the files of tokens apart.
    Upload,
    /// Change a plugin, a pipeline or a key of the tenant.
    ChangeTenant(&'a str),
    /// Make changes that only the body names. `control` checks each of them.
    ChangeNamed,
    /// Everything else.
    Administer,
}

impl Permission<'_> {
    /// Whether the caller has it.
    pub(crate) fn is_given_to(self, caller: &Caller, desired: &Desired) -> bool {
        match (self, caller.role) {
            (_, Role::Admin) | (Self::Own, _) => true,
            (
                Self::See
                | Self::SeeTenant(_)
                | Self::SeeModel(_)
                | Self::SeeServer
                | Self::SeeFile,
                Role::Read,
            ) => true,
            (Self::See | Self::SeeFile | Self::Upload | Self::ChangeNamed, Role::Deploy) => true,
            (Self::SeeTenant(tenant) | Self::ChangeTenant(tenant), Role::Deploy) => {
                caller.tenants.contains(tenant)
            }
            (Self::SeeModel(model), Role::Deploy) => caller.token_scope().has_model(desired, model),
            (
                Self::Upload | Self::ChangeTenant(_) | Self::ChangeNamed | Self::Administer,
                Role::Read,
            )
            | (Self::SeeServer | Self::Administer, Role::Deploy) => false,
        }
    }

    /// Check that the caller has it.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn check(self, caller: &Caller, desired: &Desired) -> Result<(), Problem> {
        if self.is_given_to(caller, desired) {
            return Ok(());
        }
        let detail = format!(
            "the token {:?} with the role {} does not allow this: GET /admin/v1/self says what it \
             is for",
            caller.name(),
            caller.role.as_str()
        );
        Err(Problem::new(ErrorCode::Forbidden, detail))
    }
}
