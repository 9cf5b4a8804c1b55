//! The file of a component.

use std::path::Path;

/// The size from which compiling a component takes long, in bytes.
pub(crate) const LARGE_BYTES: usize = 4 << 20;

/// The plugin's name from the name of its file: `digits` from `digits.wasm`.
pub(crate) fn name_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().replace('_', "-")
}
