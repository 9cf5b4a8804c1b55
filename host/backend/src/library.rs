//! Finding the ONNX Runtime library.

use std::path::{Path, PathBuf};

/// The places where the ONNX Runtime library may be.
#[derive(Clone, Debug, Default)]
pub struct LibrarySearch {
    /// The library that the configuration names. If it cannot be used, that is an error.
    pub configured: Option<PathBuf>,
    /// The data directory, whose folder `onnxruntime/` is searched.
    pub data_directory: Option<PathBuf>,
}

impl LibrarySearch {
    /// The library to use: the configured one, else that in `ORT_DYLIB_PATH`, else one in the data
    /// directory.
    pub fn find(&self) -> Option<PathBuf> {
        if let Some(path) = &self.configured {
            return Some(path.clone());
        }
        if let Some(path) = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()) {
            return Some(path.into());
        }
        library_in(&self.data_directory.as_ref()?.join("onnxruntime"))
    }
}

/// The ONNX Runtime library directly in `directory`: the file name varies with version and system.
fn library_in(directory: &Path) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libonnxruntime.so")
            || name.starts_with("libonnxruntime.dylib")
            || name == "onnxruntime.dll"
    };
    let entries = std::fs::read_dir(directory).ok()?;
    entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_library)
}
