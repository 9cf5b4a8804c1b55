//! Where `gristmill plugin test` and `gristmill plugin dev` look for ONNX Runtime, so that a model
//! runs on what its server runs it on.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders whose `onnxruntime/` may have the library: of a server's data, of a build, and of
/// this program.
const DATA_DIR: &str = "gristmill-data";
const BUILD_DIR: &str = "target";

/// Prints where Python's package has its libraries, without loading it.
const PYTHON: &str = "\
import importlib.util as u
s = u.find_spec('onnxruntime')
print(s.submodule_search_locations[0] if s else '')";

/// The library of a server or a test. `configured` is the one that the command names. None if a
/// variable names one, or if there is none.
pub(super) fn find(configured: Option<PathBuf>) -> Option<PathBuf> {
    let is_named = std::env::var_os("ORT_DYLIB_PATH").is_some_and(|path| !path.is_empty());
    if configured.is_some() || is_named {
        return configured;
    }
    let mut near = folders().into_iter();
    near.find_map(|folder| library_in(&folder.join("onnxruntime"))).or_else(of_python)
}

/// The folders, the nearest first.
fn folders() -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let above = here
        .ancestors()
        .flat_map(|folder| [DATA_DIR, BUILD_DIR].map(|subfolder| folder.join(subfolder)));
    let program = std::env::current_exe().unwrap_or_default();
    let beside = program.ancestors().skip(1).take(2).map(Path::to_owned);
    above.chain(beside).collect()
}

/// ONNX Runtime's library in a folder.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let names = ["libonnxruntime.so", "libonnxruntime.dylib", "onnxruntime.dll"];
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        names.iter().any(|prefix| name.starts_with(prefix))
    };
    let entries = std::fs::read_dir(folder).ok()?;
    entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_library)
}

/// The library of Python's package `onnxruntime`.
fn of_python() -> Option<PathBuf> {
    let output = Command::new("python3").args(["-c", PYTHON]).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    let folder = Path::new(folder.trim());
    folder.is_absolute().then(|| library_in(&folder.join("capi")))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(folder.path().join(name), "").unwrap();
        write("libonnxruntime_providers_shared.so");
        assert_eq!(library_in(folder.path()), None);
        write("libonnxruntime.so.1.31.1");
        assert!(library_in(folder.path()).unwrap().ends_with("libonnxruntime.so.1.31.1"));
        assert_eq!(library_in(&folder.path().join("none")), None);
        assert_eq!(find(Some("x.so".into())), Some("x.so".into()));
    }
}
