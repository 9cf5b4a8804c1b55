//! Why a plugin, an asset or a model is not loaded.
//!
//! The texts are for the people who deployed it, so they name no path of the host. The sources are
//! for the log. Snapshots and the status show the text.

use std::io;
use std::path::Path;
use std::sync::Arc;

use gristmill_backend::Backends;
use gristmill_batch::Refusal;
use gristmill_core::{Digest, ErrorCode};
use gristmill_platform::child::ChildError;
use gristmill_sandbox::CallError;
use gristmill_store::StoreError;

use crate::load::paths::without_folder;

/// Maximum bytes of a text that comes from a child.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// Why a plugin, an asset or a model is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The uploaded file, which has not been kept yet, cannot be read.
    #[error(transparent)]
    Upload(StoreError),
    /// The store has another content under the file's name.
    #[error(transparent)]
    Damaged(StoreError),
    /// The store cannot read its file.
    #[error("its file {digest} cannot be read")]
    Unreadable {
        /// The file's digest.
        digest: Digest,
        /// The store's error.
        source: StoreError,
    },
    /// The uploaded file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The sandbox refuses the plugin, or cannot compile it.
    #[error(transparent)]
    Plugin(#[from] gristmill_sandbox::LoadError),
    /// The plugin was compiled, but an instance of it cannot be made.
    #[error("cannot be instantiated: {0}")]
    Probe(#[source] CallError),
    /// The child that loads a model for the first time ended without an answer.
    #[error("its first load, in a process of its own: {text}")]
    Prover {
        /// The error without paths, for the client.
        text: String,
        /// The error, for the log.
        source: ChildError,
    },
    /// That child could not use the backends. Its reason is in the log.
    #[error("its first load, in a process of its own, failed, but not because of the model")]
    ProverSetUp,
    /// The messages exchanged with that child are malformed.
    #[error(transparent)]
    ProverDocument(#[from] serde_json::Error),
    /// The child could not load or run the model, or what its configuration says is not true of it.
    #[error("{0}")]
    Unproven(String),
    /// The server could not load the model, although the child could.
    #[error("{text}")]
    Backend {
        /// The error without paths, for the client.
        text: String,
        /// The error, for the log.
        source: gristmill_backend::LoadError,
    },
    /// It is refused, because runs of its file did not end.
    #[error(transparent)]
    LostRuns(Refusal),
    /// No threads for the model's lane.
    #[error(transparent)]
    Lane(#[from] io::Error),
    /// The tenant holds too many bytes of assets just now.
    #[error(
        "with it, the tenant's assets in memory would be {wanted} bytes, with those that requests \
         still read; the limit is {max}, from tenant_asset_bytes_max: put fewer at once, try again \
         when these requests have ended, or raise the setting"
    )]
    AssetsHeld {
        /// The bytes with it.
        wanted: u64,
        /// The limit.
        max: u64,
    },
    /// The task that loaded it ended before it was done.
    #[error(transparent)]
    Stopped(#[from] tokio::task::JoinError),
    /// It was taken out of service.
    #[error("it was unloaded")]
    Unloaded,
    /// Nothing has loaded it yet.
    #[error("it is not loaded")]
    NotLoaded,
    /// The release that brought it serves without it, for this reason.
    #[error("{0}")]
    NotServed(String),
}

/// The loaded thing, or the error; shared by all callers that asked for it.
pub(crate) type Loaded<T> = Result<T, Arc<LoadError>>;

impl LoadError {
    /// The backend could not load a model. Clients get the text without the folders of the library
    /// and of the model's file.
    pub(crate) fn backend(
        source: gristmill_backend::LoadError,
        backends: &Backends,
        package: Option<&Path>,
    ) -> Self {
        let text = without_folder(&source.to_string(), backends.library());
        let text = without_folder(&text, package);
        Self::Backend { text, source }
    }

    /// Whether the store could not read its file.
    pub(crate) fn is_unread(&self) -> bool {
        matches!(self, Self::Unreadable { .. } | Self::Damaged(_))
    }

    /// Whether another attempt may succeed.
    pub(crate) fn is_passing(&self) -> bool {
        self.is_unread() || matches!(self, Self::AssetsHeld { .. })
    }

    /// The code for clients. `file_code` is the code for a fault of the file or its configuration.
    pub(crate) fn code(&self, file_code: ErrorCode) -> ErrorCode {
        match self {
            Self::Plugin(error) => match error.code() {
                ErrorCode::InvalidPlugin => file_code,
                other => other,
            },
            Self::AssetsHeld { .. } => ErrorCode::Conflict,
            Self::Prover { source, .. } if source.is_unavailable() => ErrorCode::Unavailable,
            Self::Prover { source, .. } if source.is_hosts_fault() => ErrorCode::Internal,
            Self::Upload(_)
            | Self::Damaged(_)
            | Self::Unreadable { .. }
            | Self::ProverSetUp
            | Self::ProverDocument(_)
            | Self::LostRuns(_)
            | Self::Lane(_)
            | Self::Stopped(_) => ErrorCode::Internal,
            Self::Empty
            | Self::Probe(_)
            | Self::Prover { .. }
            | Self::Unproven(_)
            | Self::Backend { .. }
            | Self::Unloaded
            | Self::NotLoaded
            | Self::NotServed(_) => file_code,
        }
    }
}

/// The text of an error, cut: it can have names of any length out of the file.
pub(crate) fn brief(error: &impl ToString) -> String {
    let mut text = error.to_string();
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fault_is_the_files_or_the_hosts() {
        let code = |error: LoadError| error.code(ErrorCode::InvalidModel);
        assert_eq!(code(LoadError::Unproven("opset 99".into())), ErrorCode::InvalidModel);
        assert_eq!(code(LoadError::ProverSetUp), ErrorCode::Internal);
        let prover = |source: ChildError| LoadError::Prover { text: source.to_string(), source };
        let second = std::time::Duration::from_secs(1);
        assert_eq!(code(prover(ChildError::OutOfTime(second))), ErrorCode::InvalidModel);
        assert_eq!(code(prover(ChildError::Busy(3))), ErrorCode::Unavailable);
        assert_eq!(code(prover(io::Error::other("no process").into())), ErrorCode::Internal);
        let busy = gristmill_sandbox::LoadError::Compiler(ChildError::Busy(3));
        assert_eq!(LoadError::Plugin(busy).code(ErrorCode::InvalidPlugin), ErrorCode::Unavailable);
    }

    #[test]
    fn a_text_names_no_path_and_the_source_does() {
        let io = io::Error::other("/srv/secret/place");
        let source = StoreError::Read(Arc::new(io));
        let error = LoadError::Unreadable { digest: Digest::from_bytes([0; 32]), source };
        assert!(!error.to_string().contains('/'), "{error}");
        assert!(format!("{error:?}").contains("/srv/secret/place"));
    }
}
