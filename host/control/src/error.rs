//! What can go wrong with a change.

use gristmill_core::ErrorCode;
use gristmill_store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("no {what} {name:?}")]
    NotFound { what: &'static str, name: String },
    /// Every fault at once.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
    #[error("plugin {name:?}: {why}")]
    Plugin { name: String, why: String },
    #[error("model {name:?}: {why}")]
    Model { name: String, why: String },
    /// Its new version does not fit those who use it.
    #[error(
        "model {name:?} would not fit any more ({}) who uses it: {}; ?force=true replaces it all the same",
        .why.join("; "), .users.join(", ")
    )]
    Misfit { name: String, why: Vec<String>, users: Vec<String> },
    #[error("tenant {tenant:?}: {why}")]
    Tenant { tenant: String, why: String },
    #[error("tenant {tenant:?}, pipeline {pipeline:?}: {why}")]
    Pipeline { tenant: String, pipeline: String, why: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("release {number} in the log cannot be applied: {why}")]
    Log { number: u64, why: String },
    #[error("{0}")]
    Host(String),
}

impl ControlError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } => ErrorCode::NotFound,
            Self::Invalid(_) | Self::Tenant { .. } | Self::Pipeline { .. } => {
                ErrorCode::Unprocessable
            }
            Self::Plugin { .. } => ErrorCode::InvalidPlugin,
            Self::Model { .. } => ErrorCode::InvalidModel,
            Self::Misfit { .. } => ErrorCode::Conflict,
            Self::Store(error) => error.code(),
            Self::Log { .. } | Self::Host(_) => ErrorCode::Internal,
        }
    }
}
