//! What a language's tool makes.

use std::path::PathBuf;

/// The files of which a runtime is merged.
pub(super) struct Made {
    pub(super) component: PathBuf,
    /// The archive of the standard library, unless the interpreter has it.
    pub(super) library: Option<PathBuf>,
}
