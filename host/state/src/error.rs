//! Why a change cannot be made to a state, or a state cannot be had.
//!
//! The texts are for the clients of the admin API. Decisions are made by variants and codes, never
//! by texts.

use gristmill_core::{ClientError, DocumentFault, ErrorCode, Name};

use crate::fault::Subject;
use crate::in_use::InUse;
use crate::key_conflict::KeyConflict;
use crate::plugin_signature::SignatureFault;
use crate::release::document::Faults;
use crate::too_many_versions::TooManyVersions;

/// Why a change cannot be made to a state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The named tenant, plugin, asset, model or pipeline does not exist.
    #[error("no {what} {name:?}")]
    NotFound {
        /// The kind of thing.
        what: &'static str,
        /// The name that was asked for.
        name: String,
    },
    /// All faults of a document.
    #[error("{0}")]
    Invalid(Faults),
    /// All faults of the document of a thing, those included that only what exists shows.
    #[error("{subject}: {faults}")]
    Document {
        /// The thing.
        subject: Subject,
        /// They are at least one.
        faults: Faults,
    },
    /// Something else uses what would be deleted.
    #[error(transparent)]
    InUse(#[from] InUse),
    /// A release did not have what it should bring back.
    #[error("release {number} has no {what} {:?}", .name.as_str())]
    NotThen {
        /// The kind of thing.
        what: &'static str,
        /// Its name.
        name: Name,
        /// The number of the release.
        number: u64,
    },
    /// The author of the request may not do this, whether or not what it names exists.
    #[error(
        "the token does not allow this: it is for plugins, assets, pipelines and \
             keys of its tenants"
    )]
    OutOfScope,
    /// The token of the request was deleted, rotated or changed, or it ended, before the change.
    #[error("the token of this call was changed or has ended meanwhile: the change is not made")]
    TokenChanged,
    /// Too many things would have to change because of what they use, or too large ones.
    #[error(
        "the documents of the tenants and pipelines that would change are too large for one release: \
         make it in several"
    )]
    TooManyUsers,
    /// A key is neither put nor deleted.
    #[error(transparent)]
    Key(#[from] KeyConflict),
    /// A new model's name differs from another's only in case.
    #[error(
        "model {:?} is there, and {:?} differs from it only in case: choose another name",
        .other.as_str(), .model.as_str()
    )]
    Alike {
        /// The new model.
        model: Name,
        /// The model that is there.
        other: Name,
    },
    /// The model's new version does not fit its users.
    #[error(
        "model {name:?} would no longer fit ({}) its users: {}; ?force=true replaces it anyway",
        .why.join("; "), .users.join(", ")
    )]
    Misfit {
        /// The model.
        name: String,
        /// What does not fit.
        why: Vec<String>,
        /// The pipelines that use it.
        users: Vec<String>,
    },
    /// A plugin, an asset or a model would have too many versions loaded.
    #[error(transparent)]
    TooManyVersions(#[from] TooManyVersions),
    /// A tenant would have too many assets.
    #[error(
        "tenant {tenant:?} would have {count} assets; the limit is {limit}: delete those that no \
         pipeline names, or put several files into one"
    )]
    TooManyAssets {
        /// The tenant.
        tenant: String,
        /// The assets that it would have.
        count: usize,
        /// The most that it can have.
        limit: usize,
    },
    /// A tenant takes only plugins that one of its keys signed.
    #[error(
        "plugin {plugin:?}: tenant {tenant:?} takes only plugins that are signed (plugin_signers): \
         {why}"
    )]
    Unsigned {
        /// The tenant.
        tenant: String,
        /// The plugin.
        plugin: String,
        /// Why this one does not count as signed.
        why: SignatureFault,
    },
    /// A document cannot be written as JSON.
    #[error(transparent)]
    Encode(#[from] serde_json::Error),
}

impl StateError {
    /// The error for a name that nothing of this kind has.
    pub fn not_found(what: &'static str, name: &Name) -> Self {
        Self::NotFound { what, name: name.to_string() }
    }

    /// The error for a plugin that does not count as signed.
    pub fn unsigned(tenant: &Name, plugin: &Name, why: SignatureFault) -> Self {
        Self::Unsigned { tenant: tenant.to_string(), plugin: plugin.to_string(), why }
    }

    /// A fault of one key of a document.
    pub fn document(subject: Subject, key: &str, text: String) -> Self {
        let mut faults = Faults::default();
        faults.add(key, text);
        Self::Document { subject, faults }
    }

    /// The faults of a document, if they are the reason.
    pub fn document_faults(&self) -> Option<&Faults> {
        match self {
            Self::Invalid(faults) | Self::Document { faults, .. } => Some(faults),
            _ => None,
        }
    }
}

impl ClientError for StateError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } | Self::NotThen { .. } => ErrorCode::NotFound,
            Self::Invalid(_) | Self::Document { .. } => ErrorCode::Unprocessable,
            Self::OutOfScope | Self::TokenChanged => ErrorCode::Forbidden,
            Self::Unsigned { .. } => ErrorCode::UnsignedPlugin,
            Self::InUse(_)
            | Self::TooManyUsers
            | Self::Key(_)
            | Self::Alike { .. }
            | Self::Misfit { .. }
            | Self::TooManyVersions(_)
            | Self::TooManyAssets { .. } => ErrorCode::Conflict,
            Self::Encode(_) => ErrorCode::Internal,
        }
    }

    fn meets_secret(&self) -> bool {
        self.document_faults().is_some_and(Faults::meets_secret)
    }

    fn faults(&self) -> Vec<DocumentFault> {
        self.document_faults().map(|faults| faults.placed("")).unwrap_or_default()
    }
}
