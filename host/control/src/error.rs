//! What can go wrong with a change.

use std::fmt::Display;

use gristmill_core::{ErrorCode, Name};
use gristmill_store::StoreError;

use crate::fault::{Fault, Subject};
use crate::loader::PluginFault;

#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("no {what} {name:?}")]
    NotFound { what: &'static str, name: String },
    /// Every fault at once.
    #[error("{}", joined(.0))]
    Invalid(Vec<String>),
    /// What would be served no longer, or not at all.
    #[error("{}", joined(.0))]
    Refused(Vec<Fault>),
    /// Something else uses what would be deleted.
    #[error("{0}")]
    InUse(String),
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
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("release {number} in the log cannot be used: {why}")]
    Log { number: u64, why: String },
    #[error("{0}")]
    LogGap(String),
    /// It ends before the release that it ended with.
    #[error("{0}")]
    LogEnd(String),
    /// The store failed when it was asked to keep the release, which may be in the log all the same.
    #[error(
        "the server's storage failed while release {number} was written: the release may be kept or \
         not, and the status says which one serves"
    )]
    Unconfirmed { number: u64, source: StoreError },
    #[error("{0}")]
    Host(String),
    /// Nobody's fault, and over soon.
    #[error("{0}")]
    Unavailable(String),
}

fn joined(faults: &[impl Display]) -> String {
    let texts: Vec<_> = faults.iter().map(ToString::to_string).collect();
    texts.join("; ")
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
            Self::Invalid(_) => ErrorCode::Unprocessable,
            Self::Refused(faults) => match faults.first().map(|fault| &fault.subject) {
                Some(Subject::Plugin { .. }) => ErrorCode::InvalidPlugin,
                Some(Subject::Model(_)) => ErrorCode::InvalidModel,
                _ => ErrorCode::Unprocessable,
            },
            Self::InUse(_) => ErrorCode::Conflict,
            Self::Plugin { .. } => ErrorCode::InvalidPlugin,
            Self::Model { .. } => ErrorCode::InvalidModel,
            Self::Misfit { .. } => ErrorCode::Conflict,
            Self::Store(error) => error.code(),
            Self::Unconfirmed { source, .. } => source.code(),
            Self::Log { .. } | Self::LogGap(_) | Self::LogEnd(_) | Self::Host(_) => {
                ErrorCode::Internal
            }
            Self::Unavailable(_) => ErrorCode::Unavailable,
        }
    }
}
