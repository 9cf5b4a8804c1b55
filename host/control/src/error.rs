//! The errors of a change.
//!
//! The texts are for the clients of the admin API, so they name no path of the host. The sources
//! have the rest, for the log. Decisions are made by variants and codes, never by texts.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{ClientError, Digest, DocumentFault, ErrorCode, Name};
use gristmill_state::{Fault, LogError, StateError, Subject, Unmet};
use gristmill_store::{CHECKPOINT, LOG_END, StoreError};

use crate::blob_error::BlobError;
use crate::hash_key::HashKeyError;
use crate::load::error::LoadError;
use crate::pace::TooManyReleases;
use crate::release_log::end_error::LogEndError;
use crate::release_log::gaps::LogGap;
use crate::samples::failed::FailedSamples;

/// Why a change was not made, or the log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The state does not take the change.
    #[error(transparent)]
    State(#[from] StateError),
    /// Parts that would no longer be served, or not at all.
    #[error("{}", joined(.0))]
    Refused(Vec<Fault>),
    /// Samples of the pipelines that the change touches failed.
    #[error(transparent)]
    Samples(#[from] FailedSamples),
    /// A condition of the request does not hold.
    #[error(transparent)]
    Unmet(#[from] Unmet),
    /// A release was expected to follow another one than it would.
    #[error(
        "release {serves} serves, but expected_release is {expected}: read what it changed, and \
         try again"
    )]
    Moved {
        /// The number of the release that serves.
        serves: u64,
        /// The number that was expected.
        expected: u64,
    },
    /// Tokens and keys were hashed with another secret than the server has.
    #[error(transparent)]
    HashKey(#[from] HashKeyError),
    /// A candidate that passed its bounds is not put in its pipeline's place.
    #[error("the candidate is aborted, and will be taken away: {0}")]
    CandidateAborted(String),
    /// One of several changes is refused.
    #[error("changes[{index}]: {source}")]
    At {
        /// Its place among them.
        index: usize,
        /// Why.
        source: Box<ControlError>,
    },
    /// A change names a file that was not uploaded, or that was removed since.
    #[error("no uploaded file has the digest {0}: put it at /admin/v1/blobs/{0} first")]
    NoFile(Digest),
    /// An uploaded file is not kept.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A plugin cannot be loaded.
    #[error("plugin {name:?}: {source}")]
    Plugin {
        /// The plugin.
        name: String,
        /// Why not.
        source: Arc<LoadError>,
    },
    /// A model cannot be loaded.
    #[error("model {name:?}: {source}")]
    Model {
        /// The model.
        name: String,
        /// Why not.
        source: Arc<LoadError>,
    },
    /// An asset cannot be read.
    #[error("asset {name:?}: {source}")]
    Asset {
        /// The asset.
        name: String,
        /// Why not.
        source: Arc<LoadError>,
    },
    /// An asset is too large.
    #[error(
        "asset {asset:?} has {bytes} bytes; the limit is {limit} (asset_bytes_max): split the file, \
         or raise the setting"
    )]
    AssetTooLarge {
        /// The asset.
        asset: String,
        /// Its bytes.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The files that a tenant's plugins open would take too much memory.
    #[error(
        "the assets of tenant {tenant:?}, with the files of its plugins, would be {wanted} bytes; the \
         limit is {limit} (tenant_asset_bytes_max): delete those that it no longer needs, or raise the \
         setting"
    )]
    TooManyAssetBytes {
        /// The tenant.
        tenant: String,
        /// The bytes with the change.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// The files that a tenant's plugins open, with those that its requests still read, would take
    /// too much memory.
    #[error("tenant {tenant:?}: {source}")]
    AssetsHeld {
        /// The tenant.
        tenant: String,
        /// How much.
        source: Arc<LoadError>,
    },
    /// The tenant's plugins would have too much compiled code on disk.
    #[error(
        "plugin {plugin:?}: the compiled plugins of tenant {tenant:?} would be {wanted} bytes; the \
         limit is {limit} (tenant_compiled_bytes_max): delete plugins that it no longer needs, or \
         raise the setting"
    )]
    TooMuchCompiled {
        /// The tenant.
        tenant: String,
        /// The plugin that was put.
        plugin: String,
        /// The bytes of the tenant's plugins with it.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A release in the log cannot be used.
    #[error("release {number} in the log cannot be used: {source}{}", cure(*.number, .source))]
    Log {
        /// The number of the release.
        number: u64,
        /// Why not.
        source: LogError,
    },
    /// The release is no longer in the log.
    #[error("release {number} is no longer kept: the first one that is kept is {first}")]
    NotKept {
        /// The number of the release.
        number: u64,
        /// The first number that is kept.
        first: u64,
    },
    /// The checkpoint of the log cannot be used.
    #[error(
        "{CHECKPOINT}, which has the state before the release log begins, cannot be used: {0}; put \
         the file back as it was, from a copy of the data directory"
    )]
    Checkpoint(#[source] LogError),
    /// The log has gaps.
    #[error(transparent)]
    LogGap(#[from] LogGap),
    /// The log lacks the release that it ended with, or has another one in its place.
    #[error(transparent)]
    LogEnd(#[from] LogEndError),
    /// The store failed when it was asked to keep the release, which may be in the log all the
    /// same.
    #[error(
        "the server's storage failed while release {number} was written: it is not known whether \
         the release was kept; the status says which release serves"
    )]
    Unconfirmed {
        /// The number of the release.
        number: u64,
        /// The store's error.
        source: StoreError,
    },
    /// The author's token has made too many releases of late.
    #[error(transparent)]
    TooManyReleases(#[from] TooManyReleases),
    /// A part of the server panicked.
    #[error("the server failed while it {doing}: see its log")]
    Internal {
        /// What it did.
        doing: &'static str,
        /// For the log.
        cause: String,
    },
    /// Several changes failed for the same reason.
    #[error("{0}")]
    Common(Arc<ControlError>),
    /// Other changes were made first, each time. The client can try again.
    #[error("other changes keep replacing plugins or models that this change needs: try again")]
    Overtaken,
}

/// What an operator can do about a release that cannot be used.
fn cure(number: u64, error: &LogError) -> String {
    if let LogError::Newer { .. } = error {
        // Its text has the cure.
        return String::new();
    }
    let before = number.saturating_sub(1);
    format!(
        "; put the files of the release log back as they were, or move this file and those after \
         it out of the log's folder, and {LOG_END} beside it away, to serve the state of release \
         {before} (keep a copy of the data directory: files that no release names are removed); \
         `gristmill fsck` names everything that is damaged"
    )
}

fn joined(faults: &[impl Display]) -> String {
    let texts: Vec<_> = faults.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

impl ControlError {
    /// The error for a release that is not in the log.
    pub(crate) fn no_release(number: u64) -> Self {
        StateError::NotFound { what: "release", name: number.to_string() }.into()
    }

    pub(crate) fn plugin(name: &Name, source: Arc<LoadError>) -> Self {
        Self::Plugin { name: name.to_string(), source }
    }

    pub(crate) fn asset(name: &Name, source: Arc<LoadError>) -> Self {
        Self::Asset { name: name.to_string(), source }
    }

    pub(crate) fn model(name: &Name, source: impl Into<Arc<LoadError>>) -> Self {
        Self::Model { name: name.to_string(), source: source.into() }
    }

    /// Whether a shared store cannot be reached.
    pub(crate) fn is_unreachable(&self) -> bool {
        match self {
            Self::Store(error) | Self::Unconfirmed { source: error, .. } => {
                matches!(error, StoreError::Unreachable(_))
            }
            Self::Common(error) => error.is_unreachable(),
            _ => false,
        }
    }

    /// Log the sources, if the server itself failed: they name files of this host, and the client
    /// is told the text only. Each change of [`Control`](crate::Control) has logged the error that
    /// it returns. The data plane logs the text again, with the request's id.
    #[must_use]
    pub fn logged(self) -> Self {
        let is_own = matches!(self.code(), ErrorCode::Internal | ErrorCode::InsufficientStorage);
        if self.is_unreachable() {
            tracing::warn!(error = ?self, "change failed");
        } else if is_own {
            tracing::error!(error = ?self, "change failed");
        }
        self
    }
}

impl ClientError for ControlError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::State(error) => error.code(),
            Self::NotKept { .. } => ErrorCode::NotFound,
            Self::NoFile(_) => ErrorCode::Unprocessable,
            Self::Refused(faults) => match faults.first().map(|fault| &fault.subject) {
                Some(Subject::Plugin { .. }) => ErrorCode::InvalidPlugin,
                Some(Subject::Model(_)) => ErrorCode::InvalidModel,
                _ => ErrorCode::Unprocessable,
            },
            Self::Samples(_) => ErrorCode::SampleFailed,
            Self::CandidateAborted(_)
            | Self::TooMuchCompiled { .. }
            | Self::TooManyAssetBytes { .. } => ErrorCode::Conflict,
            Self::AssetsHeld { source, .. } => source.code(ErrorCode::Conflict),
            Self::AssetTooLarge { .. } => ErrorCode::BodyTooLarge,
            Self::Blob(BlobError::OtherDigest { .. }) => ErrorCode::Unprocessable,
            Self::Blob(_) => ErrorCode::Conflict,
            Self::Unmet(_) | Self::Moved { .. } => ErrorCode::PreconditionFailed,
            Self::At { source, .. } => source.code(),
            Self::Common(error) => error.code(),
            Self::Plugin { source, .. } => source.code(ErrorCode::InvalidPlugin),
            Self::Asset { source, .. } => source.code(ErrorCode::Unprocessable),
            Self::Model { source, .. } => source.code(ErrorCode::InvalidModel),
            Self::Store(error) => error.code(),
            Self::Unconfirmed { source, .. } => source.code(),
            Self::Log { .. }
            | Self::Checkpoint(_)
            | Self::LogGap(_)
            | Self::LogEnd(_)
            | Self::HashKey(_)
            | Self::Internal { .. } => ErrorCode::Internal,
            Self::TooManyReleases(_) => ErrorCode::TooManyReleases,
            Self::Overtaken => ErrorCode::Unavailable,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyReleases(refused) => Some(refused.after),
            Self::Common(error) => error.retry_after(),
            _ => None,
        }
    }

    fn meets_secret(&self) -> bool {
        match self {
            Self::State(error) => error.meets_secret(),
            Self::At { source, .. } => source.meets_secret(),
            Self::Common(error) => error.meets_secret(),
            _ => false,
        }
    }

    fn faults(&self) -> Vec<DocumentFault> {
        match self {
            Self::State(error) => error.faults(),
            Self::At { index, source } => {
                let at = format!("/changes/{index}");
                match &**source {
                    Self::State(
                        StateError::Invalid(faults) | StateError::Document { faults, .. },
                    ) => faults.placed(&format!("{at}/document")),
                    other => vec![DocumentFault { pointer: at, detail: other.to_string() }],
                }
            }
            _ => Vec::new(),
        }
    }
}

impl From<serde_json::Error> for ControlError {
    fn from(error: serde_json::Error) -> Self {
        Self::State(StateError::Encode(error))
    }
}
