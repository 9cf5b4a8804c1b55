//! The model of a command: on a server, or on this machine, where it is loaded as a server with
//! default settings loads it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use gristmill_backend::package::has_models_name;
use gristmill_backend::{Backends, LibrarySearch, LoadedModel, RowProof};
use gristmill_core::BufferPool;
use gristmill_state::ModelConfig;

use super::library;
use crate::model_file::ModelContent;

/// Unused tensor buffers that are kept for the next request, in bytes.
const RETAINED_BYTES_MAX: usize = 64 << 20;

/// As the default of the server's setting `model_run_memory_bytes`.
const MODEL_RUN_MEMORY_BYTES: usize = 1 << 30;

/// The model that a command line names.
pub(super) enum Model {
    File(PathBuf),
    OnServer(String),
}

impl Model {
    /// A file or a folder if there is one with a model, or if the value has a `/` or the ending of
    /// a file.
    pub(super) fn named(value: &str) -> Self {
        let path = Path::new(value);
        let known_endings = ["onnx", "zip", "tar", "tgz", "gz"];
        let has_ending = path
            .extension()
            .is_some_and(|ending| known_endings.iter().any(|known_ending| ending == *known_ending));
        match path.is_file() || is_models_folder(path) || value.contains('/') || has_ending {
            true => Self::File(path.to_owned()),
            false => Self::OnServer(value.to_owned()),
        }
    }
}

/// Whether a folder has a model in it. The folder of a plugin can have the name of a model that is
/// on a server.
fn is_models_folder(path: &Path) -> bool {
    let mut entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_str().is_some_and(has_models_name))
}

/// The buffers of a model's tensors.
pub(super) fn pool() -> BufferPool {
    BufferPool::new(RETAINED_BYTES_MAX)
}

/// What loads models on this machine. ONNX Runtime can be opened once in a process, so all models
/// of a command have the same one.
pub(super) struct Loader(Arc<Backends>);

impl Loader {
    /// `library` is ONNX Runtime's, if the command names one.
    ///
    /// # Errors
    /// The library cannot be used.
    pub(super) fn open(library: Option<PathBuf>, pool: &BufferPool) -> Result<Self> {
        let is_named = library.is_some();
        let open = |search| Backends::open(&search, pool.clone(), MODEL_RUN_MEMORY_BYTES);
        let search = LibrarySearch { configured: library::find(library), data_directory: None };
        match open(search) {
            // Found by chance, and maybe of another version.
            Err(error) if !is_named => {
                eprintln!("warning: {:#}", anyhow::Error::new(error));
                Ok(Self(open(LibrarySearch::default())?))
            }
            opened => Ok(Self(opened?)),
        }
    }

    /// Load the model in a file, a folder or an archive.
    ///
    /// # Errors
    /// The file cannot be read, or no backend can load it.
    pub(super) fn load(&self, model: &Path) -> Result<LoadedModel> {
        let unread = || format!("--model: cannot read {}", model.display());
        let content = ModelContent::at(model).with_context(unread)?;
        let options = ModelConfig::default().load_options();
        content
            .with_file(|file| self.0.load(file, &options, &RowProof::default()))
            .with_context(unread)?
            .with_context(|| format!("--model: cannot load {}", model.display()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn a_folder_is_a_model_if_it_has_one() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_models_folder(&folder.path().join("none")));
        fs::write(folder.path().join("plugin.py"), "").unwrap();
        assert!(!is_models_folder(folder.path()));
        fs::write(folder.path().join("model.onnx"), "").unwrap();
        assert!(is_models_folder(folder.path()));
        let is_file = |value: &str| matches!(Model::named(value), Model::File(_));
        assert!(is_file("model.onnx") && is_file("./exported") && !is_file("exported"));
    }
}
