//! What can go wrong with a change.

use gristmill_core::{ErrorCode, Name};
use gristmill_store::StoreError;

use crate::loader::PluginFault;

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
    /// Nobody's fault, and over soon.
    #[error("{0}")]
    Unavailable(String),
}

impl ControlError {
    pub(crate) fn plugin(name: &Name, fault: PluginFault) -> Self {
        let PluginFault { why, code } = fault;
        match code {
            ErrorCode::InvalidPlugin => Self::Plugin { name: name.to_string(), why },
            ErrorCode::Unavailable => {
                Self::Unavailable(format!("plugin {:?}: {why}", name.as_str()))
            }
            _ => Self::Host(format!("plugin {:?}: {why}", name.as_str())),
        }
    }

    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } => ErrorCode::NotFound,
            Self::Invalid(_) | Self::Tenant { .. } | Self::Pipeline { .. } => {
                ErrorCode::Unprocessable
            }
            Self::Plugin { .. } => ErrorCode::InvalidPlugin,
            Self::Model { .. } => ErrorCode::InvalidModel,
            Self::Store(error) => error.code(),
            Self::Log { .. } | Self::Host(_) => ErrorCode::Internal,
            Self::Unavailable(_) => ErrorCode::Unavailable,
        }
    }
}
